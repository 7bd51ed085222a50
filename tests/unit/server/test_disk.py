"""Tests the operating system's files: short writes, full disks, renames, maps."""

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.model.ports import Buffer
from barnabas.server.files import disk as disks
from barnabas.server.files.disk import OsDisk
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import drop_segments
from tests.support.talk.batches import append, make_batch, read_all

TMPFS_BYTES = 256 * 1024


@pytest.fixture
def disk() -> OsDisk:
    return OsDisk()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A small file system that is soon full."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    folder = tmp_path / "small"
    folder.mkdir()
    options = f"size={TMPFS_BYTES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not allow mounts")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(log: Log) -> None:
    for _ in range(100_000):
        append(log, make_batch([(b"k", b"v" * 1_000)]))


def test_files_grow_and_are_read_by_position(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "a"), create=True)
    file.append((b"one", memoryview(b"two"), bytearray(b"three")))
    file.append((b"four",))
    assert file.size() == disk.size(file.path) == 15
    assert file.read(3, 8) == b"twothree"
    assert file.read(13, 100) == b"ur"
    assert file.read(15, 1) == b""
    assert disk.open(file.path).size() == 15


def test_what_is_not_there_is_not_made_by_accident(disk: OsDisk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(str(tmp_path / "none"))
    assert disk.list(str(tmp_path)) == disk.list(str(tmp_path / "none")) == []


def test_a_cut_file_grows_from_its_new_end(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "a"), create=True)
    file.append((b"0123456789",))
    file.truncate(4)
    file.append((b"x",))
    assert Path(file.path).read_bytes() == b"0123x"


def test_a_write_changes_the_version(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "a"), create=True)
    os.utime(file.path, ns=(0, 0))
    before = file.version()
    disk.open(file.path).append((b"x",))
    assert file.version() != before


def test_short_writes_are_finished(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three_bytes(descriptor: int, buffers: Sequence[Buffer], offset: int) -> int:
        return os.pwrite(descriptor, b"".join(buffers)[:3], offset)

    file = disk.open(str(tmp_path / "a"), create=True)
    file.append((b"head",))
    monkeypatch.setattr(disks, "write_at", three_bytes)
    file.append((b"a long", b" tail"))
    assert file.size() == 15
    assert Path(file.path).read_bytes() == b"heada long tail"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_write_that_fails_half_way_leaves_the_file_as_it_was(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def three_bytes(descriptor: int, buffers: Sequence[Buffer], offset: int) -> int:
        return real_pwrite(descriptor, b"".join(buffers)[:3], offset)

    def refuse(_: int, __: Buffer, ___: int) -> int:
        raise OSError(code, os.strerror(code))

    real_pwrite = os.pwrite
    file = disk.open(str(tmp_path / "a"), create=True)
    file.append((b"head",))
    monkeypatch.setattr(disks, "write_at", three_bytes)
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match=os.strerror(code)):
        file.append((b"a long tail",))
    assert file.size() == 4
    assert Path(file.path).read_bytes() == b"head"
    monkeypatch.undo()
    file.append((b"!",))
    assert Path(file.path).read_bytes() == b"head!"


def test_a_disk_that_takes_nothing_more_is_full(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        file.append((b"x",))


def test_a_log_on_a_full_file_system_loses_nothing(disk: OsDisk, small: Path) -> None:
    folder = str(small / "log")
    settings = LogSettings(segment_bytes=60_000, index_interval_bytes=100)
    log = open_log(disk, folder, settings).log
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        fill(log)
    stored = log.end_offset
    assert 100 < stored == len(read_all(log))
    log.flush()
    for path in drop_segments(log, 2):
        disk.remove(path)
    start = log.start_offset
    append(log, make_batch([(b"k", b"v" * 1_000)]))
    log.flush()
    again = open_log(disk, folder, settings).log
    assert (again.start_offset, again.end_offset) == (start, stored + 1)
    assert len(read_all(again)) == stored + 1 - start


def test_small_files_are_replaced_whole(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    for sync in (True, False):
        disk.write_atomic(path, b"content" * 10_000, sync=sync)
        assert disk.read_bytes(path) == b"content" * 10_000
        disk.write_atomic(path, b"", sync=sync)
        assert disk.read_bytes(path) == b""
    assert disk.list(str(tmp_path)) == ["a"]


def test_a_replacement_that_fails_leaves_the_old_file(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = str(tmp_path / "a")
    disk.write_atomic(path, b"old")
    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        disk.write_atomic(path, b"new")
    assert disk.read_bytes(path) == b"old"


def test_maps_show_what_is_there(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    disk.write_atomic(path, b"")
    assert bytes(disk.map(path)) == b""
    disk.write_atomic(path, b"content")
    mapped = disk.map(path)
    disk.remove(path)
    assert bytes(mapped) == b"content"


def test_readers_outlive_names_and_closing(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "a"), create=True)
    file.append((b"content",))
    disk.rename(file.path, str(tmp_path / "b"))
    file.close()
    disk.remove(str(tmp_path / "b"))
    assert file.read(0, 7) == b"content"


def test_folders(disk: OsDisk, tmp_path: Path) -> None:
    deep = str(tmp_path / "a" / "b")
    disk.make_folder(deep)
    disk.make_folder(deep)
    disk.open(f"{deep}/z", create=True)
    disk.open(f"{deep}/y", create=True)
    assert disk.list(deep) == ["y", "z"]
    assert disk.exists(deep)
    disk.sync_folder(deep)
    disk.remove_tree(str(tmp_path / "a"))
    assert not disk.exists(deep)
    disk.remove_tree(deep)
    disk.remove(deep)
    with pytest.raises(FileNotFoundError):
        disk.sync_folder(deep)


def test_everything_is_synced_in_one_call(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: calls.append("sync"))
    disk.sync_all()
    assert calls == ["sync"]


def test_there_is_room(disk: OsDisk, tmp_path: Path) -> None:
    everything, free = disk.space(str(tmp_path))
    assert 0 < free <= everything


def test_a_file_knows_when_it_was_last_written_to(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.append((b"1",))
    file.set_modified_ms(1_700_000_000_123)
    assert file.modified_ms() == disk.open(path).modified_ms() == 1_700_000_000_123
    assert file.version() == 1_700_000_000_123 * 1_000_000
    file.append((b"2",))
    assert file.modified_ms() > 1_700_000_000_123
