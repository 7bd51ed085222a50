"""Tests opening logs: clean, torn, damaged, half swapped, and with unknown files."""

from random import Random

import pytest

from barnabas.model.steps import Work, finish
from barnabas.protocol.records import CRC_FROM, parse_header, stamp
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import Recovered, open_log
from tests.support.disks.log_changes import advance_start, drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, read_all

FOLDER = "data/orders/0"
SMALL = LogSettings(segment_bytes=400, index_interval_bytes=100)
BIG = LogSettings(index_interval_bytes=100)


def opened(
    disk: MemoryDisk, settings: LogSettings = SMALL, *, clean: bool = False, point: int = 0
) -> Recovered:
    return open_log(disk, FOLDER, settings, root="data", clean=clean, recovery_point=point)


def filled(count: int, settings: LogSettings = SMALL) -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = opened(disk, settings).log
    for number in range(count):
        append(log, make_batch(2, timestamp=number), epoch=number // 4)
    log.flush()
    return disk, log


def stopped(count: int, settings: LogSettings = SMALL) -> MemoryDisk:
    disk, log = filled(count, settings)
    log.close()
    return disk


def path_of(base: int, suffix: str = "log") -> str:
    return f"{FOLDER}/{base:020d}.{suffix}"


def bases(log: Log) -> list[int]:
    return [header.base_offset for header, _ in read_all(log)]


def test_a_new_log_is_empty_and_needs_no_flush() -> None:
    log = opened(MemoryDisk()).log
    assert (log.start_offset, log.end_offset, log.flushed_offset) == (0, 0, 0)
    assert log.begin_flush() is None


@pytest.mark.parametrize("settings", [SMALL, BIG])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 30])
def test_everything_is_as_it_was(settings: LogSettings, clean: bool, count: int) -> None:
    disk, log = filled(count, settings)
    log.close()
    found = opened(disk, settings, clean=clean, point=2 * count)
    assert (found.truncated_bytes, found.problems) == (0, ())
    again = found.log
    assert (again.start_offset, again.end_offset) == (0, 2 * count)
    assert again.flushed_offset == 2 * count
    assert bases(again) == bases(log)
    assert again.epochs.entries == log.epochs.entries
    assert [s.next_offset for s in again.segments] == [s.next_offset for s in log.segments]
    assert [s.max_timestamp for s in again.segments] == [s.max_timestamp for s in log.segments]
    assert append(again) == 2 * count


@pytest.mark.parametrize("point", range(0, 41, 3))
def test_a_recovery_point_may_lie_anywhere(point: int) -> None:
    disk, log = filled(20)
    found = opened(disk, point=point)
    assert (found.log.end_offset, found.log.flushed_offset) == (40, 40)
    assert bases(found.log) == bases(log)
    assert [s.max_timestamp for s in found.log.segments] == [s.max_timestamp for s in log.segments]
    assert found.problems == ()


@pytest.mark.parametrize("lost", range(1, 100, 7))
def test_a_torn_tail_is_cut_at_the_last_whole_batch(lost: int) -> None:
    disk, log = filled(5, BIG)
    one = log.active.size // 5
    disk.cut(path_of(0), 5 * one - lost)
    found = opened(disk, BIG)
    whole = (5 * one - lost) // one
    assert found.log.end_offset == 2 * whole
    assert found.truncated_bytes == 5 * one - lost - whole * one
    assert found.log.active.size == disk.size(path_of(0)) == whole * one
    assert append(found.log) == 2 * whole


def test_garbage_behind_the_last_batch_is_cut() -> None:
    disk, _ = filled(3, BIG)
    for garbage in (b"\0" * 500, b"\xff" * 70, bytes(make_batch(2))[:-1]):
        disk.open(path_of(0)).append((garbage,))
        found = opened(disk, BIG)
        assert found.truncated_bytes == len(garbage)
        assert (found.log.end_offset, bases(found.log)) == (6, [0, 2, 4])


def test_an_older_batch_behind_newer_ones_is_cut() -> None:
    disk, _ = filled(3, BIG)
    disk.open(path_of(0)).append((make_batch(2),))  # a good batch, at offset 0
    assert opened(disk, BIG).log.end_offset == 6


def test_a_torn_sealed_segment_takes_those_behind_it_along() -> None:
    disk, log = filled(20)
    middle = log.segments[2]
    disk.cut(middle.paths[0], middle.size - 1)
    found = opened(disk)
    assert found.log.end_offset == middle.next_offset - 2
    assert bases(found.log) == list(range(0, found.log.end_offset, 2))
    assert not disk.exists(path_of(log.segments[3].base_offset))
    assert "do not follow" in found.problems[0]


def test_a_sealed_segment_cut_at_a_batch_boundary_is_noticed() -> None:
    disk, log = filled(20)
    middle = log.segments[2]
    disk.cut(middle.paths[0], middle.position_of(middle.next_offset - 1))
    found = opened(disk)
    assert found.log.end_offset == middle.next_offset - 2
    assert bases(found.log) == list(range(0, found.log.end_offset, 2))


def test_a_missing_segment_is_noticed() -> None:
    disk, log = filled(20)
    disk.remove(log.segments[2].paths[0])
    found = opened(disk)
    assert found.log.end_offset == log.segments[2].base_offset


def test_a_missing_beginning_is_distinguished_from_a_deleted_one() -> None:
    disk, log = filled(20)
    disk.remove(log.segments[0].paths[0])
    found = opened(disk)
    assert (found.log.start_offset, found.damaged_from) == (log.segments[1].base_offset, 0)
    disk, log = filled(20)
    drop_segments(log, 1)
    found = opened(disk)
    assert (found.log.start_offset, found.damaged_from) == (log.start_offset, None)


def test_damage_below_the_recovery_point_is_set_aside_for_a_person() -> None:
    disk, log = filled(20, BIG)
    header_byte = read_all(log)[0][0].size * 10 + 16  # the magic of the eleventh batch
    disk.flip(path_of(0), header_byte * 8)
    content = disk.read_bytes(path_of(0))
    found = opened(disk, BIG, point=40)
    assert found.log.end_offset == 20
    (problem,) = found.problems
    kept = problem.rpartition(" ")[2]
    assert disk.read_bytes(path_of(0)) + disk.read_bytes(kept) == content
    assert bases(found.log) == list(range(0, 20, 2))


def test_segments_behind_damage_that_was_synced_are_set_aside() -> None:
    disk, log = filled(20)
    middle, after = log.segments[2], log.segments[3]
    disk.flip(middle.paths[0], 16 * 8)
    found = opened(disk, point=middle.base_offset + 1)
    assert found.log.end_offset == middle.base_offset
    assert disk.exists(f"{after.paths[0]}.damaged")
    assert len(found.problems) == 2


def test_lost_records_that_were_synced_are_reported() -> None:
    disk, log = filled(5, BIG)
    disk.cut(path_of(0), log.active.position_of(6))
    (problem,) = opened(disk, BIG, point=10).problems
    assert "ends at offset 6, yet up to 10 was synced" in problem


def test_a_damaged_header_in_a_clean_log_does_not_stop_the_start() -> None:
    disk = stopped(5, BIG)
    last = disk.size(path_of(0)) // 5 * 4
    disk.flip(path_of(0), (last + 16) * 8)
    found = opened(disk, BIG, clean=True, point=10)
    assert (found.log.end_offset, found.log.flushed_offset) == (8, 8)
    assert "is damaged at byte" in found.problems[0]


def test_no_flipped_bit_stops_the_start_of_a_clean_log() -> None:
    size = stopped(5, BIG).size(path_of(0))
    last_offset_bits = range(size // 5 * 4 * 8, size // 5 * 4 * 8 + 64)
    for bit in range(0, size * 8, 11):
        disk = stopped(5, BIG)
        disk.flip(path_of(0), bit)
        log = opened(disk, BIG, clean=True, point=10).log
        # No checksum covers the offset of the last batch, and no batch follows to compare with.
        assert log.end_offset <= 10 or bit in last_offset_bits
        assert append(log) >= log.start_offset


def test_a_damaged_sealed_segment_of_a_clean_log_keeps_what_follows() -> None:
    disk = stopped(20)
    log = opened(disk, clean=True, point=40).log
    log.close()
    second = log.segments[1]
    disk.flip(second.paths[0], 16 * 8)
    for suffix in ("index", "timeindex"):
        disk.remove(path_of(second.base_offset, suffix))
    found = opened(disk, clean=True, point=40)
    assert found.log.end_offset == 40
    assert "cannot be found" in found.problems[0]
    assert found.damaged_from == second.base_offset
    third = found.log.segments[2].base_offset
    piece = found.log.read(third, 1 << 20, 40, at_least_one=True)
    assert piece is not None


def test_missing_indexes_of_sealed_segments_are_rebuilt() -> None:
    disk, log = filled(20)
    for segment in log.segments:
        for path in segment.paths[1:]:
            disk.remove(path)
    again = opened(disk, point=40).log
    assert [s.max_timestamp for s in again.segments] == [s.max_timestamp for s in log.segments]
    found = finish(again.offset_for_time(7, 40, Work()))
    assert found is not None
    assert found.offset == 14


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_epochs_are_rebuilt_from_the_batches(damage: str, clean: bool) -> None:
    disk = stopped(20)
    path = f"{FOLDER}/leader-epoch-checkpoint"
    disk.flip(path, 9) if damage == "flip" else disk.remove(path)
    found = opened(disk, clean=clean, point=40)
    assert found.log.epochs.entries == [(0, 0), (1, 8), (2, 16), (3, 24), (4, 32)]
    assert ("rebuilt" in "".join(found.problems)) == (damage == "flip")


def test_stale_epochs_give_way_to_those_in_the_batches() -> None:
    disk, log = filled(8, BIG)
    log.epochs.entries = [(0, 0), (9, 6), (11, 14)]
    log.epochs.store()
    assert opened(disk, BIG).log.epochs.entries == [(0, 0), (1, 8)]


def test_a_start_beyond_the_end_restarts_the_log_there() -> None:
    disk, log = filled(3, BIG)
    advance_start(log, 6)
    disk.cut(path_of(0), log.active.position_of(2))
    found = opened(disk, BIG)
    assert (found.log.start_offset, found.log.end_offset) == (6, 6)
    assert append(found.log, make_batch(2)) == 6
    again = opened(disk, BIG).log
    assert (again.start_offset, again.end_offset, bases(again)) == (6, 8, [6])


def test_a_damaged_start_shows_more_rather_than_less() -> None:
    disk, log = filled(3, BIG)
    advance_start(log, 4)
    disk.flip(f"{FOLDER}/log-start-offset", 0)
    found = opened(disk, BIG)
    assert found.log.start_offset == 0
    assert "log-start-offset cannot be read" in found.problems[0]


def test_segments_below_the_start_do_not_come_back() -> None:
    disk, log = filled(20)
    third = log.segments[2].base_offset
    advance_start(log, third + 1)
    found = opened(disk)
    assert found.log.segments[0].base_offset == third
    assert not disk.exists(path_of(0))


def test_files_of_others_are_left_alone() -> None:
    disk, _ = filled(3)
    for name in ("readme.log", "0.log", "notes.txt", "x.snapshot"):
        disk.write_atomic(f"{FOLDER}/{name}", b"not ours")
    assert opened(disk).log.end_offset == 6
    assert disk.exists(f"{FOLDER}/readme.log")


def test_leftovers_are_swept() -> None:
    disk, _ = filled(3)
    disk.make_folder(f"{FOLDER}/cleaning")
    disk.write_atomic(f"{FOLDER}/cleaning/{0:020d}.log", b"half")
    disk.write_atomic(f"{path_of(0)}.6.deleted", b"old")
    disk.open(f"{FOLDER}/leader-epoch-checkpoint.tmp", create=True)
    opened(disk)
    assert not [n for n in disk.list(FOLDER) if n.endswith((".deleted", ".tmp")) or n == "cleaning"]


def test_what_a_dead_process_left_unsynced_is_synced_before_it_is_served() -> None:
    disk = MemoryDisk()
    log = opened(disk).log
    for number in range(20):
        append(log, make_batch(2, timestamp=number))
    found = opened(disk)  # the process has ended, its page cache has not
    assert found.log.flushed_offset == 40
    disk.power_cut(Random(1))
    assert opened(disk).log.end_offset == 40


def test_every_flipped_bit_is_truncated_or_harmless() -> None:
    """A read returns only batches that were appended, whatever bit is flipped."""
    disk, log = filled(3, BIG)
    originals = {header.crc: bytes(batch[CRC_FROM:]) for header, batch in read_all(log)}
    pristine = disk.read_bytes(path_of(0))
    for bit in range(0, len(pristine) * 8, 5):
        disk = MemoryDisk()
        disk.make_folder(FOLDER)
        disk.write_atomic(path_of(0), pristine)
        disk.flip(path_of(0), bit)
        for header, batch in read_all(opened(disk, BIG).log):
            assert originals[header.crc] == bytes(batch[CRC_FROM:])


def test_a_changed_offset_hides_its_batch_and_what_follows() -> None:
    for bit in range(64):
        disk, log = filled(5, BIG)
        one = log.active.size // 5
        disk.flip(path_of(0), one * 2 * 8 + bit)
        again = opened(disk, BIG).log
        assert bases(again) in ([0, 2], [0]), f"bit {bit}"
        assert again.end_offset <= 4


def test_a_batch_that_claims_offsets_of_the_next_segment_is_truncated() -> None:
    """The next segment may be damaged too, so that nothing contradicts the damage."""
    disk, log = filled(20)
    first = log.segments[0]
    per_batch = first.size // (first.next_offset // 2)
    disk.flip(path_of(0), per_batch * 8 + 32)  # the position of the second batch
    disk.flip(path_of(0), per_batch * 2 * 8 + 500)  # the content of the third batch
    again = opened(disk).log
    assert bases(again) == [0]
    assert again.end_offset == 2


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_a_batch_behind_a_gap_is_truncated_where_nothing_was_ever_removed(
    clean: bool, alone: bool
) -> None:
    """The last batch has no following batch to check its offset against, only the one before."""
    settings = LogSettings(compacts=False, segment_bytes=BIG.segment_bytes)
    disk, log = filled(0 if alone else 3, settings)
    append(log, make_batch(2))
    end, place = log.end_offset, log.active.size // (1 if alone else 4) * (0 if alone else 3)
    log.close()
    disk.flip(log.active.file.path, place * 8 + 59)
    found = opened(disk, settings, clean=clean, point=end)
    assert (found.log.end_offset, found.lost_synced) == (end - 2, True)
    assert found.problems
    assert append(found.log) == end - 2


@pytest.mark.parametrize("clean", [True, False])
def test_copied_gaps_are_remembered(clean: bool) -> None:
    """A topic that is no longer compacted still has the gaps of earlier compactions."""
    settings = LogSettings(compacts=False)
    disk, log = filled(1, settings)
    batch = make_batch(2)
    stamp(batch, 0, 7, 0)
    log.append_replicated(memoryview(batch), [parse_header(batch)])
    log.flush()
    disk.power_cut(Random(1))
    found = opened(disk, settings, clean=clean, point=9)
    assert (found.log.end_offset, found.problems) == (9, ())
    assert bases(found.log) == [0, 7]


def test_an_index_that_no_flush_covers_is_rebuilt() -> None:
    """A flush that began before the roll does not cover writes after it."""
    disk = MemoryDisk()
    log = opened(disk, BIG).log
    for number in range(20):
        append(log, make_batch(2, timestamp=number))
    task = log.begin_flush()
    assert task is not None
    log.roll()
    log.finish_flush(task)
    disk.cut(path_of(0, "timeindex"), 12)
    again = opened(disk, BIG, point=log.flushed_offset).log
    assert [segment.max_timestamp for segment in again.segments] == [19, -1]
