"""Tests how much of silver a micro-batch of gold takes."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.lake.lake_source import TABLE, LakeReader, Limits, Shape

SHAPE = Shape(("gpu_id", "timestamp"), 10, 4)


def ends(tmp_path: Path, rows: list[int], limits: Limits) -> list[int]:
    """Return the last batch of each micro-batch until everything is taken."""
    lake = Lake(str(tmp_path))
    for number, count in enumerate(rows):
        note = {"query": "q", "batch": number, "rows": count, "event_us": None}
        lake.complete(TABLE, note, [])
    reader = LakeReader(lake, SHAPE, limits, tasks=2)
    found, offset = list[int](), reader.initialOffset()
    while (latest := reader.latestOffset(offset, ReadAllAvailable())) != offset:
        offset = latest
        found.append(offset["batch"])
    return found


def test_small_batches_are_taken_together(tmp_path: Path) -> None:
    assert ends(tmp_path, [10] * 20, Limits(batches=8, rows=1000)) == [7, 15, 19]


def test_rows_are_bounded_when_a_job_catches_up(tmp_path: Path) -> None:
    assert ends(tmp_path, [400, 400, 400, 100, 100, 0], Limits(batches=8, rows=800)) == [1, 5]


def test_a_batch_that_is_larger_than_the_bound_is_taken_alone(tmp_path: Path) -> None:
    assert ends(tmp_path, [5000, 1, 5000], Limits(batches=8, rows=800)) == [0, 1, 2]
