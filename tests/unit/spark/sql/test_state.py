"""Tests the stored state of a run's streams, and the lag computed from it."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.spark.sql import lag as lag_reading
from barnabas.spark.sql.lag import LagReader, lag
from barnabas.spark.sql.run_status import (
    Status,
    StatusError,
    StreamStatus,
    is_complete,
    measured,
    offsets_of,
    read_status,
    write_status,
)

STREAM = StreamStatus(name="revenue", into="topic revenue")
REPORT = {
    "batchId": 3,
    "numInputRows": 10,
    "processedRowsPerSecond": 40.04,
    "durationMs": {"addBatch": 200, "triggerExecution": 250},
    "eventTime": {"watermark": "2026-01-01T10:00:00.000Z"},
    "sources": [
        {"endOffset": {"orders": {"0": 12, "1": 7}, "@start": {"orders": {"0": 2}}}},
        {"endOffset": '{"orders": {"0": 9}, "payments": {"0": 4}}'},
        {"endOffset": 17},
        {"endOffset": "not JSON"},
    ],
}


def status(*streams: StreamStatus) -> Status:
    return Status(file="shop.sql", bootstrap="b:9092", started="s", updated="u", streams=streams)


def test_a_report_of_spark_is_taken_in() -> None:
    found = measured(measured(STREAM, REPORT), {**REPORT, "batchId": 4})

    assert (found.batch, found.rows, found.rows_per_s, found.batch_ms) == (4, 20, 40.0, 250)
    assert found.watermark == "2026-01-01T10:00:00.000Z"
    assert found.offsets == {"orders": {"0": 9, "1": 7}, "payments": {"0": 4}}


def test_a_trigger_without_a_batch_is_not_complete() -> None:
    assert is_complete(REPORT)
    assert not is_complete({**REPORT, "durationMs": {"triggerExecution": 2}})


def test_marks_beside_topics_are_not_offsets() -> None:
    assert offsets_of({"@initial": True, "orders": {"0": 1}, "ids": {"orders": "x"}}) == {
        "orders": {"0": 1}
    }


def test_the_lag_counts_a_new_partition_from_its_beginning() -> None:
    ends = {
        TopicPartition("orders", 0): 15,
        TopicPartition("orders", 1): 7,
        TopicPartition("orders", 2): 5,
        TopicPartition("other", 0): 99,
    }
    assert lag({"orders": {"0": 12, "1": 7}}, ends) == 3 + 0 + 5


def test_a_broker_that_does_not_answer_leaves_the_lag_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Patience with a query is two minutes; a display does not wait that long."""
    monkeypatch.setattr(lag_reading, "PATIENCE_MS", 200)
    stream = replace(STREAM, offsets={"orders": {"0": 12}})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        lags = LagReader({"kafka.bootstrap.servers": bootstrap}).lags([stream])
    assert lags == {"revenue": None}


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = status(measured(STREAM, REPORT))
    write_status(tmp_path, written)
    assert read_status(tmp_path) == written
    assert [each.name for each in tmp_path.iterdir()] == ["status.json"]


def test_a_run_that_could_not_say_that_it_ended_was_killed() -> None:
    found = status(
        StreamStatus(name="a", into="topic a", state="running"),
        StreamStatus(name="b", into="topic b", state="done"),
    ).after_kill
    assert [each.state for each in found.streams] == ["killed", "done"]


def test_a_folder_without_status_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match="type: barnabas sql run FILE"):
        read_status(tmp_path)
    (tmp_path / "status.json").write_text(json.dumps({"streams": [{"nothing": 1}]}))
    with pytest.raises(StatusError, match="barnabas sql run rewrites it"):
        read_status(tmp_path)
