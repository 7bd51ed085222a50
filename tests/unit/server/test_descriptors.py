"""Tests reserved file descriptors, and syncs that could not start without one."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.model.errors import SyncFailedError
from barnabas.server import effect_runner
from barnabas.server.effect_runner import sync_or_stop
from barnabas.server.files.descriptors import SpareDescriptors
from barnabas.server.listener import TOLD_EVERY_S, RefusedConnections
from barnabas.storage.flush import FlushTask
from tests.support.disks.memory_disk import MemoryDisk

TASK = FlushTask((), ("data",), 0, 0, 0, ())


class _Stopped(BaseException):
    """Replaces the end of the process."""


class _Exhausted(MemoryDisk):
    """A disk that fails to open folders a number of times."""

    def __init__(self, *codes: int) -> None:
        super().__init__()
        self.codes = list(codes)
        self.synced = 0

    def sync_folder(self, path: str) -> None:
        if self.codes:
            code = self.codes.pop(0)
            raise OSError(code, os.strerror(code), path)
        self.synced += 1


@pytest.fixture
def spares() -> Iterator[SpareDescriptors]:
    spares = SpareDescriptors(2)
    spares.hold()
    yield spares
    spares.release()


@pytest.fixture(autouse=True)
def _no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: BaseException) -> None:
        raise _Stopped

    monkeypatch.setattr(effect_runner, "stop_at_once", stop)
    monkeypatch.setattr(effect_runner, "SYNC_AGAIN_S", 0)


def refuse(monkeypatch: pytest.MonkeyPatch, code: int, times: int) -> list[str]:
    """Make the system refuse to open files a number of times; return the attempts."""
    real, asked = os.open, []

    def open_(path: str, flags: int, mode: int = 0o777) -> int:
        asked.append(path)
        if len(asked) <= times:
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", open_)
    return asked


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_what_could_not_be_opened_is_synced_later(code: int) -> None:
    disk = _Exhausted(code, code, code)
    sync_or_stop(disk, TASK)
    assert disk.synced == 1


def test_any_other_error_of_a_folder_sync_ends_the_process() -> None:
    with pytest.raises(_Stopped):
        sync_or_stop(_Exhausted(errno.EIO), TASK)


def test_a_failed_sync_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise SyncFailedError

    disk = MemoryDisk()
    monkeypatch.setattr(disk, "sync_folder", fail)
    with pytest.raises(_Stopped):
        sync_or_stop(disk, TASK)


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_spare_is_given_up_to_open_a_file(
    spares: SpareDescriptors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    asked = refuse(monkeypatch, errno.EMFILE, times)
    with spares.opened(str(tmp_path), os.O_RDONLY) as descriptor:
        assert os.fstat(descriptor).st_ino == tmp_path.stat().st_ino
        assert len(spares._held) == 2 - times
    assert len(spares._held) == 2  # reserved again as soon as there are some
    assert len([path for path in asked if path == str(tmp_path)]) == times + 1


def test_without_spares_the_system_has_the_last_word(
    spares: SpareDescriptors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, errno.EMFILE, 100)
    with (
        pytest.raises(OSError, match=os.strerror(errno.EMFILE)),
        spares.opened(str(tmp_path), os.O_RDONLY),
    ):
        pass


def test_other_errors_cost_no_spare(spares: SpareDescriptors, tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        spares.opened(str(tmp_path / "none"), os.O_RDONLY),
    ):
        pass
    assert len(spares._held) == 2


def test_spares_are_given_back_with_the_last_broker() -> None:
    spares = SpareDescriptors(2)
    spares.hold()
    spares.hold()
    spares.release()
    assert len(spares._held) == 2
    spares.release()
    assert spares._held == []
    with spares.spared() as spared:
        assert not spared


def test_refusals_are_logged_once_and_then_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, told = [0.0], []

    class Log:
        def warning(self, event: str, **facts: object) -> None:
            told.append((event, facts["limit"], facts["refused"]))

    monkeypatch.setattr("barnabas.server.listener.log", Log())
    refused = RefusedConnections(lambda: now_s[0])
    for _ in range(5):
        refused.note("host", "a")
    refused.note("host", "b")
    now_s[0] = TOLD_EVERY_S
    refused.note("host", "a")
    event = "refused a connection"
    assert told == [(event, "a", 1), (event, "b", 1), (event, "a", 5)]
