"""Tests the copy of the alert rules that acts faster, for tests with a real Prometheus."""

import re
from pathlib import Path

import pytest
import yaml

from barnabas.exporter import files
from tests.support.prometheus_server import LIMITS_S, faster

SHIPPED = (Path(files.__file__).parent / "alerts.yml").read_text(encoding="utf-8")
NUMBER = re.compile(r"\b\d+(ms|s|m|h)?\b")
AGE = re.compile(r"_seconds\)? (?:>|<) [1-9]")


def exprs(text: str) -> dict[str, str]:
    groups = yaml.safe_load(text)["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def test_durations_and_limits_of_ages_are_divided() -> None:
    rule = {
        "alert": "LagTime",
        "expr": "min_over_time(lag_seconds[15m:1m] offset 1h) > 300 and rate(all[5m]) > 0.1",
        "for": "5m",
    }
    found = yaml.safe_load(faster(yaml.safe_dump({"groups": [{"rules": [rule]}]}), 10))
    (made,) = found["groups"][0]["rules"]
    assert made == {
        "alert": "LagTime",
        "expr": "min_over_time(lag_seconds[90000ms:6000ms] offset 360000ms) > (300) / 10"
        " and rate(all[30000ms]) > 0.1",
        "for": "30000ms",
    }


def test_nothing_else_changes() -> None:
    shipped, made = exprs(SHIPPED), exprs(faster(SHIPPED, 10))
    assert made.keys() == shipped.keys()
    for name, expr in made.items():
        restored = re.sub(r"\((\d[\d *]*)\) / 10", r"\1", expr)
        assert NUMBER.sub("N", restored) == NUMBER.sub("N", shipped[name])


@pytest.mark.parametrize("name", exprs(SHIPPED))
def test_all_rules_about_ages_are_known(name: str) -> None:
    if AGE.search(exprs(SHIPPED)[name]):
        assert name in LIMITS_S
