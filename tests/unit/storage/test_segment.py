"""Tests one segment: lookups in it, and that damaged batches are never served."""

import errno

import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.records import parse_header, stamp
from barnabas.storage import trust
from barnabas.storage.index import PAGE_BYTES, TimeIndex
from barnabas.storage.segment import RECENT_MAX, Segment
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch

LOG = "data/00000000000000000100.log"


def opened(disk: MemoryDisk, interval: int = 200) -> Segment:
    return Segment(disk, "data", 100, create=True, interval=interval)


def fill(segment: Segment, count: int, size: int = 30, gap: int = 0) -> list[tuple[int, int, int]]:
    """Append batches of two records, with gaps between; return base, position and end of each."""
    placed = []
    for number in range(count):
        base = segment.next_offset + gap
        batch = make_batch([(b"k", b"v" * size)] * 2, timestamp=1_000 + number)
        stamp(batch, 0, base, 5)
        position = segment.size
        segment.append(batch, parse_header(batch), base)
        placed.append((base, position, segment.size))
    return placed


def reloaded(disk: MemoryDisk, segment: Segment) -> Segment:
    """Return the segment as it is after a clean restart."""
    segment.write_indexes()
    again = Segment(disk, "data", 100, interval=200)
    again.load_tail()
    again.next_offset = segment.next_offset
    again.freeze()
    return again


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("count", [1, 2, 40, RECENT_MAX + 60])
def test_every_offset_leads_to_its_batch_or_the_next(count: int, gap: int) -> None:
    disk = MemoryDisk()
    segment = opened(disk)
    placed = fill(segment, count, gap=gap)
    for found in (segment, reloaded(disk, segment)):
        for base, position, _ in placed:
            for offset in range(base - gap, base + 2):
                assert found.position_of(offset) == position
        assert found.position_of(found.next_offset) == found.size
        assert found.position_of(100) == 0


def test_a_cut_is_always_a_boundary_and_never_beyond_the_limit() -> None:
    disk = MemoryDisk()
    segment = opened(disk)
    placed = fill(segment, 300)
    ends = {end for _, _, end in placed} | {0}
    for found in (segment, reloaded(disk, segment)):
        for start in (0, placed[7][1], placed[200][1]):
            for limit in range(start, start + 700, 7):
                end = found.end_within(start, limit)
                assert end in ends
                assert start <= end <= max(start, limit)
                if end == start:
                    assert found.first_batch_end(start) > limit


def test_indexes_survive_a_restart_and_lead_to_the_same_places() -> None:
    disk = MemoryDisk()
    segment = opened(disk)
    fill(segment, 100)
    again = reloaded(disk, segment)
    assert (again.max_timestamp, again.max_timestamp_offset) == (1_099, 299)
    assert again.offset_index.count == segment.offset_index.count > 10
    assert again.first_append_ms == 1_000


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_damaged_index_costs_time_and_nothing_else(suffix: str) -> None:
    path = f"data/00000000000000000100{suffix}"
    disk = MemoryDisk()
    segment = opened(disk)
    placed = fill(segment, 60)
    segment.write_indexes()
    for bit in range(0, disk.size(path) * 8, 3):
        disk.flip(path, bit)
        again = Segment(disk, "data", 100, interval=200)
        if not again.load_indexes():
            again.rebuild_indexes()
            disk.open(path, create=True).truncate(0)
            again.write_indexes()
        again.next_offset = segment.next_offset
        for base, position, _ in placed[::7]:
            assert again.position_of(base + 1) == position
        assert again.max_timestamp == 1_059
        before = again.offset_before_time(1_030)
        assert 100 <= before <= 100 + 2 * 30
        disk.remove(path)
        segment.rebuild_indexes()
        segment.write_indexes()


@pytest.mark.parametrize("missing", [".index", ".timeindex"])
def test_a_missing_index_is_noticed(missing: str) -> None:
    disk = MemoryDisk()
    segment = opened(disk)
    fill(segment, 60)
    segment.write_indexes()
    disk.remove(f"data/00000000000000000100{missing}")
    again = Segment(disk, "data", 100, interval=200)
    assert not again.load_indexes()
    again.load_tail()
    assert (again.next_offset, again.max_timestamp) == (220, 1_059)


def test_a_full_disk_at_an_index_page_leaves_log_and_positions_in_step() -> None:
    disk = MemoryDisk()
    segment = opened(disk, interval=0)
    disk.room = 512 * 8 * 30
    with pytest.raises(OSError, match="No space"):
        fill(segment, 2_000)
    assert segment.size == segment.file.size()
    disk.room = None
    ((base, position, _),) = fill(segment, 1)
    assert parse_header(segment.file.read(position, 61)).base_offset == base


def test_a_truncated_segment_forgets_what_was_cut() -> None:
    disk = MemoryDisk()
    segment, _ = untrusted(disk, 50)
    position = segment.position_of(140)
    segment.truncate(position)
    assert (segment.size, segment.next_offset) == (position, 140)
    assert segment.max_timestamp == 1_019
    assert all(relative < 40 for relative, _ in segment.offset_index.downwards(1 << 30))
    (placed,) = fill(segment, 1)
    assert segment.position_of(140) == placed[1]
    segment.truncate(0)
    assert (segment.next_offset, segment.first_append_ms, segment.max_timestamp) == (100, None, -1)


def untrusted(
    disk: MemoryDisk, count: int, size: int = 30
) -> tuple[Segment, list[tuple[int, int, int]]]:
    segment = opened(disk)
    placed = fill(segment, count, size)
    return reloaded(disk, segment), placed


def test_a_flipped_bit_hides_its_batch_and_no_other() -> None:
    disk = MemoryDisk()
    segment, placed = untrusted(disk, 40)
    base, position, end = placed[20]
    disk.flip(LOG, (end - 4) * 8)
    assert segment.ensure_trusted(0, segment.size, 100) == position
    with pytest.raises(CorruptBatchError, match=f"damaged at byte {position}"):
        segment.ensure_trusted(position, segment.size, base)
    assert segment.ensure_trusted(end, segment.size, base + 2) == segment.size


def test_damage_that_may_hide_the_wanted_batch_is_reported() -> None:
    disk = MemoryDisk()
    segment, placed = untrusted(disk, 40)
    _, _, end = placed[20]
    disk.flip(LOG, (end - 4) * 8)
    with pytest.raises(CorruptBatchError, match="damaged before"):
        segment.ensure_trusted(end, segment.size, placed[20][0])


def test_a_changed_base_offset_is_noticed_though_no_checksum_covers_it() -> None:
    for bit in range(64):
        disk = MemoryDisk()
        segment, placed = untrusted(disk, 40)
        base, position, end = placed[20]
        disk.flip(LOG, position * 8 + bit)
        try:
            good = segment.ensure_trusted(0, segment.size, 100)
        except CorruptBatchError:
            good = 0
        assert good <= position
        with pytest.raises(CorruptBatchError):
            segment.ensure_trusted(position, end, base)


def test_own_writes_are_trusted_until_another_process_writes() -> None:
    disk = MemoryDisk()
    segment = opened(disk)
    placed = fill(segment, 10)
    segment.freeze()
    assert segment.ensure_trusted(0, segment.size, 100) == segment.size
    disk.flip(LOG, (placed[0][2] - 1) * 8)
    with pytest.raises(CorruptBatchError):
        segment.ensure_trusted(0, segment.size, 100)


def test_batches_larger_than_a_block_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "BLOCK_BYTES", 1_000)
    disk = MemoryDisk()
    segment, placed = untrusted(disk, 6, size=1_500)
    for base, position, end in placed:
        assert segment.ensure_trusted(position, end, base) == end
    base, position, end = placed[3]
    disk.flip(LOG, (position + 2_500) * 8)
    assert segment.ensure_trusted(0, segment.size, 100) == position
    with pytest.raises(CorruptBatchError):
        segment.ensure_trusted(position, end, base)
    assert segment.ensure_trusted(placed[4][1], segment.size, placed[4][0]) == segment.size


def test_an_append_opens_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is in the log by then: failing to open a file must not lose the response."""

    def refuse(path: str) -> bytes:
        raise OSError(errno.EMFILE, "too many open files", path)

    disk = MemoryDisk()
    segment = opened(disk, interval=0)
    monkeypatch.setattr(disk, "map", refuse)
    placed = fill(segment, 3 * PAGE_BYTES // TimeIndex.ENTRY.size)
    assert segment.size == segment.file.size() == placed[-1][2]
