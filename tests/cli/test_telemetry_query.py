"""Tests `barnabas telemetry query`, as a user types it."""

import csv
import io
import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

from tests.support.pipelines.lake import h200, write_lake

Ask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lake"), h200(), samples_per_window=2)


@pytest.fixture
def ask(telemetry: Ask, lake: Path) -> Ask:
    """Queries a lake, and checks how that ends."""
    return partial(telemetry, "query", "--lake", lake)


def test_a_table_for_people(ask: Ask) -> None:
    lines = ask("SELECT finding, count(*) AS n FROM findings GROUP BY 1 ORDER BY 1").stdout
    assert [line.split() for line in lines.splitlines()] == [
        ["finding", "n"],
        ["idle", "7"],
        ["launch_bound", "3"],
        ["parked_memory", "3"],
        ["power_capped", "8"],
        ["starved", "4"],
    ]


def test_json_and_csv_for_scripts(ask: Ask) -> None:
    sql = "SELECT window_start, gpu_id, 1 AS a, 2 AS a, xids FROM gold_10s ORDER BY 1 LIMIT 1"
    (row,) = json.loads(ask(sql, "--json").stdout)
    assert row["window_start"] == "2026-11-14T00:00:00Z"
    assert (row["a"], row["a_2"], row["xids"]) == (1, 2, None)
    header, first = csv.reader(io.StringIO(ask(sql, "--csv").stdout))
    assert header[0] == "window_start"
    assert first[1].startswith("GPU-")


def test_limits(ask: Ask) -> None:
    done = ask("SELECT * FROM silver", "--limit", "2", "--json")
    assert len(json.loads(done.stdout)) == 2
    assert "Only the first 2 rows" in done.stderr
    assert "Only" not in ask("SELECT 1", "--limit", "1").stderr


def test_tables_and_their_columns(ask: Ask) -> None:
    found = {each["table"]: each for each in json.loads(ask("--tables", "--json").stdout)}
    assert found["findings"]["rows"] == 25
    assert found["findings"]["columns"]["joules"] == "double"
    assert "silver" in ask("--tables").stdout


def test_what_is_wrong_with_the_sql_is_reported(ask: Ask) -> None:
    assert "did you mean findings?" in ask("SELECT * FROM finding", code=1).stderr
