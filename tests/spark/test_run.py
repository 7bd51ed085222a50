"""Tests `barnabas telemetry run` as a process: started, watched, stopped."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.telemetry.lake import lake_checkpoints
from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.lake.prices import Prices, stored
from barnabas.telemetry.samples import topic_setup
from barnabas.testing.broker import Broker
from tests.support.pipelines.pipeline import table_rows, telemetry

pytestmark = pytest.mark.timeout(280)


@pytest.fixture(scope="module")
def filled(broker: Broker) -> Broker:
    """A broker with a minute of a small fleet in its topic."""
    given = ["--gpus", "2", "--duration", "60s", "--speed", "max", "--faults", "none"]
    command = telemetry("simulate", *given, "--bootstrap", broker.bootstrap)
    subprocess.run(command, check=True, capture_output=True)
    return broker


def failed_output(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Run a command that must fail; return its output."""
    done = subprocess.run(
        telemetry("run", *arguments), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def pictures(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def until(
    seen: Iterator[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    return next(picture for picture in seen if wanted(picture))


@pytest.mark.slow
def test_jobs_run_until_they_are_asked_to_stop(filled: Broker, tmp_path: Path) -> None:
    place = ["--bootstrap", filled.bootstrap, "--lake", str(tmp_path / "lake")]
    options = ["--trigger", "1s", "--json", "--every", "0.5s", "--jobs", "bronze,silver"]
    command = telemetry("run", *place, *options, "--driver-memory", "1g", "--master", "local[2]")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            seen = pictures(process)
            first = until(seen, lambda p: p["totals"]["messages"] == 121)
            assert "Another run holds" in failed_output(*place)
            done = until(seen, lambda p: all(j["lag"] == 0 and j["batches"] for j in p["jobs"]))
            process.send_signal(signal.SIGTERM)
            last = list(seen)[-1]
            assert process.wait(120) == 0
        finally:
            process.kill()

    assert first["broker_answers"]
    assert done["jobs"][1]["job"] == "silver"
    assert done["jobs"][1]["watermark"] is not None
    assert [each["state"] for each in last["jobs"]] == ["stopped", "stopped"]
    assert sum(table_rows(tmp_path / "lake", "silver").values()) == 120
    assert sum(table_rows(tmp_path / "lake", "bronze").values()) == 121


def test_without_java_it_says_what_to_type(filled: Broker, tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}

    text = failed_output(
        "--bootstrap", filled.bootstrap, "--lake", str(tmp_path / "lake"), environment=environment
    )

    assert "Spark needs Java, which is not here; type: " in text


def test_a_topic_that_is_not_the_lakes_is_refused_before_spark_starts(
    filled: Broker, tmp_path: Path
) -> None:
    topic_setup.create_missing({"bootstrap.servers": filled.bootstrap})
    lake = Lake(str(tmp_path / "lake"))
    lake.put("_checkpoints/silver/offsets/0", b'v1\n{}\n{"gpu-telemetry":{"0":5}}')
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    place = ["--bootstrap", filled.bootstrap, "--lake", lake.root]

    text = failed_output(*place, "--topic", "gpu-alerts", environment=environment)

    assert 'was filled from topic "gpu-telemetry", not from "gpu-alerts"' in text
    assert "Pass --topic gpu-telemetry, or another --lake" in text
    assert "Starting Spark" not in text
    text = failed_output(*place, "--topic", "gpu-alerts", "--rebind", environment=environment)
    assert "Spark needs Java" in text
    assert lake_checkpoints.position(lake, "silver") is None
    text = failed_output(*place, "--topic", "nowhere", environment=environment)
    assert 'There is no topic "nowhere"' in text


def test_prices_of_a_settings_file_are_kept_for_reports(filled: Broker, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("price_per_kwh: 0.44\n")
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    place = ["--bootstrap", filled.bootstrap, "--lake", str(tmp_path / "lake")]

    failed_output(*place, "--settings", str(settings), environment=environment)

    assert stored(tmp_path / "lake") == Prices(price_per_kwh=0.44)
    failed_output(*place, environment=environment)
    assert stored(tmp_path / "lake") == Prices(price_per_kwh=0.44)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    settings = tmp_path / "thresholds.yaml"
    settings.write_text("idle_utl_pct: 5\n")

    assert "did you mean idle_util_pct?" in failed_output("--settings", str(settings))
    assert "choose from bronze, silver" in failed_output("--jobs", "copper")
    assert "No broker answered at 127.0.0.1:1" in failed_output("--bootstrap", "127.0.0.1:1")
