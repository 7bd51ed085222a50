"""Tests how Spark's events about streaming queries become reports of progress."""

import json
from typing import Any

from barnabas.spark.helpers.stream_reports import ERROR_MAX, StreamReports

PROGRESS: dict[str, Any] = {
    "id": "q1",
    "runId": "r1",
    "name": "silver",
    "batchId": 3,
    "numInputRows": 200,
    "inputRowsPerSecond": 100.04,
    "processedRowsPerSecond": 400.06,
    "durationMs": {"addBatch": 400, "triggerExecution": 500},
    "stateOperators": [
        {"numRowsTotal": 10, "memoryUsedBytes": 1000},
        {"numRowsTotal": 5, "memoryUsedBytes": 500},
    ],
    "sources": [
        {
            "description": "org.apache.spark.sql.execution...PythonMicroBatchStream@1",
            "endOffset": json.dumps({"@topicIds": {"orders": "x"}, "orders": {"0": 90, "1": 10}}),
            "latestOffset": json.dumps(
                {
                    "@metrics": {"source": "barnabas: topic orders at 127.0.0.1:9092"},
                    "orders": {"0": 100, "1": 10, "2": 7},
                }
            ),
            "numInputRows": 200,
        }
    ],
    "sink": {"description": "FileSink[/lake]"},
}


def test_a_batch_becomes_a_report() -> None:
    row = StreamReports().progressed(PROGRESS, 5_000)
    assert (row.name, row.query_id, row.run_id, row.state) == ("silver", "q1", "r1", "running")
    assert (row.rows_per_s, row.input_per_s, row.batch_ms) == (400.1, 100.0, 500)
    assert (row.state_rows, row.state_bytes) == (15, 1500)
    assert row.lag == 17  # partition 2 is new: all of it is to be read
    assert row.sources == ("barnabas: topic orders at 127.0.0.1:9092",)
    assert row.sink == "FileSink[/lake]"
    assert (row.since_ms, row.updated_ms, row.restarts, row.last_error) == (5_000, 5_000, 0, None)


def test_a_trigger_without_a_batch_keeps_the_duration_of_the_last_one() -> None:
    reports = StreamReports()
    reports.progressed(PROGRESS, 5_000)
    empty = {**PROGRESS, "durationMs": {"triggerExecution": 3}, "processedRowsPerSecond": "NaN"}
    del empty["inputRowsPerSecond"]
    row = reports.progressed(empty, 6_000)
    assert (row.batch_ms, row.rows_per_s, row.input_per_s) == (500, 0.0, 0.0)
    assert (row.since_ms, row.updated_ms) == (5_000, 6_000)


def test_the_lag_of_sources_without_offsets_is_unknown() -> None:
    for source in (
        {},
        {"endOffset": None, "latestOffset": None},
        {"endOffset": "12", "latestOffset": "15"},
        {"endOffset": {"logOffset": 3}, "latestOffset": {"logOffset": 4}},
        {"endOffset": "not JSON", "latestOffset": "[1]"},
    ):
        row = StreamReports().progressed({**PROGRESS, "sources": [source]}, 1)
        assert (row.lag, row.sources) == (None, ("unknown",))


def test_the_lag_of_sparks_own_connector_is_known() -> None:
    source = {
        "description": "KafkaV2[Subscribe[orders]]",
        "endOffset": {"orders": {"0": 5}},
        "latestOffset": {"orders": {"0": 8}},
    }
    row = StreamReports().progressed({**PROGRESS, "sources": [source, {}]}, 1)
    assert (row.lag, row.sources) == (3, ("KafkaV2[Subscribe[orders]]", "unknown"))


def test_a_query_from_its_start_to_its_failure_and_restart() -> None:
    reports = StreamReports(explain=lambda text: f"because of {text}")
    states = [reports.started("silver", "q1", "r1", 1_000)]
    states.append(reports.progressed(PROGRESS, 2_000))
    idle = reports.idle("q1", "r1", 3_000)
    assert idle is not None
    failed = reports.ended("q1", "r1", "the broker", 4_000)
    assert failed is not None
    states += [idle, failed, reports.started("silver", "q1", "r2", 5_000)]
    found = [(each.state, each.since_ms, each.restarts, each.last_error) for each in states]
    assert found == [
        ("starting", 1_000, 0, None),
        ("running", 2_000, 0, None),
        ("running", 2_000, 0, None),
        ("failed", 4_000, 0, "because of the broker"),
        ("starting", 5_000, 1, "because of the broker"),
    ]
    assert (idle.rows_per_s, failed.rows_per_s) == (0.0, 0.0)


def test_a_stop_is_no_failure_and_the_next_start_no_restart() -> None:
    reports = StreamReports()
    reports.started("silver", "q1", "r1", 1_000)
    stopped = reports.ended("q1", "r1", None, 2_000)
    assert stopped is not None
    assert (stopped.state, stopped.last_error) == ("stopped", None)
    assert reports.started("silver", "q1", "r2", 3_000).restarts == 0


def test_events_of_other_runs_change_nothing() -> None:
    reports = StreamReports()
    reports.started("silver", "q1", "r1", 1_000)
    reports.started("silver", "q1", "r2", 2_000)
    assert reports.ended("q1", "r1", "late", 3_000) is None
    assert reports.ended("q1", "unknown", None, 3_000) is None
    assert reports.idle("q1", "unknown", 3_000) is None


def test_a_query_without_a_name_has_its_id() -> None:
    assert StreamReports().started(None, "q1", "r1", 1).name == "q1"
    assert StreamReports().progressed({**PROGRESS, "name": None}, 1).name == "q1"


def test_long_errors_are_cut() -> None:
    reports = StreamReports()
    reports.started("silver", "q1", "r1", 1)
    row = reports.ended("q1", "r1", "x" * 9_999, 2)
    assert row is not None
    assert len(row.last_error or "") == ERROR_MAX
