"""Tests the findings job over a small lake: alerts once, for any failure and any batches."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import alerting
from barnabas.telemetry.lake import lake, lake_tables
from barnabas.telemetry.lake.lake import Lake, arrow_schema, batch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 15, tzinfo=UTC)
GPUS = ("GPU-1", "GPU-2", "GPU-3")


def gold_row(number: int, gpu: str) -> dict[str, Any]:
    """Return a window: GPU-1 is healthy, GPU-2 gets an XID and then hot, GPU-3 goes missing."""
    start = START + timedelta(seconds=10 * number)
    is_hot = gpu == "GPU-2" and 5 <= number < 10
    codes = [79] if gpu == "GPU-2" and number >= 3 else []
    return {
        "window_start": start,
        "window_end": start + timedelta(seconds=10),
        "level": "gpu",
        "gpu_id": gpu,
        "hostname": f"node-{gpu}",
        "thermal_share": 1.0 if is_hot else 0.0,
        "xids": [{"timestamp": start, "xid": code} for code in codes],
    }


def close_windows(place: Lake, batch_id: int, numbers: range) -> None:
    """Leave the files of a batch of the gold job."""
    rows = [
        gold_row(number, gpu) for number in numbers for gpu in GPUS if gpu != "GPU-3" or number < 4
    ]
    if rows:
        table = pa.Table.from_pylist(rows, arrow_schema(lake_tables.GOLD))
        place.write_table("gold_10s", batch_name(batch_id), table)
    note = {"query": "gold", "batch": batch_id, "rows": len(rows), "watermark_us": 0, "open": {}}
    place.complete("gold_10s", note, [])


class Topic:
    """Accepts records as the exactly-once sink does: each batch of a query once."""

    def __init__(self) -> None:
        self.batches: dict[tuple[str, int], list[tuple[str, dict[str, Any]]]] = {}
        self.failures: list[str] = []
        """The next failure: before the records are written, or after."""

    def send(self, rows: "DataFrame", query_id: str, batch_id: int) -> None:
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "before":
            raise ConnectionError("the broker is away")
        sent = rows.collect()
        assert {row.topic for row in sent} == {"gpu-alerts"}
        found = [(row.key.decode(), json.loads(row.value)) for row in sent]
        known = self.batches.setdefault((query_id, batch_id), found)
        assert known == found, "a repeated batch had other alerts"
        if failure == "after":
            raise ConnectionError("the broker is away")

    @property
    def alerts(self) -> list[tuple[str, str]]:
        ordered = sorted(self.batches.items(), key=lambda item: item[0][1])
        return [(key, alert["state"]) for _, batch in ordered for key, alert in batch]


def run(spark: "SparkSession", place: Lake, topic: Topic, at_once: int = 1) -> None:
    notes = alerting.notes_stream(spark, place, at_once)
    write = alerting.write_batch(place, Thresholds(), topic.send)
    query = (
        notes.writeStream.foreachBatch(write)
        .option("checkpointLocation", place.checkpoint(alerting.JOB))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def rows_of(place: Lake, table: str) -> list[dict[str, Any]]:
    folder = Path(place.path(table))
    return [
        row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()
    ]


EXPECTED = [
    ("GPU-2/xid", "raised"),
    ("GPU-2/thermal_throttled", "raised"),
    ("GPU-3/missing", "raised"),
    ("GPU-2/thermal_throttled", "cleared"),
]


@pytest.fixture
def place(tmp_path: Path) -> Lake:
    return lake.create(str(tmp_path / "lake"))


def test_alerts_reach_the_table_and_the_topic(spark: "SparkSession", place: Lake) -> None:
    close_windows(place, 0, range(4))
    close_windows(place, 1, range(0))
    close_windows(place, 2, range(4, 20))
    topic = Topic()
    run(spark, place, topic)
    assert topic.alerts == EXPECTED
    table = rows_of(place, "alerts")
    assert [(f"{row['gpu_id']}/{row['finding']}", row["state"]) for row in table] == EXPECTED
    (first, *_) = next(iter(topic.batches.values()))
    key, alert = first
    assert key == "GPU-2/xid"
    assert list(alert) == [each.name for each in lake_tables.ALERTS]
    assert (alert["severity"], alert["first_seen"]) == ("critical", "2026-11-15T00:00:30.000Z")
    assert table[0]["first_seen"] == START + timedelta(seconds=30)
    found = rows_of(place, "findings")
    assert sum(row["finding"] == "xid" for row in found) == 1
    assert sum(row["finding"] == "thermal_throttled" for row in found) == 5
    assert next(row["value"] for row in found if row["finding"] == "missing") == 60.0


@pytest.mark.parametrize("rows_at_once", [1, 20, 1_000])
def test_a_backlog_of_gold_is_assessed_in_groups_that_change_nothing(
    spark: "SparkSession", place: Lake, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "ROWS_AT_ONCE", rows_at_once)
    for batch_id in range(4):
        close_windows(place, batch_id, range(5 * batch_id, 5 * batch_id + 5))
    topic = Topic()
    run(spark, place, topic, at_once=4)
    assert len(topic.batches) == 1
    assert topic.alerts == EXPECTED


@pytest.mark.slow
def test_a_repeated_batch_sends_the_same_alerts_once(spark: "SparkSession", place: Lake) -> None:
    for batch_id in range(4):
        close_windows(place, batch_id, range(5 * batch_id, 5 * batch_id + 5))
    topic = Topic()
    topic.failures = ["before", "after", "", "after"]
    while topic.failures:
        with pytest.raises(Exception, match="the broker is away"):
            run(spark, place, topic)
    run(spark, place, topic)
    assert topic.alerts == EXPECTED
    table = rows_of(place, "alerts")
    assert [(f"{row['gpu_id']}/{row['finding']}", row["state"]) for row in table] == EXPECTED


def test_a_commit_that_was_lost_changes_nothing(spark: "SparkSession", place: Lake) -> None:
    close_windows(place, 0, range(8))
    close_windows(place, 1, range(8, 20))
    topic = Topic()
    run(spark, place, topic)
    before = rows_of(place, "alerts"), rows_of(place, "findings")
    commits = Path(place.checkpoint(alerting.JOB)) / "commits"
    for file in commits.glob("*1*"):
        file.unlink()
    for note in Path(place.path(lake.NOTES, "findings")).glob("*1.json"):
        note.unlink()
    run(spark, place, topic)
    assert (rows_of(place, "alerts"), rows_of(place, "findings")) == before
    assert topic.alerts == EXPECTED
