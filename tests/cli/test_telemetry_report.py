"""Tests `barnabas telemetry report`, as a user types it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import prices
from barnabas.telemetry.lake.lake import Lake
from tests.support.pipelines.lake import fleet_of, h200, write_lake

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(write_lake(tmp_path / "lake", fleet_of(16, windows=360, seed=2)))


def test_a_page_and_a_summary(telemetry: Run, lake: str, tmp_path: Path) -> None:
    done = telemetry("report", "--title", "Monday & Co", "--currency", "EUR")
    assert "16 GPUs on 2 hosts, 2026-11-14 00:00:00 to 2026-11-14 01:00:00 UTC" in done.stdout
    assert "Do first:" in done.stdout
    assert "EUR" in done.stdout
    text = (tmp_path / "report.html").read_text()
    assert "<h1>Monday &amp; Co</h1>" in text


def test_prices_are_those_of_the_lake_unless_given(telemetry: Run, lake: str) -> None:
    def energy_cost(*words: str) -> float:
        found = json.loads(telemetry("report", "--json", *words).stdout)
        return float(found["waste"]["all"][0]["energy_cost"])

    default = energy_cost()
    assert default > 0
    prices.store(Lake(lake), Thresholds(price_per_kwh=2 * Thresholds.price_per_kwh))
    assert energy_cost() == pytest.approx(2 * default)
    given = str(3 * Thresholds.price_per_kwh)
    assert energy_cost("--price-per-kwh", given) == pytest.approx(3 * default)


def test_json_for_scripts_writes_no_page(telemetry: Run, lake: str, tmp_path: Path) -> None:
    found = json.loads(telemetry("report", "--json").stdout)
    assert found["page"] is None
    assert found["fleet"]["gpus"] == 16
    assert not (tmp_path / "report.html").exists()
    named = json.loads(telemetry("report", "--json", "--out", "here.html").stdout)
    assert named["page"] == "here.html"
    assert (tmp_path / "here.html").exists()


def test_one_gpu(telemetry: Run, tmp_path: Path) -> None:
    write_lake(tmp_path / "one", h200(), samples_per_window=10)
    done = telemetry("report", "--lake", "one", "--gpu", "0000a1", "--out", "one.html")
    assert "1 GPU on 1 host" in done.stdout
    assert "GPU-80e38851-5e00-4000-8000-0000000000a1" in (tmp_path / "one.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--lake", "nowhere"], "There is no lake at nowhere"),
        (["--from", "2020-01-02", "--to", "2020-01-01"], "--from must be before --to"),
        (["--from", "monday"], "is not a time"),
        (["--out", "no/such/folder.html"], "There is no directory no/such"),
        (["--serve", "here"], "is not an address; write HOST:PORT"),
        (["--serve", "127.0.0.1:0", "--json"], "--serve writes no file"),
    ],
)
def test_errors_say_what_to_change(
    telemetry: Run, lake: str, words: list[str], sentence: str
) -> None:
    assert sentence in telemetry("report", *words, code=1).stderr


def test_a_broker_that_is_down_does_not_stop_a_report(telemetry: Run, lake: str) -> None:
    done = telemetry("report", "--bootstrap", "127.0.0.1:1")
    assert "Rejected records are not counted: No broker answered" in done.stderr


def test_the_page_is_served_until_the_command_is_stopped(lake: str) -> None:
    words = ("report", "--lake", lake, "--serve", "127.0.0.1:0", "--refresh", "5s")
    serving = subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", "telemetry", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        address = serving.stdout.readline().split()[4]
        with urlopen(address, timeout=60) as answer:
            assert "16 " in (text := answer.read().decode())
        assert '<meta http-equiv="refresh" content="5">' in text
        serving.terminate()
        assert serving.wait(60) == 0
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.parametrize(
    "words", [("report",), ("query",), ("dlq", "list"), ("dlq", "redrive"), ("dlq",)]
)
def test_every_command_has_help(telemetry: Run, words: tuple[str, ...]) -> None:
    said = telemetry(*words, "--help").stdout
    assert "Usage" in said
    assert words == ("dlq",) or "Example: barnabas telemetry" in " ".join(said.split())
