"""Tracks what a log has written and not yet synced.

Syncing is slow and runs in a thread, while the log accepts appends. Sealed segments, small files
and folders with new names are remembered here until a sync takes them.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from barnabas.model.ports import Disk, File


class FlushTask(NamedTuple):
    """Files and folders to sync, and the offset below which everything is durable afterwards."""

    files: tuple[File, ...]
    folders: tuple[str, ...]
    upto_offset: int
    sealed_offset: int
    """Segments below this are durable, with their indexes and the snapshot at their end."""
    truncations: int
    """How often the log had been truncated; after a later truncation the offset is void."""
    paths: tuple[str, ...] = ()
    """Small files by name, opened by the thread that syncs them: the event loop opens none."""


def carry_out(disk: Disk, task: FlushTask) -> None:
    """Sync everything a task names. No sync is tried twice: `SyncFailedError` ends the process.

    An `OSError` says that a file or folder could not be opened, and that no sync of it was tried:
    the whole task may be carried out again.
    """
    for file in task.files:
        file.sync()
    # A file that was deleted or replaced meanwhile is no longer part of the log.
    for path in task.paths:
        with suppress(FileNotFoundError):
            disk.sync_file(path)
    for folder in task.folders:
        with suppress(FileNotFoundError):
            disk.sync_folder(folder)


class Unsynced:
    """Written, but not yet part of any task."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._paths: dict[str, None] = {}
        self._folders: dict[str, None] = {}

    @property
    def any_files(self) -> bool:
        """Whether a segment was sealed, or found after a crash, and no sync has taken it yet."""
        return bool(self._files)

    @property
    def file_count(self) -> int:
        """How many segments stay open until they are synced."""
        return len(self._files)

    def add_file(self, file: File) -> None:
        """Add an open file."""
        self._files[file.path] = file

    def add_paths(self, paths: Iterable[str]) -> None:
        """Add small files by name; the thread syncs the file that has the name then."""
        self._paths.update(dict.fromkeys(paths))

    def add_folders(self, folders: Iterable[str]) -> None:
        """Add folders in which names changed."""
        self._folders.update(dict.fromkeys(folders))

    def drop_file(self, path: str) -> None:
        """Forget a file that is no longer part of the log."""
        self._files.pop(path, None)

    def sync_files(self) -> None:
        """Sync the open files with blocking calls, while no client is served, and forget them."""
        for file in self._files.values():
            file.sync()
        self._files.clear()

    def take(self) -> tuple[list[File], tuple[str, ...], tuple[str, ...]]:
        """Return everything, nearly always nothing, and forget it."""
        if not (self._files or self._paths or self._folders):
            return [], (), ()
        files = [*self._files.values()]
        paths, folders = tuple(self._paths), tuple(self._folders)
        self._files.clear()
        self._paths.clear()
        self._folders.clear()
        return files, paths, folders
