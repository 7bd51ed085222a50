"""Tests a log: rolling, reading, flushing, truncating, and a full disk."""

from random import Random

import pytest

from barnabas.model.errors import ApiError, ErrorCode, SyncFailedError
from barnabas.protocol.records import parse_header, stamp
from barnabas.storage.flush import carry_out
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import advance_start, drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, batches_in, make_batch, read_all

FOLDER = "data/orders/0"
SMALL = LogSettings(segment_bytes=300, index_interval_bytes=100)


def opened(disk: MemoryDisk, settings: LogSettings = SMALL, recovery_point: int = 0) -> Log:
    return open_log(disk, FOLDER, settings, root="data", recovery_point=recovery_point).log


def filled(count: int = 10, settings: LogSettings = SMALL) -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = opened(disk, settings)
    for number in range(count):
        append(log, make_batch(2, timestamp=1_000 + number))
    return disk, log


def offsets(log: Log) -> list[int]:
    return [header.base_offset for header, _ in read_all(log)]


def test_offsets_follow_one_another_across_segments() -> None:
    _, log = filled()
    assert len(log.segments) > 2
    assert offsets(log) == list(range(0, 20, 2))
    assert log.size == sum(header.size for header, _ in read_all(log))


def test_a_segment_is_rolled_when_its_records_span_too_long() -> None:
    _, log = filled(0, LogSettings(segment_ms=50))
    for timestamp in (1_000, 1_050, 1_051, 1_101):
        append(log, make_batch(timestamp=timestamp))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_outside_of_the_log_there_is_nothing() -> None:
    _, log = filled()
    advance_start(log, 5)
    for offset in (-1, 4, 21):
        with pytest.raises(ApiError) as caught:
            log.read(offset, 100, 20, at_least_one=True)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(20, 100, 20, at_least_one=True) is None


def test_nothing_from_the_upper_offset_on_is_read() -> None:
    _, log = filled(4, LogSettings())
    for upper in range(9):
        found = batches_in(log.read(0, 1 << 20, upper, at_least_one=True))
        assert [header.last_offset + 1 for header, _ in found] == list(range(2, upper + 1, 2))


def test_a_small_limit_still_gives_one_batch_where_one_is_wanted() -> None:
    _, log = filled(4, LogSettings())
    assert log.read(2, 10, 8, at_least_one=False) is None
    ((header, _),) = batches_in(log.read(2, 10, 8, at_least_one=True))
    assert header.base_offset == 2


def test_batches_below_the_limit_are_found_without_index_or_memory() -> None:
    disk, log = filled(4, LogSettings())
    log.flush()
    log.close()
    log = open_log(disk, FOLDER, LogSettings(), clean=True).log
    one = read_all(log)[0][0].size
    found = batches_in(log.read(0, 2 * one + 5, 8, at_least_one=False))
    assert [header.base_offset for header, _ in found] == [0, 2]


def test_a_full_disk_refuses_an_append_and_nothing_is_lost() -> None:
    disk, log = filled(1, LogSettings())
    disk.room = 10
    with pytest.raises(OSError, match="No space"):
        append(log)
    assert (log.end_offset, log.active.size, len(log.segments)) == (2, log.active.file.size(), 1)
    disk.room = None
    assert append(log) == 2
    assert offsets(log) == [0, 2]


@pytest.mark.parametrize("room", range(0, 200, 10))
def test_a_full_disk_within_a_roll_does_not_hide_later_appends(room: int) -> None:
    disk, log = filled(2, LogSettings(segment_bytes=300))
    disk.room = room
    with pytest.raises(OSError, match="No space"):
        append(log, make_batch(30))
    disk.room = None
    append(log, make_batch(1))  # small enough for the old segment
    end = log.end_offset
    found = offsets(log)
    for clean in (True, False):
        if clean:
            log.flush()
            log.close()
        log = open_log(disk, FOLDER, LogSettings(segment_bytes=300), clean=clean).log
        assert log.end_offset == end
        assert offsets(log) == found


def test_a_flush_takes_sealed_segments_along() -> None:
    disk, log = filled()
    task = log.begin_flush()
    assert task is not None
    assert {file.path for file in task.files} >= {s.paths[0] for s in log.segments}
    assert set(task.folders) >= {"data", "data/orders", FOLDER}
    carry_out(disk, task)
    log.finish_flush(task)
    assert log.flushed_offset == 20
    assert log.begin_flush() is None


def test_what_is_appended_during_a_flush_waits_for_the_next() -> None:
    disk, log = filled()
    task = log.begin_flush()
    assert task is not None
    append(log, make_batch(2))
    log.roll()
    carry_out(disk, task)
    log.finish_flush(task)
    assert log.flushed_offset == 20
    following = log.begin_flush()
    assert following is not None
    assert log.segments[-2].file in following.files


def test_a_flush_from_before_a_cut_vouches_for_nothing_after_it() -> None:
    disk, log = filled(settings=LogSettings())
    task = log.begin_flush()
    assert task is not None
    carry_out(disk, task)
    log.truncate(10)
    for _ in range(5):
        append(log, make_batch(2))
    log.finish_flush(task)
    assert log.end_offset == 20
    assert log.flushed_offset <= 10


def test_a_flush_of_a_folder_that_is_gone_is_no_failure() -> None:
    disk, log = filled()
    task = log.begin_flush()
    assert task is not None
    disk.rename("data/orders", "data/gone")
    carry_out(disk, task)
    assert disk.read_bytes("data/gone/0/00000000000000000000.log")


def test_a_failed_sync_is_not_tried_again() -> None:
    disk, log = filled()

    def before(operation: str, path: str) -> None:
        if operation == "sync":
            raise SyncFailedError(path)

    disk.before = before
    with pytest.raises(SyncFailedError):
        log.flush()
    assert log.flushed_offset == 0


@pytest.mark.parametrize("end", range(21))
def test_a_truncation_ends_before_the_batch_that_reaches_over(end: int) -> None:
    disk, log = filled()
    log.flush()
    for path in log.truncate(end):
        disk.remove(path)
    assert log.end_offset == end - end % 2
    assert offsets(log) == list(range(0, log.end_offset, 2))
    assert log.flushed_offset == log.end_offset
    assert append(log) == log.end_offset - 1
    assert offsets(opened(disk, recovery_point=20)) == offsets(log)


def test_a_truncation_into_the_start_leaves_nothing() -> None:
    disk, log = filled()
    advance_start(log, 5)
    log.truncate(5)
    assert (log.start_offset, log.end_offset, offsets(log)) == (5, 5, [])
    append(log)
    again = opened(disk)
    assert (again.start_offset, again.end_offset, offsets(again)) == (5, 6, [5])


def test_a_truncation_beyond_the_end_does_nothing() -> None:
    _, log = filled()
    assert log.truncate(30) == []
    assert (log.end_offset, log.truncations) == (20, 0)


@pytest.mark.parametrize("seed", range(30))
def test_batches_after_a_truncation_are_checked_for_any_stored_point(seed: int) -> None:
    disk, log = filled(settings=LogSettings())
    log.flush()
    log.truncate(4)
    append(log, make_batch([(b"new", b"x" * 700)] * 2))
    disk.power_cut(Random(seed))
    log = opened(disk, LogSettings(), recovery_point=20)
    assert log.end_offset in (4, 6)
    assert len(read_all(log)) == log.end_offset // 2


def test_dropped_segments_do_not_return() -> None:
    disk, log = filled()
    base = log.segments[2].base_offset
    for path in drop_segments(log, 2):
        disk.remove(path)
    assert (log.start_offset, offsets(log)[0]) == (base, base)
    assert opened(disk).start_offset == base


def test_segments_can_be_dropped_on_a_full_disk() -> None:
    disk, log = filled()
    disk.room = 0
    for path in drop_segments(log, 2):
        disk.remove(path)
    assert disk.room > 0
    assert log.start_offset == log.segments[0].base_offset


def test_the_start_is_not_moved_where_the_disk_refuses() -> None:
    disk, log = filled()
    disk.room = 0
    with pytest.raises(OSError, match="No space"):
        advance_start(log, 5)
    assert log.start_offset == 0
    disk.room = None
    second = log.segments[1].base_offset
    advance_start(log, second)
    advance_start(log, 3)
    assert (log.start_offset, log.droppable()) == (second, 1)


def test_a_read_across_empty_segments_finds_what_follows() -> None:
    _, log = filled(1)
    log.roll()
    log.truncate(2)
    append(log, make_batch(2))
    log.roll()
    assert batches_in(log.read(0, 1 << 20, 4, at_least_one=True))
    assert offsets(log) == [0, 2]


def test_snapshots_are_kept_for_segments_and_no_others() -> None:
    disk, log = filled(0)
    for number in range(8):
        append(log, make_batch(2, producer=(1, 0, 2 * number)))
    log.flush()
    bases = {f"{segment.base_offset:020d}.snapshot" for segment in log.segments[1:]}
    kept = {name for name in disk.list(FOLDER) if name.endswith(".snapshot")}
    assert bases <= kept
    drop_segments(log, len(log.segments) - 1)
    log.store_memory()
    assert len([name for name in disk.list(FOLDER) if name.endswith(".snapshot")]) == 2


def test_a_cut_log_ends_where_its_last_batch_does_if_nothing_was_ever_compacted() -> None:
    """A batch with a wrong offset hides the records there, and they cannot be restored."""
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, LogSettings(compacts=True)).log
    for _ in range(3):
        append(log, make_batch(2))
    log.flush()
    last = log.active.size * 2 // 3
    disk.flip(log.active.file.path, last * 8 + 60)
    log = open_log(disk, FOLDER, LogSettings(compacts=True)).log
    assert log.end_offset > 6
    log.settings = LogSettings(compacts=False)
    log.truncate(6)
    assert log.end_offset == log.active.next_offset == 4
    assert append(log, make_batch(2)) == 4
    assert open_log(disk, FOLDER, log.settings).log.end_offset == 6


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("interval", [0, 100])
def test_a_segment_is_sealed_before_its_indexes_outgrow_their_limit(
    interval: int, copied: bool
) -> None:
    settings = LogSettings(index_interval_bytes=interval, index_bytes=120)
    log = open_log(MemoryDisk(), FOLDER, settings).log
    for number in range(60):
        batch = make_batch(timestamp=number)
        if copied:
            stamp(batch, 0, number, 0)
            log.append_replicated(batch, [parse_header(batch)])
        else:
            append(log, batch)
    assert len(log.segments) > 3
    for segment in log.segments:
        segment.write_indexes()
        assert segment.offset_index.count * 8 <= 120
        assert segment.time_index.count * 12 <= 120
    counts = [segment.time_index.count for segment in log.segments[:-1]]
    assert min(counts) >= 9


def test_the_smallest_index_has_room_for_an_entry() -> None:
    log = open_log(MemoryDisk(), FOLDER, LogSettings(index_interval_bytes=150, index_bytes=4)).log
    for _ in range(12):
        append(log)
    assert {segment.offset_index.count for segment in log.segments[:-1]} == {1}
