"""Tests the history of end offsets: when an offset was passed, within bounds of memory."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.monitor.sample_history import (
    POINTS_MAX,
    POINTS_MIN,
    EndHistory,
    StartHistory,
    points_max,
)
from tests.support.examples import examples

STEPS = st.lists(st.integers(0, 20), min_size=1, max_size=60)


def history(*ends: int) -> EndHistory:
    found = EndHistory()
    for at, end in enumerate(ends):
        found.add(at * 1000, end)
    return found


def test_an_offset_was_passed_at_the_first_sample_beyond_it() -> None:
    found = history(10, 20, 20, 35)
    assert found.passed_ms(10) == 1000
    assert found.passed_ms(19) == 1000
    assert found.passed_ms(20) == 3000
    assert found.passed_ms(34) == 3000


def test_what_was_passed_before_all_samples_is_unknown() -> None:
    assert history(10, 20).passed_ms(9) is None


def test_an_offset_that_is_not_passed_yet_is_unknown() -> None:
    assert history(10, 20).passed_ms(20) is None


def test_an_end_that_goes_back_begins_anew() -> None:
    found = history(10, 20, 5, 7)
    assert list(found.ends) == [5, 7]
    assert found.passed_ms(6) == 3000


def test_an_idle_partition_holds_one_sample() -> None:
    assert len(history(*[7] * 500).ends) == 1


def test_the_oldest_samples_go_first() -> None:
    found = EndHistory()
    for at in range(1000):
        found.add(at, at)
    assert len(found.ends) == len(found.times_ms) == POINTS_MAX
    assert found.ends[-1] == 999
    assert found.passed_ms(100) is None


def test_many_partitions_hold_fewer_samples_each() -> None:
    assert points_max(1) == POINTS_MAX
    assert points_max(10_000) == 200
    assert points_max(1_000_000) == POINTS_MIN


@given(steps=STEPS, offset=st.integers(0, 1300))
@settings(max_examples=examples(300))
def test_passed_agrees_with_a_look_at_every_sample(steps: list[int], offset: int) -> None:
    found = EndHistory()
    ends: list[int] = []
    end = 0
    for at, step in enumerate(steps):
        end += step
        ends.append(end)
        found.add(at, end)
    expected = next((at for at, each in enumerate(ends) if each > offset), None)
    if offset < ends[0]:
        expected = None
    assert found.passed_ms(offset) == expected


@given(steps=STEPS, at=st.integers(-1, 70))
@settings(max_examples=examples(200))
def test_the_end_at_a_time(steps: list[int], at: int) -> None:
    found = EndHistory()
    ends: list[int] = []
    for place, step in enumerate(steps):
        ends.append((ends[-1] if ends else 0) + step)
        found.add(place, ends[-1])
    expected = None if at < 0 else ends[min(at, len(ends) - 1)]
    assert found.end_at(at) == expected


def test_the_speed_of_the_start_is_that_of_the_whole_history() -> None:
    found = StartHistory()
    found.add(0, 100)
    assert found.per_s(0) is None
    found.add(60_000, 100)
    assert found.per_s(60_000) == 0
    found.add(100_000, 600)
    assert found.per_s(100_000) == 5.0
    assert found.per_s(200_000) == 2.5
