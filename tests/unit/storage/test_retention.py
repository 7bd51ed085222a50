"""Which segments have been kept long enough."""

import pytest

from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.retention import UNLIMITED, active_expired, active_overdue, expired
from barnabas.testing.batches import append, make_batch
from barnabas.testing.log_changes import advance_start
from barnabas.testing.memory_disk import MemoryDisk


def log_of(*times: int) -> Log:
    """Return a log with one record a segment, at these times; the last is the active one."""
    log = open_log(MemoryDisk(), "data/orders/0", LogSettings(segment_bytes=1)).log
    for time in times:
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


def test_records_without_a_time_are_kept() -> None:
    assert count(log_of(-1, 10, 20), ms=0) == 0


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
    log = log_of(10)
    assert active_expired(log, retention_ms=50, now_ms=61)
    assert not active_expired(log, retention_ms=50, now_ms=60)
    assert not active_expired(log, retention_ms=UNLIMITED, now_ms=1 << 40)
    assert active_overdue(log, segment_ms=50, now_ms=61)
    assert not active_overdue(log, segment_ms=50, now_ms=60)


def test_an_empty_segment_is_left_alone() -> None:
    log = log_of()
    assert not active_expired(log, retention_ms=0, now_ms=1 << 40)
    assert not active_overdue(log, segment_ms=0, now_ms=1 << 40)


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
