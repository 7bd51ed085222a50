"""Tests the index of aborted transactions: overlaps with a range, and rebuilding."""

import struct
from random import Random

import pytest

from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import TRANSACTIONAL
from barnabas.storage import producer_snapshots
from barnabas.storage.aborted import Aborted, AbortedIndex
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import Recovered, open_log
from barnabas.storage.segment import Segment
from tests.support.disks.log_changes import drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, make_marker

FOLDER = "data/orders/0"
SETTINGS = LogSettings(segment_bytes=330)
PATH = f"{FOLDER}/00000000000000000000.txnindex"


def index_of(*entries: Aborted, disk: MemoryDisk | None = None) -> AbortedIndex:
    disk = disk or MemoryDisk()
    disk.make_folder(FOLDER)
    index = AbortedIndex(disk, PATH, 0)
    for entry in entries:
        index.append(entry)
    return index


def overlapping(index: AbortedIndex, offset: int, upper: int) -> tuple[list[int], bool]:
    found: list[Aborted] = []
    complete = index.collect(offset, upper, found)
    return [entry.producer_id for entry in found], complete


ENTRIES = [Aborted(1, 0, 9, 5), Aborted(2, 12, 15, 5), Aborted(3, 5, 20, 21)]


def test_the_file_is_laid_out_as_kafka_does_it() -> None:
    disk = MemoryDisk()
    index_of(ENTRIES[0], disk=disk)
    assert disk.read_bytes(PATH) == struct.pack(">hqqqq", 0, 1, 0, 9, 5)


def test_what_overlaps_a_range_is_found() -> None:
    index = index_of(*ENTRIES)
    assert overlapping(index, 0, 100) == ([1, 2, 3], False)
    assert overlapping(index, 0, 5) == ([1], True)
    assert overlapping(index, 9, 10) == ([1, 3], True)
    assert overlapping(index, 10, 12) == ([3], True)
    assert overlapping(index, 10, 13) == ([2, 3], True)
    assert overlapping(index, 16, 100) == ([3], False)
    assert overlapping(index, 21, 100) == ([], False)


def test_entries_survive_a_restart_and_go_with_a_truncation() -> None:
    disk = MemoryDisk()
    index_of(*ENTRIES, disk=disk)
    again = index_of(disk=disk)
    assert again.entries() == ENTRIES
    again.truncate(16)
    assert index_of(disk=disk).entries() == ENTRIES[:2]
    again.truncate(0)
    assert index_of(disk=disk).entries() == []
    again.append(ENTRIES[2])
    assert index_of(disk=disk).entries() == ENTRIES[2:]


def test_a_full_disk_takes_its_entries_later() -> None:
    disk = MemoryDisk()
    index = index_of(ENTRIES[0], disk=disk)
    disk.room = 0
    index.append(ENTRIES[1])
    assert index.entries() == ENTRIES[:2]
    assert index_of(disk=disk).entries() == ENTRIES[:1]
    disk.room = None
    index.append(ENTRIES[2])
    assert index_of(disk=disk).entries() == ENTRIES


def write(log: Log, producer: int, sequence: int) -> None:
    append(log, make_batch(producer=(producer, 0, sequence), attributes=TRANSACTIONAL))


def opened(disk: MemoryDisk, *, clean: bool = False, point: int = 0) -> Recovered:
    return open_log(disk, FOLDER, SETTINGS, root="data", clean=clean, recovery_point=point)


def filled(disk: MemoryDisk) -> Log:
    """Return a flushed log of many segments: two producers abort all transactions, one half."""
    log = opened(disk).log
    for number in range(12):
        for producer in (1, 2, 3):
            write(log, producer, number)
        append(log, make_marker(1, commit=False))
        append(log, make_marker(3, commit=bool(number % 2)))
        if number % 4 == 3:
            append(log, make_marker(2, commit=False))
    log.flush()
    assert len(log.segments) > 8
    return log


def indexed(log: Log) -> list[list[Aborted]]:
    return [segment.aborted.entries() for segment in log.segments]


def test_each_entry_is_in_the_segment_of_its_marker() -> None:
    log = filled(MemoryDisk())
    for segment in log.segments:
        for entry in segment.aborted.entries():
            assert segment.base_offset <= entry.last_offset < segment.next_offset
    assert len(log.aborted(0, log.end_offset)) == 12 + 6 + 3
    assert sum(map(len, indexed(log))) == 21


def test_a_range_finds_what_later_segments_know_of_it() -> None:
    log = filled(MemoryDisk())
    everything = [entry for entries in indexed(log) for entry in entries]
    for offset in range(0, log.end_offset, 3):
        for upper in (offset + 1, offset + 10, log.end_offset):
            expected = [e for e in everything if e.last_offset >= offset and e.first_offset < upper]
            assert log.aborted(offset, upper) == expected


def test_what_was_read_is_where_the_list_ends() -> None:
    log = filled(MemoryDisk())
    piece = log.read(0, 1, log.end_offset, at_least_one=True)
    assert piece is not None
    assert [entry.producer_id for entry in log.aborted_in(0, piece)] == [1]
    assert log.aborted_in(0, piece)[0].first_offset == 0


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["remove", "flip", "cut", "behind", "ahead"])
def test_a_wrong_index_is_rebuilt(clean: bool, damage: str) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    expected = indexed(log)
    if clean:
        log.close()
    for segment in log.segments:
        path, count = segment.aborted.path, segment.aborted.count
        if not count:
            continue
        match damage:
            case "remove":
                disk.remove(path)
            case "flip":
                disk.flip(path, Random(count).randrange(34 * 8))
            case "cut":
                disk.cut(path, 34 * count - 1)
            case "behind":
                disk.cut(path, 34 * (count - 1))
            case _:
                segment.aborted.append(Aborted(1, 0, segment.next_offset, 0))
    found = opened(disk, clean=clean, point=log.end_offset)
    assert indexed(found.log) == expected
    assert "rebuilt" in "".join(found.problems)
    found.log.flush()
    found.log.close()
    again = opened(disk, clean=True)
    assert (indexed(again.log), again.problems) == (expected, ())


def test_an_index_that_is_as_it_was_costs_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.close()
    monkeypatch.setattr(producer_snapshots, "aborted_in", None)
    assert indexed(opened(disk, clean=True).log) == indexed(log)


@pytest.mark.parametrize("seed", range(40))
def test_a_power_cut_takes_no_entry_of_a_transaction_that_it_leaves(seed: int) -> None:
    disk, rng = MemoryDisk(), Random(seed)
    log = opened(disk).log
    aborted: list[Aborted] = []
    for number in range(20):
        write(log, 1, number)
        if rng.random() < 0.5:
            first_offset = log.producers.open_transactions()[1]
            marker = append(log, make_marker(1, commit=False))
            aborted.append(Aborted(1, first_offset, marker, marker + 1))
        if rng.random() < 0.3:
            log.flush()
    disk.power_cut(rng)
    again = opened(disk, point=log.flushed_offset if seed % 2 else 0).log
    kept = [entry for entry in aborted if entry.last_offset < again.end_offset]
    assert again.aborted(0, again.end_offset) == kept


def test_a_snapshot_does_not_vouch_for_a_segment_that_was_joined_with_the_one_it_knew() -> None:
    disk = MemoryDisk()
    log = opened(disk).log
    write(log, 1, 0)
    append(log, make_marker(1, commit=False))
    log.roll()
    append(log)
    log.roll()
    first, second, _ = log.segments
    assert producer_snapshots.vouches_for(log, second, second.next_offset)
    disk.remove(first.aborted.path)
    joined = Segment(disk, FOLDER, first.base_offset)
    assert not producer_snapshots.vouches_for(log, joined, second.next_offset)


def test_segments_from_before_transactions_need_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = MemoryDisk()
    log = opened(disk).log
    for number in range(12):
        append(log, make_batch(producer=(1, 0, number)))
    log.flush()
    log.close()
    body = struct.pack(">I", 0)
    for name in disk.list(FOLDER):
        if name.endswith(".snapshot"):
            old = struct.pack(">hI", 1, crc32c(body)) + body
            disk.write_atomic(f"{FOLDER}/{name}", old)
    monkeypatch.setattr(producer_snapshots, "aborted_in", None)
    again = opened(disk, clean=True)
    assert (again.log.end_offset, again.problems) == (12, ())


def test_a_dropped_segment_takes_its_index_along() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    kept = [entry for entries in indexed(log)[3:] for entry in entries]
    retired = drop_segments(log, 3)
    assert any(".txnindex" in path for path in retired)
    assert log.aborted(0, log.end_offset) == kept
    for path in retired:
        disk.remove(path)
    assert opened(disk).log.aborted(0, log.end_offset) == kept


def test_a_transaction_whose_marker_is_known_to_no_good_snapshot_does_not_stay_open() -> None:
    """The newest snapshot is damaged, and compaction has removed what an older one needs."""
    disk = MemoryDisk()
    log = filled(disk)
    states = log.producers
    assert states.open_transactions() == {}
    oldest = producer_snapshots.snapshot_offsets(disk, FOLDER)[0]
    old = producer_snapshots.decode(
        disk.read_bytes(producer_snapshots.snapshot_path(FOLDER, oldest))
    )
    old.by_id[99] = old.by_id[1]
    old.by_id[99].transaction_start = 1  # the position of another producer's batch
    for offset in producer_snapshots.snapshot_offsets(disk, FOLDER):
        path = producer_snapshots.snapshot_path(FOLDER, offset)
        if offset == oldest:
            disk.write_atomic(path, producer_snapshots.encode(old))
        else:
            disk.flip(path, 100)
    log.flush()
    again = opened(disk, clean=True)
    assert 99 in again.log.producers.by_id
    assert again.log.producers.open_transactions() == {}


def test_damage_where_a_transaction_begins_is_reported_and_does_not_stop_the_start() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    append(log, make_batch(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    log.roll()
    append(log, make_batch())
    log.roll()
    log.flush()
    for offset in producer_snapshots.snapshot_offsets(disk, FOLDER)[1:]:
        disk.flip(producer_snapshots.snapshot_path(FOLDER, offset), 100)
    for bit in (16 * 8, 23 * 8):  # the magic of the first batch, and how many records it has
        disk.flip(f"{FOLDER}/{0:020d}.log", bit)
    found = open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=log.end_offset)
    assert (found.log.end_offset, found.damaged_from) == (log.end_offset, 0)
    append(found.log, make_batch())


def test_a_transaction_that_a_flipped_bit_opens_is_known_as_damage() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    append(log, make_batch())
    at = log.active.size
    append(log, make_batch(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    append(log, make_marker(7, commit=True))
    log.flush()
    disk.flip(log.active.paths[0], (at + 45) * 8)  # the producer's id
    found = open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=log.end_offset)
    assert len(found.log.producers.open_transactions()) == 1
    assert found.damaged_from == 1
    sound = open_log(MemoryDisk(), FOLDER, SETTINGS, root="data").log
    append(sound, make_batch(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    sound.flush()
    again = open_log(sound.disk, FOLDER, SETTINGS, root="data", recovery_point=sound.end_offset)
    assert (again.damaged_from, len(again.log.producers.open_transactions())) == (None, 1)


def test_a_transaction_that_a_flipped_bit_opens_is_known_as_damage_when_a_log_is_truncated() -> (
    None
):
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    append(log, make_batch())
    at = log.active.size
    append(log, make_batch(producer=(7, 0, 0)))
    append(log, make_batch(producer=(7, 0, 1)))
    append(log, make_batch())
    log.flush()
    log.truncate(3)
    assert log.damaged_from is None
    disk.flip(log.active.paths[0], (at + 22) * 8 + 4)  # the bit for a transactional batch
    log.truncate(2)
    assert log.producers.open_transactions() == {7: 1}
    assert log.damaged_from == 1


def test_a_damaged_marker_is_reported_because_aborted_records_would_be_read() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    append(log, make_batch(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    append(log, make_marker(7, commit=False))
    log.roll()
    append(log, make_batch())
    log.flush()
    path = f"{FOLDER}/{0:020d}"
    disk.flip(f"{path}.log", (disk.size(f"{path}.log") - 1) * 8)
    disk.remove(f"{path}.txnindex")
    found = open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=log.end_offset)
    assert "aborts are not all known" in found.problems[0]
    assert found.damaged_from == 0


@pytest.mark.parametrize("left", [7, 34], ids=["torn", "whole"])
def test_an_index_whose_segment_a_power_cut_took_does_not_join_the_next_one(left: int) -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    append(log, make_batch(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    log.flush()
    end = log.end_offset
    stale = disk.open(f"{FOLDER}/{end:020d}.txnindex", create=True)
    stale.append((struct.pack(">hqqqq", 0, 9, 0, end, end)[:left],))
    log = open_log(disk, FOLDER, SETTINGS, root="data").log
    log.roll()
    append(log, make_marker(7, commit=False))
    assert log.aborted(0, log.end_offset) == [Aborted(7, 0, end, end + 1)]
