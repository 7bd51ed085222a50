"""Tests which refused records are sent again, and how."""

import pytest

from barnabas.telemetry.jobs.redrive import GROUP, Choice, Plan, Refusal, Tally, tally


def refusal(
    offset: int = 5, reason: str = "late", partition: int = 0, **headers: bytes | None
) -> Refusal:
    own = {"topic": b"gpu-telemetry", "partition": b"3", "offset": b"77", "reason": reason.encode()}
    given = {**own, **headers}
    return Refusal(
        partition=partition,
        offset=offset,
        timestamp_ms=1_000 + offset,
        key=b"GPU-1",
        value=b"{",
        headers=(
            ("source", b"dcgm"),
            *((f"dlq.{name}", value) for name, value in given.items() if value is not None),
        ),
    )


def test_a_refusal_says_where_it_came_from() -> None:
    one = refusal(detail=b"too old")
    assert (one.reasons, one.detail, one.origin) == (("late",), "too old", ("gpu-telemetry", 3, 77))
    assert refusal(topic=None).origin is None
    assert refusal(partition=0, reason="x").redriven == 0


def test_original_headers_go_back_with_a_count() -> None:
    assert refusal().headers_to_send() == [("source", b"dcgm"), ("dlq.redriven", b"1")]
    again = refusal(redriven=b"2")
    assert again.redriven == 2
    assert again.headers_to_send() == [("source", b"dcgm"), ("dlq.redriven", b"3")]
    assert refusal(redriven=b"many").redriven == 0


@pytest.mark.parametrize(
    ("choice", "taken"),
    [
        (Choice(), True),
        (Choice(reason="late"), True),
        (Choice(reason="bad_json"), False),
        (Choice(partition=0), True),
        (Choice(partition=1), False),
        (Choice(partition=0, offset=5), True),
        (Choice(partition=0, offset=6), False),
    ],
)
def test_choices(choice: Choice, taken: bool) -> None:
    assert Plan(choice, {}).takes(refusal()) is taken


def test_what_was_redriven_is_not_again() -> None:
    assert not Plan(Choice(), {0: 6}).takes(refusal(5))
    assert Plan(Choice(), {0: 5}).takes(refusal(5))
    assert Plan(Choice(), {1: 9}).takes(refusal(5))
    plan = Plan(Choice(), {}, {"late": {0: 6}})
    assert not plan.takes(refusal(5))
    assert plan.takes(refusal(5, "bad_json"))
    assert plan.passed == {"redriven before": 1}
    assert Plan(Choice(is_forced=True), {0: 6}).takes(refusal(5))


def test_records_that_keep_coming_back_stay() -> None:
    plan = Plan(Choice(times_max=2), {})
    assert not plan.takes(refusal(redriven=b"2"))
    assert plan.passed == {"came back 2 times": 1}
    assert Plan(Choice(times_max=2, is_forced=True), {}).takes(refusal(redriven=b"2"))


def test_records_without_an_origin_stay_and_are_counted() -> None:
    plan = Plan(Choice(), {})
    assert not plan.takes(refusal(topic=None))
    assert plan.passed == {"no dlq.topic header": 1}
    plan = Plan(Choice(), {})
    assert not plan.takes(refusal(5, "unreadable-line", topic=b""))
    assert plan.passed == {"a collector's line, never a message": 1}


def test_reading_begins_where_something_can_be_due() -> None:
    committed = {0: 10}
    assert Plan(Choice(), committed).start(0, earliest=4) == 10
    assert Plan(Choice(), committed).start(1, earliest=4) == 4
    assert Plan(Choice("late"), committed, {"late": {0: 15}}).start(0, 4) == 15
    assert Plan(Choice(), committed, {"late": {0: 15}}).start(0, 4) == 10
    assert Plan(Choice(is_forced=True), committed).start(0, 4) == 4
    assert Plan(Choice(partition=0, offset=2), committed).start(0, 0) == 2


def test_memory_is_by_reason() -> None:
    assert Choice().group == GROUP
    assert Choice(reason="late").group == f"{GROUP}.late"
    assert not Choice(partition=0, offset=3).is_remembered


def test_a_record_of_several_reasons_belongs_to_each() -> None:
    both = refusal(5, "no-value,out-of-range")
    assert both.reasons == ("no-value", "out-of-range")
    assert Plan(Choice(reason="out-of-range"), {}).takes(both)
    assert not Plan(Choice(reason="range"), {}).takes(both)
    done = Plan(Choice(reason="out-of-range"), {}, {"no-value": {0: 6}})
    assert not done.takes(both)
    counts: dict[str, Tally] = {}
    tally([both], counts)
    assert {reason: each.count for reason, each in counts.items()} == dict.fromkeys(both.reasons, 1)


def test_tallies() -> None:
    counts: dict[str, Tally] = {}
    tally([refusal(1), refusal(3), refusal(2, "bad_json", topic=None)], counts)
    late = counts["late"]
    assert (late.count, late.first_ms, late.last_ms) == (2, 1_001, 1_003)
    assert counts["bad_json"].origins == {"?": 1}
