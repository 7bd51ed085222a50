"""Tests the progress of jobs, from the data of Spark, the lake and the broker."""

from collections import Counter
from pathlib import Path
from typing import Any

from barnabas.cli.telemetry.live_view import document, lines
from barnabas.telemetry.jobs.job_progress import Followed, Measured, Totals, lag
from barnabas.telemetry.jobs.supervising import Picture, backoff_s
from barnabas.telemetry.lake import lake


def report(batch: int, rows: int, **more: Any) -> dict[str, Any]:
    done = {"addBatch": 5, "triggerExecution": 900}
    return {"runId": "r", "batchId": batch, "numInputRows": rows, "durationMs": done, **more}


def test_lag_is_what_lies_between_a_position_and_the_ends() -> None:
    ends = {"t": {"0": 10, "1": 20}}

    assert lag({"t": {"0": 4, "1": 20}}, ends) == 6
    assert lag({"t": {"0": 4}}, ends) == 26
    assert lag({"t": {"0": 4}, "@start": {}}, {}) is None


def test_batches_count_once_and_idle_triggers_do_not(tmp_path: Path) -> None:
    measured = Measured(lake.create(str(tmp_path)), "silver")
    idle = {"runId": "r", "batchId": 2, "numInputRows": 0, "durationMs": {"triggerExecution": 1}}

    assert measured.take([report(0, 100), report(1, 50)], 10.0)
    assert not measured.take([report(1, 50), idle], 12.0)
    assert measured.take([report(1, 50), report(2, 30)], 14.0)

    progress = measured.progress
    assert (progress.batches, progress.rows, progress.batch_ms) == (3, 180, 900)
    assert progress.rows_per_s == 30 / 4


def test_a_job_that_follows_a_table_lags_in_batches(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    log = tmp_path / "_checkpoints" / "gold_10s" / "sources" / "0"
    log.mkdir(parents=True)
    note = tmp_path / "_batches" / "silver" / "batch-0000000003.json"
    (log / "9.compact").write_text(f'v1\n{{"path":"file://{note}","timestamp":1,"batchId":9}}\n')
    measured = Measured(place, "gold_10s")

    measured.compare(report(9, 1, sources=[{"endOffset": '{"logOffset":9}'}]), {}, 6)

    assert (measured.progress.lag, measured.progress.lag_unit) == (2, "batches")


def test_notes_are_handed_out_once_and_those_of_other_runs_not_at_all(tmp_path: Path) -> None:
    place = lake.create(str(tmp_path))
    place.complete("alerts", {"query": "q", "batch": 0, "rows": 7}, [])
    followed = Followed(place, "alerts")
    place.complete("alerts", {"query": "q", "batch": 1, "rows": 8}, [])

    assert [note["rows"] for note in followed.new()] == [8]
    assert followed.new() == []
    assert followed.count == 2


def test_waits_grow_to_a_minute() -> None:
    assert [backoff_s(n) for n in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


def test_a_picture_says_it_all_in_lines_and_in_json(tmp_path: Path) -> None:
    measured = Measured(lake.create(str(tmp_path)), "silver")
    measured.take([report(0, 1234)], 1.0)
    measured.compare(report(0, 1, sources=[{"endOffset": {"t": {"0": 5}}}]), {"t": {"0": 9}}, None)
    measured.progress.state, measured.progress.error = "again in 4 s", "no broker"
    totals = Totals(messages=10, samples=250)
    totals.take("silver", {"messages": 1, "samples": 2, "refused": {"late": 3, "bad-json": 1}})
    picture = Picture([measured.progress], totals, True, 65.0)

    said = lines(picture)
    found = document(picture)

    assert "again in 4 s" in said[0]
    assert "1 batch  1,234 rows (0/s)  lag 4 messages  last 0.9s  (no broker)" in said[0]
    assert said[1].startswith("1m 5s: 11 messages with 252 samples, 3 late, 4 refused")
    assert found["jobs"][0]["lag"] == 4  # type: ignore[index]
    assert found["totals"]["refused"] == Counter({"late": 3, "bad-json": 1})  # type: ignore[index]
