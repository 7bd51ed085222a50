"""Tests the validation of messages: clocks, layouts, duplicates."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.samples.duplicates import Seen
from barnabas.telemetry.samples.sample_validation import Rules, Validated, validate

NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
NOW_US = 1_794_726_000_000_000
RULES = Rules(
    late_before_us=NOW_US - 60_000_000,
    late_us=60_000_000,
    ahead_us=300_000_000,
    tick_ahead_us=600_000_000,
    value_bytes_max=10_000,
)


def message(
    seconds: float = 0, gpu: str = "a", content_type: str = "application/json", **more: object
) -> dict[str, object]:
    text = (NOW + timedelta(seconds=seconds)).isoformat()
    document = {"timestamp": text, "gpu_id": gpu, **more}
    if "tick" not in more and "metrics" not in more:
        document["metrics"] = {"DCGM_FI_DEV_GPU_UTIL": 5}
    headers = [{"key": "content-type", "value": content_type.encode()}]
    return {"key": gpu.encode(), "value": json.dumps(document).encode(), "headers": headers}


def validated(*messages: dict[str, object], seen: Seen | None = None) -> Validated:
    rows = [
        {**each, "topic": "t", "partition": 0, "offset": offset, "timestamp": NOW}
        for offset, each in enumerate(messages)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(lake_tables.BRONZE))
    return validate(batch, RULES, seen or Seen(), {})


def reasons(found: Validated) -> dict[int, list[str]]:
    return {m: [fault.reason.value for fault in faults] for m, faults in found.faults.items()}


def test_rows_keep_coordinates() -> None:
    found = validated(message(gpu="a"), message(gpu="b"))
    assert found.rows["offset"].to_pylist() == [0, 1]
    assert found.rows["gpu_id"].to_pylist() == ["a", "b"]
    assert found.rows.schema == arrow_schema(lake_tables.SILVER)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-60.001, ["late"]), (-60, None), (300, None), (300.001, ["clock-ahead"])],
)
def test_times_that_are_taken(seconds: float, expected: list[str] | None) -> None:
    found = validated(message(seconds))
    assert reasons(found).get(0) == expected
    assert found.rows.num_rows == (0 if expected else 1)


def test_fast_clock_does_not_move_event_time_beyond_the_brokers() -> None:
    assert validated(message(-3), message(200)).event_us == NOW_US


def test_tick_moves_event_time_ahead() -> None:
    found = validated(message(-3), message(100, tick=True))
    assert found.event_us == NOW_US + 100_000_000
    assert found.rows.num_rows == 1
    assert found.faults == {}


def test_tick_of_a_wrong_clock_is_refused() -> None:
    found = validated(message(-3), message(1000, tick=True))
    assert found.event_us == NOW_US - 3_000_000
    assert reasons(found) == {1: ["clock-ahead"]}


def test_late_message_moves_nothing() -> None:
    assert validated(message(-100)).event_us is None


def test_unknown_content_type() -> None:
    found = validated(message(), message(gpu="b", content_type="text/plain; charset=utf-8"))
    assert reasons(found) == {1: ["unknown-layout"]}
    assert found.faults[1][0].detail == "content-type 'text/plain' is not known"
    assert found.rows["gpu_id"].to_pylist() == ["a"]


def test_content_type_is_not_needed() -> None:
    assert validated({**message(), "headers": None}).rows.num_rows == 1


def test_duplicates_within_and_across_runs() -> None:
    seen = Seen()
    first = validated(message(), message(-1), message(), seen=seen)
    again = validated(message(-1), message(-2), seen=seen)
    assert reasons(first) == {2: ["duplicate"]}
    assert reasons(again) == {0: ["duplicate"]}
    assert again.rows["offset"].to_pylist() == [1]


def test_other_metrics_of_the_same_instant_are_no_duplicate() -> None:
    found = validated(message(), message(metrics={"DCGM_FI_DEV_GPU_TEMP": 40}))
    assert found.faults == {}
    assert found.rows.num_rows == 2


def test_refused_whole_says_why_once() -> None:
    found = validated(message(-100, metrics={"DCGM_FI_DEV_GPU_UTIL": 5, "NEW": 1}))
    assert reasons(found) == {0: ["late"]}


def validated_afresh(*placed: tuple[int, float]) -> dict[int, list[str]]:
    """Validate messages in the very first batch, each with its partition and time."""
    rows = [
        {**message(seconds), "topic": "t", "partition": part, "offset": at, "timestamp": NOW}
        for at, (part, seconds) in enumerate(placed)
    ]
    newest: dict[int, int] = {}
    found: dict[int, list[str]] = {}
    for at, row in enumerate(rows):  # for every cut of the messages into batches
        batch = pa.RecordBatch.from_pylist([row], schema=arrow_schema(lake_tables.BRONZE))
        first = validate(batch, replace(RULES, late_before_us=None), Seen(), newest)
        found |= dict.fromkeys((at for _ in first.faults), reasons(first).get(0, []))
    whole = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(lake_tables.BRONZE))
    assert found == reasons(validate(whole, replace(RULES, late_before_us=None), Seen(), {}))
    return found


def test_a_clock_that_is_behind_shows_in_the_first_batch() -> None:
    year = 365 * 86_400
    assert validated_afresh((0, -200), (0, -100), (0, -161), (0, -160), (0, -year)) == {
        2: ["late"],
        4: ["late"],
    }


def test_partitions_may_be_at_different_times() -> None:
    assert validated_afresh((0, -10), (1, -500), (0, -20), (1, -450)) == {}
