"""Tests the rules for the status of a group, its ETA, its retention margin and its losses."""

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.monitor.lag_rules import (
    NEVER,
    WINDOW,
    Loss,
    eta_s,
    last_eta_s,
    loss,
    retention_margin_s,
    speed,
    status,
    worst,
)
from barnabas.monitor.states import GroupStatus
from tests.support.examples import examples

STANDING = [500] * WINDOW
MOVING = list(range(0, 10 * WINDOW, 10))
GROWING = list(range(100, 100 + WINDOW))
SAMPLES = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=0, max_size=WINDOW
)


@pytest.mark.parametrize(
    ("commits", "lags", "is_assigned", "expected"),
    [
        (STANDING, GROWING, True, GroupStatus.STALLED),
        (STANDING, GROWING, False, GroupStatus.STOPPED),
        (STANDING, [5] * WINDOW, False, GroupStatus.STOPPED),
        (STANDING, [0] * WINDOW, False, GroupStatus.OK),
        (MOVING, GROWING, True, GroupStatus.BEHIND),
        (MOVING, [7] * WINDOW, True, GroupStatus.BEHIND),
        (MOVING, [9, *GROWING[1:-1], 3], True, GroupStatus.OK),
        (MOVING, [*GROWING[:-1], 0], True, GroupStatus.OK),
        (STANDING, [0, *GROWING[1:]], False, GroupStatus.OK),
        ([*STANDING[:-1], 499], GROWING, True, GroupStatus.REWOUND),
        ([5, 4], [0, 0], True, GroupStatus.REWOUND),
        (STANDING[:-1], GROWING[:-1], False, GroupStatus.UNKNOWN),
        ([5], [0], False, GroupStatus.OK),
        ([5], [1], False, GroupStatus.UNKNOWN),
        ([], [], True, GroupStatus.UNKNOWN),
        ([5, 6], [9, 8], True, GroupStatus.OK),
    ],
    ids=str,
)
def test_status(
    commits: Sequence[int], lags: Sequence[int], *, is_assigned: bool, expected: GroupStatus
) -> None:
    assert status(commits, lags, is_assigned=is_assigned) is expected


@given(samples=SAMPLES, is_assigned=st.booleans())
@settings(max_examples=examples(400))
def test_a_group_that_is_caught_up_or_catches_up_never_alarms(
    samples: list[tuple[int, int]], *, is_assigned: bool
) -> None:
    commits = sorted(commit for commit, _ in samples)
    lags = [lag for _, lag in samples]
    found = status(commits, lags, is_assigned=is_assigned)
    fell = any(after < before for before, after in itertools.pairwise(lags))
    if 0 in lags or fell:
        assert found is GroupStatus.OK
    elif len(samples) < WINDOW:
        assert found is GroupStatus.UNKNOWN
    else:
        assert found in {GroupStatus.BEHIND, GroupStatus.STALLED, GroupStatus.STOPPED}
        assert (found is GroupStatus.BEHIND) == (commits[0] != commits[-1])


def test_the_worst_partition_decides() -> None:
    assert worst([GroupStatus.OK, GroupStatus.BEHIND, GroupStatus.OK]) is GroupStatus.BEHIND
    assert worst([GroupStatus.BEHIND, GroupStatus.STOPPED]) is GroupStatus.STOPPED
    assert worst([GroupStatus.OK, GroupStatus.UNKNOWN]) is GroupStatus.UNKNOWN
    assert worst([]) is GroupStatus.UNKNOWN


@pytest.mark.parametrize(
    ("lag", "read", "write", "expected"),
    [
        (100, 30.0, 10.0, 5.0),
        (100, 10.0, 10.0, NEVER),
        (100, 5.0, 10.0, NEVER),
        (0, 0.0, 10.0, 0.0),
        (100, None, 10.0, None),
        (100, 30.0, None, None),
        (None, 30.0, 10.0, None),
    ],
)
def test_eta(
    lag: int | None, read: float | None, write: float | None, expected: float | None
) -> None:
    assert eta_s(lag, read, write) == expected


@pytest.mark.parametrize(
    ("etas", "expected"),
    [
        ([5.0, 0.0], 5.0),
        ([0.0, NEVER, None], NEVER),
        ([0.0, None], None),
        ([], None),
    ],
)
def test_a_group_is_done_when_its_last_partition_is(
    etas: list[float | None], expected: float | None
) -> None:
    assert last_eta_s(etas) == expected


@given(
    lag=st.integers(1, 10**12),
    read=st.floats(0, 1e9, allow_nan=False),
    write=st.floats(0, 1e9, allow_nan=False),
)
@settings(max_examples=examples(200))
def test_a_faster_reader_is_never_later(lag: int, read: float, write: float) -> None:
    found = eta_s(lag, read, write)
    sooner = eta_s(lag, read + 1, write)
    assert found is not None
    assert sooner is not None
    assert sooner <= found
    assert math.isinf(found) == (read <= write)


@pytest.mark.parametrize(
    ("unread_from", "start", "read", "start_speed", "expected"),
    [
        (1000, 400, 10.0, 16.0, 100.0),
        (1000, 400, 16.0, 10.0, NEVER),
        (1000, 400, 10.0, 0.0, NEVER),
        (400, 1000, 10.0, 0.0, 0.0),
        (1000, 400, None, 16.0, None),
    ],
)
def test_retention_margin(
    unread_from: int, start: int, read: float | None, start_speed: float, expected: float | None
) -> None:
    assert retention_margin_s(unread_from, start, read, start_speed) == expected


def test_speed() -> None:
    assert speed(100, 400, 10_000) == 30.0
    assert speed(400, 100, 10_000) == 0.0
    assert speed(100, 400, 0) is None


def test_records_lost_before_the_first_sample_do_not_count() -> None:
    assert loss(None, 100, 250).records == 0


def test_each_lost_record_counts_once() -> None:
    found = loss(None, 100, 50)
    found = loss(found, 100, 130)
    assert found.records == 30
    found = loss(found, 100, 150)
    found = loss(found, 100, 150)
    assert found.records == 50
    assert loss(found, 150, 150).records == 50
    assert loss(found, 20, 150).records == 50, "a reset to before the start loses nothing"


@given(steps=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30))
@settings(max_examples=examples(200))
def test_losses_are_what_a_reader_without_gaps_would_have_missed(
    steps: list[tuple[int, int]],
) -> None:
    """The reference looks at each record: it is lost if it went before a commit passed it."""
    committed = start = 0
    found: Loss | None = None
    lost: set[int] = set()
    for read, deleted in steps:
        if found is not None:
            committed += read
            gone = range(start, start + deleted)
            start += deleted
            lost |= {offset for offset in gone if offset >= committed}
        found = loss(found, committed, start)
    assert found is not None
    assert found.records == len(lost)
