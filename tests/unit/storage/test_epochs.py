"""Tests leader epochs: what is stored, and the result of a lookup (KIP-101)."""

import pytest

from barnabas.model.errors import StorageError
from barnabas.storage.epochs import LeaderEpochs
from tests.support.disks.memory_disk import MemoryDisk


def epochs(*entries: tuple[int, int], disk: MemoryDisk | None = None) -> LeaderEpochs:
    found = LeaderEpochs(disk or MemoryDisk(), "data")
    for entry in entries:
        found.assign(*entry)
    return found


def test_an_epoch_that_wrote_nothing_is_forgotten() -> None:
    assert epochs((1, 0), (2, 10), (3, 10)).entries == [(1, 0), (3, 10)]


def test_an_epoch_that_is_over_changes_nothing() -> None:
    assert epochs((1, 0), (3, 10), (2, 20), (3, 30)).entries == [(1, 0), (3, 10)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-2, (-2, 0)),
        (-1, (-1, -1)),
        (0, (0, 0)),
        (1, (1, 10)),
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 50)),
        (5, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch(asked: int, answer: tuple[int, int]) -> None:
    assert epochs((1, 0), (2, 10), (4, 20)).end_offset_for(asked, 50) == answer


def test_nothing_is_known_of_an_empty_log() -> None:
    assert epochs().end_offset_for(0, 0) == (-1, -1)
    assert epochs().epoch_for(0) == -1


def test_the_epoch_of_an_offset() -> None:
    found = epochs((1, 5), (2, 10))
    assert [found.epoch_for(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 2, 2]


def test_truncation_at_both_ends() -> None:
    found = epochs((1, 0), (2, 10), (3, 20))
    found.truncate_end(20)
    assert found.entries == [(1, 0), (2, 10)]
    found.truncate_start(15)
    assert found.entries == [(2, 15)]
    found.truncate_start(5)
    assert found.entries == [(2, 15)]


def test_a_start_on_a_boundary_belongs_to_the_later_epoch() -> None:
    found = epochs((1, 0), (2, 10))
    found.truncate_start(10)
    assert found.entries == [(2, 10)]


def test_what_is_stored_is_loaded() -> None:
    disk = MemoryDisk()
    assert epochs((1, 0), (7, 123), disk=disk).store()
    again = LeaderEpochs(disk, "data")
    assert again.load()
    assert again.entries == [(1, 0), (7, 123)]
    assert not again.store()


def test_there_may_be_no_file() -> None:
    assert not epochs().load()


def test_damage_anywhere_is_noticed() -> None:
    disk = MemoryDisk()
    epochs((1, 0), (7, 123), disk=disk).store()
    path = "data/leader-epoch-checkpoint"
    for bit in range(disk.size(path) * 8):
        disk.flip(path, bit)
        with pytest.raises(StorageError, match="cannot be read"):
            epochs(disk=disk).load()
        disk.flip(path, bit)
    for size in range(disk.size(path)):
        shorter = MemoryDisk()
        shorter.write_atomic(path, disk.read_bytes(path)[:size])
        with pytest.raises(StorageError):
            epochs(disk=shorter).load()


def test_a_damaged_file_is_replaced_even_if_nothing_is_known() -> None:
    disk = MemoryDisk()
    disk.write_atomic("data/leader-epoch-checkpoint", b"\xff\xfe garbage")
    found = epochs(disk=disk)
    with pytest.raises(StorageError):
        found.load()
    found.store()
    assert epochs(disk=disk).load()
