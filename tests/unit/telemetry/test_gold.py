"""Tests batches of gold as Spark would pass them, and the state that they leave in the lake."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import gold
from barnabas.telemetry.jobs.batches import ForeignBatchError
from barnabas.telemetry.lake import lake, lake_tables
from barnabas.telemetry.windows.rollups import by_gpu

START = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
TABLE = "gold_10s"
THRESHOLDS = Thresholds()


class Closed:
    """Closed windows, in place of a data frame of Spark."""

    def __init__(self, windows: pa.Table) -> None:
        self._windows = windows

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._windows


def closed(*seconds: float) -> Any:
    rows = [
        {
            "gpu_id": "a",
            "timestamp": START + timedelta(seconds=second),
            "gpu_util": 0.0,
            "power_usage": 100.0,
        }
        for second in seconds
    ]
    silver = pa.Table.from_pylist(rows, schema=lake.arrow_schema(lake_tables.SILVER))
    return Closed(by_gpu(silver, 10, THRESHOLDS))


def new_lake(folder: Path) -> lake.Lake:
    place = lake.create(str(folder))
    checkpoint = folder / lake.CHECKPOINTS / TABLE
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "query"}))
    return place


def covered(folder: Path) -> list[tuple[float, float]]:
    """Return the start of each window and its covered seconds, batch by batch."""
    files = sorted((folder / TABLE).glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return [((row["window_start"] - START).total_seconds(), row["covered_seconds"]) for row in rows]


def test_a_batch_continues_where_the_one_before_ended(tmp_path: Path) -> None:
    place = new_lake(tmp_path)
    for batch, seconds in enumerate([(3, 33), (), (63,)]):
        write = gold.write_batch(place, TABLE, THRESHOLDS)  # as after a restart
        write(closed(*seconds), batch)
    expected = [(0, 7), *((start, 10) for start in range(10, 70, 10))]
    assert covered(tmp_path) == expected
    # Batch 1 closed no window. The input state of batch 2 stays, in case it runs again.
    kept = ["batch-0000000000.parquet", "batch-0000000002.parquet"]
    assert place.names("_work/gold_10s-lasts") == kept
    assert place.note(TABLE, 1) is not None


def test_a_batch_that_runs_again_before_its_note_comes_to_the_same(tmp_path: Path) -> None:
    place = new_lake(tmp_path)
    gold.write_batch(place, TABLE, THRESHOLDS)(closed(3), 0)
    gold.write_batch(place, TABLE, THRESHOLDS)(closed(33), 1)
    before = covered(tmp_path)
    # The note of batch 1 comes last: without the note, its files may already exist.
    place.remove(f"{lake.NOTES}/{TABLE}", ["batch-0000000001.json"])
    place.write_table("_work/gold_10s-lasts", "batch-0000000000", _lasts(tmp_path))
    gold.write_batch(place, TABLE, THRESHOLDS)(closed(33), 1)
    assert covered(tmp_path) == before == [(0, 7), (10, 10), (20, 10), (30, 10)]


def _lasts(folder: Path) -> pa.Table:
    """Return the last samples after batch 0, as a crash before the note of batch 1 leaves them."""
    other = new_lake(folder / "other")
    gold.write_batch(other, TABLE, THRESHOLDS)(closed(3), 0)
    (file,) = (folder / "other" / "_work" / "gold_10s-lasts").glob("*.parquet")
    return pq.read_table(file)


def test_a_lake_of_version_0_1_continues(tmp_path: Path) -> None:
    place = new_lake(tmp_path)
    place.complete(TABLE, {"query": "query", "batch": 0, "rows": 0, "files": []}, [])
    gold.write_batch(place, TABLE, THRESHOLDS)(closed(33), 1)
    assert covered(tmp_path) == [(30, 7)]


def test_last_samples_that_are_gone_are_reported(tmp_path: Path) -> None:
    place = new_lake(tmp_path)
    gold.write_batch(place, TABLE, THRESHOLDS)(closed(3), 0)
    place.remove("_work/gold_10s-lasts", place.names("_work/gold_10s-lasts"))
    with pytest.raises(ForeignBatchError, match="is missing, though the newest batch names it"):
        gold.write_batch(place, TABLE, THRESHOLDS)(closed(33), 1)
