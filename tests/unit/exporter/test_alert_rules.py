"""Tests the alert rules: names, texts, rows in the runbook, metrics, and when they fire."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.exporter import files
from tests.support.metric_names import names_in, unknown_names

FOLDER = Path(files.__file__).parent
ROOT = Path(__file__).parents[3]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
ids = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    command = [found, *arguments]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)


@ids
def test_a_rule_names_only_metrics_that_exist(rule: dict[str, Any]) -> None:
    assert names_in(rule["expr"])
    assert unknown_names(rule["expr"]) == set()


@ids
def test_a_rule_says_what_happened_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    said = rule["annotations"]
    assert said.keys() == {"summary", "description", "runbook_url"}
    page, _, anchor = said["runbook_url"].partition("#")
    assert anchor == f"alert-{rule['alert']}"
    text = (ROOT / page).read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if f'<a id="{anchor}"></a>' in line]
    meaning, look, remedy = (cell.strip() for cell in row.strip("|").split("|")[1:])
    assert meaning
    assert look
    assert remedy


@ids
def test_a_rule_does_not_mix_totals_with_topics(rule: dict[str, Any]) -> None:
    """Totals have the name of the series of topics, without a label topic."""
    for matchers in re.findall(r"kafka_server_brokertopicmetrics_\w+(\{[^}]*\})?", rule["expr"]):
        assert "topic" in matchers


def test_names_are_unique_and_the_runbook_has_no_other_rows() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r'<a id="alert-(\w+)"></a>', text)) == sorted(names)


def test_every_alert_has_a_test_that_makes_it_fire() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    fired = set()
    for test in tests:
        for each in test.get("promql_expr_test", []):
            samples = each.get("exp_samples") or []
            fired |= {re.findall(r'"(\w+)"', sample["labels"])[0] for sample in samples}
    assert fired == {rule["alert"] for rule in RULES}


def test_promtool_accepts_the_rules() -> None:
    answer = promtool("check", "rules", "alerts.yml")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_each_alert_fires_stays_silent_and_clears() -> None:
    answer = promtool("test", "rules", "alerts_test.yml")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_promtool_accepts_the_configuration() -> None:
    answer = promtool("check", "config", "prometheus.yml")
    assert answer.returncode == 0, answer.stdout + answer.stderr
