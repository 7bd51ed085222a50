"""Tests the disk that other tests rely on: what it keeps, what it loses, and how it fails."""

import errno
from random import Random

import pytest

from tests.support.disks.memory_disk import MemoryDisk, MemoryFile

SEEDS = range(60)


def written(disk: MemoryDisk, *, sync: bool, name: bool) -> MemoryFile:
    file = disk.open("data/file", create=True)
    file.append((b"safe",))
    if sync:
        file.sync()
    if name:
        disk.sync_folder("data")
    return file


def outcomes(*, sync: bool, name: bool) -> set[bytes | None]:
    found: set[bytes | None] = set()
    for seed in SEEDS:
        disk = MemoryDisk()
        written(disk, sync=sync, name=name)
        disk.power_cut(Random(seed))
        found.add(disk.read_bytes("data/file") if disk.exists("data/file") else None)
    return found


def test_what_is_synced_with_its_name_stays() -> None:
    assert outcomes(sync=True, name=True) == {b"safe"}


def test_a_synced_file_without_its_name_may_be_gone() -> None:
    assert outcomes(sync=True, name=False) == {b"safe", None}


def test_a_name_without_its_content_may_be_cut_anywhere_or_garbage() -> None:
    found = outcomes(sync=False, name=True)
    assert {b"", b"sa", b"safe"} <= found
    assert any(content and not b"safe".startswith(content) for content in found)
    assert None not in found


def test_an_unsynced_cut_may_be_undone() -> None:
    found = set()
    for seed in SEEDS:
        disk = MemoryDisk()
        written(disk, sync=True, name=True).truncate(1)
        disk.power_cut(Random(seed))
        found.add(disk.read_bytes("data/file"))
    assert found == {b"safe", b"s"}


def test_a_rename_happens_or_does_not() -> None:
    found = set()
    for seed in SEEDS:
        disk = MemoryDisk()
        written(disk, sync=True, name=True)
        disk.rename("data/file", "data/other")
        disk.power_cut(Random(seed))
        found.add(tuple(disk.list("data")))
    assert found == {("file",), ("other",)}


def test_a_synced_rename_from_another_folder_stays() -> None:
    for seed in SEEDS:
        disk = MemoryDisk()
        disk.make_folder("data/work")
        disk.open("data/work/file", create=True).sync()
        disk.rename("data/work/file", "data/file")
        disk.sync_folder("data")
        disk.power_cut(Random(seed))
        assert disk.exists("data/file")


def test_the_same_seed_does_the_same() -> None:
    def after(seed: int) -> list[bytes]:
        disk = MemoryDisk()
        for number in range(20):
            disk.open(f"data/{number}", create=True).append((bytes(range(100)),))
        disk.power_cut(Random(seed))
        return [disk.read_bytes(f"data/{name}") for name in disk.list("data")]

    assert after(5) == after(5)
    assert after(5) != after(6)


def test_open_files_die_with_the_power() -> None:
    disk = MemoryDisk()
    file = written(disk, sync=True, name=True)
    disk.power_cut(Random(0))
    with pytest.raises(OSError, match="power failed"):
        file.read(0, 1)


def test_a_full_disk_takes_nothing_and_leaves_the_file_alone() -> None:
    disk = MemoryDisk()
    file = written(disk, sync=True, name=True)
    disk.room = 3
    with pytest.raises(OSError, match="No space"):
        file.append((b"four",))
    assert file.read(0, 9) == b"safe"
    file.append((b"abc",))
    assert disk.room == 0


def test_room_comes_back_with_what_is_removed() -> None:
    disk = MemoryDisk()
    written(disk, sync=True, name=True)
    disk.room = 0
    disk.remove("data/file")
    assert disk.space("data")[1] == 4


def test_a_failure_can_be_put_anywhere() -> None:
    disk = MemoryDisk()
    file = written(disk, sync=True, name=True)

    def before(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "broken", path)

    disk.before = before
    file.append((b"!",))
    with pytest.raises(OSError, match="broken"):
        file.sync()


def test_a_flipped_bit_stays_flipped() -> None:
    disk = MemoryDisk()
    file = written(disk, sync=True, name=True)
    version = file.version()
    disk.flip("data/file", 1)
    assert file.read(0, 4) == b"qafe"
    assert file.version() != version


def test_folders_go_with_all_that_is_in_them() -> None:
    disk = MemoryDisk()
    disk.make_folder("data/a/b")
    disk.open("data/a/b/c", create=True)
    disk.remove_tree("data/a")
    assert disk.list("data") == []
    assert disk.list("data/a") == []


def test_a_folder_is_not_renamed_over_a_full_one() -> None:
    disk = MemoryDisk()
    disk.make_folder("data/a")
    disk.make_folder("data/b/c")
    with pytest.raises(OSError, match="not empty"):
        disk.rename("data/a", "data/b")


def test_what_is_not_there_is_not_found() -> None:
    disk = MemoryDisk()
    with pytest.raises(FileNotFoundError):
        disk.open("data/none")
    with pytest.raises(FileNotFoundError):
        disk.read_bytes("data/none")
    with pytest.raises(FileNotFoundError):
        disk.rename("data/none", "data/some")
    with pytest.raises(FileNotFoundError):
        disk.sync_folder("data/none")
    disk.remove("data/none")
    assert disk.list("data") == []
