"""Tests the limit of open log files: sealed segments are closed and reopened, and stay readable."""

import os
from pathlib import Path

import pytest

from barnabas.model.open_files import TIDY_FROM, OpenFiles
from barnabas.server.files.disk import OsDisk
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import drop_segments
from tests.support.talk.batches import append, batches_in, make_batch, read_all

TINY = LogSettings(segment_bytes=1, index_interval_bytes=0)
LIMIT = 12
COUNT = 60


class _Holder:
    def __init__(self, files: OpenFiles, number: int) -> None:
        self.files = files
        self.number = number
        files.opened(number)
        files.hold(self)

    def close_file(self) -> None:
        self.files.closed(self.number)


def filled(disk: OsDisk, folder: Path, count: int = COUNT) -> Log:
    log = open_log(disk, str(folder), TINY).log
    for number in range(count):
        append(log, make_batch([(b"k", b"%d" % number)], timestamp=number))
        log.flush()
    assert len(log.segments) == count
    return log


def append_many(log: Log) -> None:
    for _ in range(COUNT):
        append(log)


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synced data does not matter here."""
    for call in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, call, lambda _: None)


@pytest.fixture
def disk() -> OsDisk:
    disk = OsDisk()
    disk.open_files.share(LIMIT)
    return disk


def test_the_least_recently_used_is_closed_first() -> None:
    files = OpenFiles()
    holders = [_Holder(files, number) for number in range(4)]
    files.hold(holders[0])
    files.share(3)
    assert files.make_room()
    assert files.count == 2
    files.closed(0)
    assert files.count == 1  # the one that was used last is still open, and so is the third


def test_files_that_must_stay_open_stay_and_are_reported() -> None:
    files = OpenFiles()
    files.share(2)
    holders = [_Holder(files, number) for number in range(2)]
    for holder in holders:
        files.keep(holder)
    assert not files.make_room()
    assert files.count == 2


def test_connections_leave_room_for_fewer_files() -> None:
    files, connections = OpenFiles(), ["one", "two"]
    files.share(10, connections)
    assert files.limit == 8
    connections.append("three")
    assert files.limit == 7


def test_holders_that_are_gone_are_forgotten() -> None:
    files = OpenFiles()
    kept = _Holder(files, 0)
    for number in range(10 * TIDY_FROM):
        _Holder(files, number)
    assert len(files._held) <= TIDY_FROM
    files.share(0)
    assert not files.make_room()
    assert kept.number not in files._open


def test_more_segments_than_files(disk: OsDisk, tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    log = filled(disk, tmp_path / "log")
    for _ in range(2):
        found = read_all(log, 1)
        assert [header.base_offset for header, _ in found] == list(range(COUNT))
        assert disk.open_files.count <= LIMIT
        assert len(os.listdir("/dev/fd")) - before <= LIMIT  # noqa: PTH208


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_of_more_segments_than_files_is_opened(
    disk: OsDisk, tmp_path: Path, *, clean: bool
) -> None:
    log = filled(disk, tmp_path / "log")
    if clean:
        log.close()
    del log
    point = COUNT if clean else 0
    log = open_log(disk, str(tmp_path / "log"), TINY, clean=clean, recovery_point=point).log
    assert disk.open_files.count <= LIMIT
    assert len(read_all(log, 1)) == COUNT
    assert append(log) == COUNT


def test_unsynced_segments_stay_open_and_the_next_is_refused(disk: OsDisk, tmp_path: Path) -> None:
    log = open_log(disk, str(tmp_path / "log"), TINY).log
    with pytest.raises(OSError, match="raise the limit of open files"):
        append_many(log)
    stored = log.end_offset
    assert LIMIT - 2 <= stored <= LIMIT
    assert [header.base_offset for header, _ in read_all(log, 1)] == list(range(stored))
    log.flush()
    assert append(log) == stored
    assert len(read_all(log, 1)) == stored + 1


def test_a_reader_keeps_its_file_and_shares_it(disk: OsDisk, tmp_path: Path) -> None:
    log = filled(disk, tmp_path / "log")
    piece = log.read(3, 1, COUNT, at_least_one=True)
    assert piece is not None
    read_all(log, 1)  # which closes all other files
    again = log.read(3, 1, COUNT, at_least_one=True)
    assert again is not None
    assert again.file is piece.file
    for path in drop_segments(log, 10):
        os.unlink(path)  # noqa: PTH108
    assert batches_in(piece)[0][0].base_offset == 3


def test_a_retired_segment_is_never_confused_with_its_replacement(
    disk: OsDisk, tmp_path: Path
) -> None:
    log = filled(disk, tmp_path / "log")
    old = log.segments[3]
    content = old.file.read(0, old.size)
    log.retire(old)
    Path(old.paths[0]).write_bytes(b"another segment of the same base")
    old.close_file()
    assert old.file.read(0, old.size) == content
