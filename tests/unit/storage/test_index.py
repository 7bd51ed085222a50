"""Tests sparse indexes: lookups, pages, damage, and full disks."""

import pytest

from barnabas.storage.index import PAGE_BYTES, OffsetIndex, TimeIndex
from tests.support.disks.memory_disk import MemoryDisk

PATH = "data/0.index"


def filled(disk: MemoryDisk, count: int) -> OffsetIndex:
    index = OffsetIndex(disk, PATH)
    for number in range(count):
        index.append(number * 10, number * 100)
    return index


@pytest.mark.parametrize("count", [0, 1, 2, 7, 511, 512, 513, 1500])
def test_the_floor_of_every_value(count: int) -> None:
    index = filled(MemoryDisk(), count)
    assert index.count == count
    for value in range(-5, min(count, 20) * 10 + 5):
        expected = min(value // 10, count - 1)
        assert index.floor(value) == (None if expected < 0 else (expected * 10, expected * 100))
    if count:
        assert index.last() == index.floor(1 << 31) == ((count - 1) * 10, (count - 1) * 100)
        assert index.floor(150, column=1) == ((10, 100) if count > 1 else (0, 0))


def test_whole_pages_reach_the_file_by_themselves() -> None:
    disk = MemoryDisk()
    filled(disk, PAGE_BYTES // 8 + 3)
    assert disk.size(PATH) == PAGE_BYTES


def test_what_is_written_can_be_loaded_and_added_to() -> None:
    disk = MemoryDisk()
    filled(disk, 700).write()
    again = OffsetIndex(disk, PATH)
    again.load()
    assert again.count == 700
    assert again.floor(6_543) == (6_540, 65_400)
    again.append(7_000, 70_000)
    again.write()
    again.load()
    assert again.last() == (7_000, 70_000)
    assert again.entry(0) == (0, 0)


def test_a_cut_entry_is_ignored_and_overwritten() -> None:
    disk = MemoryDisk()
    filled(disk, 10).write()
    disk.cut(PATH, 10 * 8 - 3)
    index = OffsetIndex(disk, PATH)
    index.load()
    assert index.last() == (80, 800)
    index.append(90, 900)
    index.write()
    index.load()
    assert index.entry(9) == (90, 900)


def test_a_full_disk_does_not_fail_the_append() -> None:
    disk = MemoryDisk()
    disk.room = 0
    index = filled(disk, 2_000)
    assert index.count == 2_000
    assert index.floor(15_005) == (15_000, 150_000)
    with pytest.raises(OSError, match="No space"):
        index.write()
    disk.room = None
    index.write()
    assert disk.size(PATH) == 2_000 * 8


def test_damage_leads_only_to_entries_that_fit() -> None:
    disk = MemoryDisk()
    filled(disk, 100).write()
    disk.flip(PATH, 50 * 64 + 0)  # the fiftieth offset is now above all others
    index = OffsetIndex(disk, PATH)
    index.load()
    fitting = list(index.downwards(600))
    assert fitting
    assert all(first <= 600 for first, _ in fitting)


def test_nothing_is_left_after_clearing() -> None:
    disk = MemoryDisk()
    index = filled(disk, 700)
    index.write()
    index.clear()
    assert index.count == 0
    assert index.floor(1 << 30) is None
    assert not disk.exists(PATH)


def test_times_are_wider_than_offsets() -> None:
    index = TimeIndex(MemoryDisk(), PATH)
    index.append(1 << 41, 7)
    index.append(1 << 42, 9)
    assert index.floor((1 << 42) - 1) == (1 << 41, 7)
    assert index.floor(8, column=1) == (1 << 41, 7)
