"""Tests `barnabas telemetry retain`, as a user types it."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="pip install 'barnabas[telemetry]'")

import pyarrow as pa

from barnabas.telemetry.lake import lake

HOUR_US = 3_600_000_000
Retain = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def retain(telemetry: Retain) -> Retain:
    """Runs `barnabas telemetry retain`, and checks how it ends."""
    return partial(telemetry, "retain")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lake with a batch of findings per hour."""
    place = lake.create(str(tmp_path / "lake"))
    for number in range(48):
        end = pa.array([number * HOUR_US], pa.timestamp("us", "UTC"))
        name = place.write_table("findings", lake.batch_name(number), pa.table({"window_end": end}))
        place.complete("findings", {"query": "q", "batch": number, "rows": 1}, [name])
    return tmp_path / "lake"


def files(folder: Path) -> int:
    return len(list((folder / "findings").glob("*.parquet")))


def test_a_dry_run_says_what_would_be_and_a_run_does_it(folder: Path, retain: Retain) -> None:
    words = ("--lake", str(folder), "--findings", "12h")
    assert "Nothing was changed" in retain(*words, "--dry-run").stdout
    assert files(folder) == 48
    document = json.loads(retain(*words, "--json").stdout)
    (found,) = (each for each in document["tables"] if each["table"] == "findings")
    assert (found["removed_files"], found["removed_rows"]) == (35, 35)
    assert (found["merged_files"], found["merged_into"]) == (12, 1)
    assert files(folder) == found["files_after"] == 2
    assert json.loads(retain(*words, "--json").stdout)["tables"][4]["removed_files"] == 0


def test_files_are_only_removed_where_that_is_asked(folder: Path, retain: Retain) -> None:
    retain("--lake", str(folder), "--findings", "12h", "--no-merge")
    assert files(folder) == 13


def test_errors_say_what_to_change(folder: Path, retain: Retain) -> None:
    assert "There is no lake" in retain("--lake", "nowhere", code=1).stderr
    said = retain("--lake", str(folder), "--silver", "soon", code=1).stderr
    assert "is not a duration" in said
