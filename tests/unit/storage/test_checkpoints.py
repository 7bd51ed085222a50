"""Tests small files at the root: recovery points, the clean marker, and their checksums."""

from random import Random

import pytest

from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.storage.checkpoints import (
    CLEAN_MARKER,
    RECOVERY_POINTS,
    Checkpoints,
    read_number,
    seal,
    unseal,
    write_number,
)
from tests.support.disks.memory_disk import MemoryDisk

POINTS = {TopicPartition("ab" * 16, 0): 100, TopicPartition("ab" * 16, 1): 0}


def test_points_are_read_back() -> None:
    checkpoints = Checkpoints(MemoryDisk(), "data")
    assert checkpoints.recovery_points() == {}
    checkpoints.write_recovery_points(POINTS)
    assert checkpoints.recovery_points() == POINTS
    checkpoints.write_recovery_points({})
    assert checkpoints.recovery_points() == {}


def test_damaged_points_are_no_points() -> None:
    disk = MemoryDisk()
    checkpoints = Checkpoints(disk, "data")
    checkpoints.write_recovery_points(POINTS)
    path = f"data/{RECOVERY_POINTS}"
    for bit in range(disk.size(path) * 8):
        disk.flip(path, bit)
        assert checkpoints.recovery_points() == {}
        disk.flip(path, bit)


def test_the_marker_is_taken_once() -> None:
    checkpoints = Checkpoints(MemoryDisk(), "data")
    assert not checkpoints.take_clean_marker()
    checkpoints.write_clean_marker()
    assert checkpoints.take_clean_marker()
    assert not checkpoints.take_clean_marker()


@pytest.mark.parametrize("seed", range(20))
def test_a_marker_that_was_taken_does_not_come_back(seed: int) -> None:
    disk = MemoryDisk()
    Checkpoints(disk, "data").write_clean_marker()
    assert Checkpoints(disk, "data").take_clean_marker()
    disk.power_cut(Random(seed))
    assert not Checkpoints(disk, "data").take_clean_marker()


@pytest.mark.parametrize("seed", range(20))
def test_the_clean_marker_covers_everything_written_before(seed: int) -> None:
    disk = MemoryDisk()
    disk.make_folder("data/a")
    disk.open("data/a/file", create=True).append((b"content",))
    Checkpoints(disk, "data").write_clean_marker()
    disk.power_cut(Random(seed))
    assert disk.exists(f"data/{CLEAN_MARKER}")
    assert disk.read_bytes("data/a/file") == b"content"


def test_a_seal_holds_any_text() -> None:
    for text in ("\n", "0\n1\n2\n", "crc32c 00000000\n"):
        assert unseal(seal(text)) == text


@pytest.mark.parametrize("content", [b"", b"5\n", b"crc32c ", b"\xff\xfe\n", seal("5\n")[:-1]])
def test_what_is_not_sealed_is_refused(content: bytes) -> None:
    with pytest.raises(StorageError):
        unseal(content)


def test_numbers_are_kept_or_known_to_be_damaged() -> None:
    disk = MemoryDisk()
    assert read_number(disk, "data/n") is None
    write_number(disk, "data/n", 123_456_789_012)
    assert read_number(disk, "data/n") == 123_456_789_012
    disk.flip("data/n", 3)
    with pytest.raises(StorageError, match="data/n cannot be read"):
        read_number(disk, "data/n")


def test_high_watermarks_are_kept_apart_from_recovery_points() -> None:
    checkpoints = Checkpoints(MemoryDisk(), "data")
    checkpoints.write_recovery_points(POINTS)
    assert checkpoints.high_watermarks() == {}
    higher = {name: point + 1 for name, point in POINTS.items()}
    checkpoints.write_high_watermarks(higher)
    assert (checkpoints.recovery_points(), checkpoints.high_watermarks()) == (POINTS, higher)
