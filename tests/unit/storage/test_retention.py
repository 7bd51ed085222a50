"""Tests which segments have been kept long enough."""

from collections.abc import Sequence
from itertools import zip_longest

import pytest

from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.retention import UNLIMITED, active_expired, active_overdue, expired
from tests.support.disks.log_changes import advance_start
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch

ONE_A_SEGMENT = LogSettings(segment_bytes=1)
FIFTY_MS = LogSettings(segment_ms=50)


def log_of(
    *times: int, written_at: Sequence[int] = (), settings: LogSettings = ONE_A_SEGMENT
) -> Log:
    """Return a log with one record per segment, at these times; the last one is active.

    The clock of the disk shows `written_at` at each append.
    """
    disk = MemoryDisk()
    log = open_log(disk, "data/orders/0", settings).log
    for time, clock in zip_longest(times, written_at, fillvalue=0):
        disk.wall_clock_ms = lambda shown=clock: shown  # type: ignore[misc]
        append(log, make_batch(timestamp=time))
    return log


def count(
    log: Log, *, ms: int = UNLIMITED, size: int = UNLIMITED, now: int = 100, upto: int = 99
) -> int:
    return expired(log, retention_ms=ms, retention_bytes=size, now_ms=now, upto=upto)


@pytest.mark.parametrize(
    ("ms", "gone"), [(91, 0), (90, 0), (89, 1), (79, 2), (0, 3), (UNLIMITED, 0)]
)
def test_old_segments_go_and_the_active_one_stays(ms: int, gone: int) -> None:
    assert count(log_of(10, 20, 30, 40), ms=ms) == gone


def test_a_young_segment_protects_those_behind_it() -> None:
    assert count(log_of(10, 99, 10, 40), ms=50) == 1


def test_nothing_above_the_high_watermark_goes() -> None:
    log = log_of(10, 20, 30, 40)
    assert [count(log, ms=0, upto=upto) for upto in range(5)] == [0, 1, 2, 3, 3]


def test_records_without_a_time_go_by_the_time_of_their_file() -> None:
    log = log_of(-1, 10, -1, 40, 50, written_at=[20, 90, 30, 95, 99])
    assert [count(log, ms=ms) for ms in (81, 80, 79, 70, 69, 59)] == [0, 0, 2, 2, 3, 4]


def test_a_restart_does_not_make_records_without_a_time_younger() -> None:
    disk = MemoryDisk()
    disk.wall_clock_ms = lambda: 20
    log = open_log(disk, "data/orders/0", ONE_A_SEGMENT).log
    for _ in range(3):
        append(log, make_batch(timestamp=-1))
    log.flush()
    log.close()
    disk.wall_clock_ms = lambda: 90
    again = open_log(disk, "data/orders/0", ONE_A_SEGMENT, clean=True).log
    assert count(again, ms=79) == 2
    again = open_log(disk, "data/orders/0", ONE_A_SEGMENT).log
    assert count(again, ms=79) == 2


def test_an_active_segment_without_times_is_sealed_some_time_after_its_first_batch() -> None:
    log = log_of(-1, settings=FIFTY_MS, written_at=[20])
    assert not active_expired(log, retention_ms=50, now_ms=70)
    assert active_expired(log, retention_ms=50, now_ms=71)
    assert not active_overdue(log, now_ms=70)
    log.disk.wall_clock_ms = lambda: 60  # type: ignore[attr-defined]
    append(log, make_batch(timestamp=-1))
    # The file is newer now, but its first batch is not.
    assert not active_expired(log, retention_ms=50, now_ms=71)
    assert active_overdue(log, now_ms=71)


def test_a_batch_with_a_time_does_not_seal_a_segment_that_begins_without_one() -> None:
    log = log_of(-1, 1 << 40, -1, (1 << 40) + 51, settings=FIFTY_MS)
    assert len(log.segments) == 1


def test_jitter_spreads_the_times_at_which_segments_are_sealed() -> None:
    settings = LogSettings(segment_ms=1_000, segment_jitter_ms=400)
    due = []
    for partition in range(100):
        log = open_log(MemoryDisk(), f"data/orders/{partition}", settings).log
        append(log, make_batch(timestamp=0))
        due.append(next(ms for ms in range(2_000) if active_overdue(log, now_ms=ms)))
        append(log, make_batch(timestamp=due[-1] - 1))
        assert len(log.segments) == 1
        append(log, make_batch(timestamp=due[-1]))
        assert len(log.segments) == 2
    assert min(due) > 600
    assert max(due) <= 1_001
    assert len(set(due)) > 60
    assert max(due) - min(due) > 300


@pytest.mark.parametrize("jitter_ms", [1, 50, 1 << 40])
def test_jitter_takes_no_more_than_the_whole_time(jitter_ms: int) -> None:
    log = log_of(10, settings=LogSettings(segment_ms=50, segment_jitter_ms=jitter_ms))
    assert not active_overdue(log, now_ms=10)
    assert active_overdue(log, now_ms=61)


def test_an_empty_segment_does_not_stand_in_the_way() -> None:
    log = log_of(10, 20, 30)
    log.segments[0].size = 0
    log.segments[0].max_timestamp = -1
    assert count(log, ms=0) == 2


def test_only_the_surplus_goes() -> None:
    log = log_of(10, 20, 30, 40)
    one = log.active.size
    sizes = [4 * one + 1, 4 * one, 3 * one + 1, 3 * one, one, 0]
    assert [count(log, size=size) for size in sizes] == [0, 0, 0, 1, 3, 3]


def test_what_lies_below_the_start_goes_in_any_case() -> None:
    log = log_of(10, 20, 30, 40)
    advance_start(log, 2)
    assert count(log) == 2
    advance_start(log, 4)
    assert count(log) == 3


def test_an_active_segment_that_is_too_old_is_to_be_sealed() -> None:
    log = log_of(10, settings=FIFTY_MS)
    assert active_expired(log, retention_ms=50, now_ms=61)
    assert not active_expired(log, retention_ms=50, now_ms=60)
    assert not active_expired(log, retention_ms=UNLIMITED, now_ms=1 << 40)
    assert active_overdue(log, now_ms=61)
    assert not active_overdue(log, now_ms=60)


def test_an_empty_segment_is_left_alone() -> None:
    log = log_of(settings=LogSettings(segment_ms=0))
    assert not active_expired(log, retention_ms=0, now_ms=1 << 40)
    assert not active_overdue(log, now_ms=1 << 40)


def test_the_age_of_a_segment_survives_a_restart() -> None:
    disk = MemoryDisk()
    log = open_log(disk, "data/orders/0", LogSettings()).log
    append(log, make_batch(timestamp=10))
    append(log, make_batch(timestamp=500))
    again = open_log(disk, "data/orders/0", LogSettings()).log
    assert again.active.first_append_ms == log.active.first_append_ms == 10
    log.flush()
    log.close()
    again = open_log(disk, "data/orders/0", LogSettings(), clean=True).log
    assert again.active.first_append_ms == 10
