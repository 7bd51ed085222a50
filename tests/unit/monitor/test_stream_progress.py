"""Tests the table of streaming queries that is read from a topic."""

import json
from typing import Any

import pytest

from barnabas.monitor.stream_progress import StreamProgress, StreamTable, from_record

ROW = StreamProgress(
    name="silver",
    query_id="q1",
    run_id="r1",
    state="running",
    since_ms=1_000,
    restarts=2,
    rows_per_s=10.5,
    lag=None,
    sources=("barnabas: topic orders at 127.0.0.1:9092",),
    sink="Parquet",
    updated_ms=2_000,
)


def changed(**fields: object) -> bytes:
    _, value = ROW.to_record()
    return json.dumps({**json.loads(value), **fields}).encode()


def test_a_row_survives_the_way_through_the_topic() -> None:
    assert from_record(*ROW.to_record()) == ROW


def test_a_value_has_the_fields_of_the_consoles_api() -> None:
    _, value = ROW.to_record()
    assert " ".join(json.loads(value)) == (
        "name query_id run_id state since_ms restarts rows_per_s input_per_s lag batch_ms "
        "state_bytes state_rows last_error sources sink updated_ms"
    )


def test_fields_of_a_later_release_are_ignored() -> None:
    assert from_record(b"silver", changed(colour="green")) == ROW


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 50_000,
        b"x" * 200_000,
        changed(state=None),
        changed(run_id=7),
        changed(updated_ms="now"),
        changed(rows_per_s="fast"),
        changed(lag=True),
        changed(sources="orders"),
        changed(sources=[1]),
        changed(sink={}),
    ],
)
def test_what_is_no_report_is_ignored(value: bytes) -> None:
    table = StreamTable()
    table.apply(b"silver", value)
    table.apply(None, ROW.to_record()[1])
    table.apply(b"\xff", ROW.to_record()[1])
    assert (table.rows, table.ignored) == ([], 3)


def test_the_last_report_of_a_query_counts_and_a_tombstone_removes_it() -> None:
    table = StreamTable()
    for name, lag in (("silver", 5), ("gold", 1), ("silver", 3)):
        table.apply(name.encode(), changed(lag=lag))
    found: list[tuple[str, Any]] = [(row.name, row.lag) for row in table.rows]
    assert found == [("gold", 1), ("silver", 3)]
    table.apply(b"gold", None)
    assert [row.name for row in table.rows] == ["silver"]


def test_a_table_is_bounded() -> None:
    table = StreamTable(streams_max=2)
    for name in (b"a", b"b", b"c", b"a"):
        table.apply(name, changed(restarts=len(table.rows)))
    assert [(row.name, row.restarts) for row in table.rows] == [("a", 2), ("b", 1)]
