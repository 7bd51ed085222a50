"""The operating system's files behind the `Disk` port.

Paths are strings: a broker with ten thousand partitions uses hundreds of thousands of them at a
start, and creating a `Path` costs more than the system call that it is for.
"""

import contextlib
import errno
import mmap
import os
import resource
import shutil
import sys
from collections.abc import Callable, Sequence

from barnabas.model.errors import SyncFailedError
from barnabas.model.open_files import OpenFiles
from barnabas.model.ports import Buffer
from barnabas.server.files.descriptors import SPARES

if sys.platform == "darwin":
    import fcntl

    def _sync(descriptor: int) -> None:
        # Also flush the drive's own cache, which fsync on macOS does not flush.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)

else:

    def _sync(descriptor: int) -> None:
        os.fdatasync(descriptor)


def sync_descriptor(descriptor: int, call: Callable[[int], None] = _sync) -> None:
    """Sync the data and the metadata needed to find it; a failure ends the process."""
    try:
        call(descriptor)
    except OSError as error:
        raise SyncFailedError(f"a sync failed, so this process stops: {error}") from error


NS_PER_MS = 1_000_000
HAS_PWRITEV = hasattr(os, "pwritev")


def write_at(descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
    """Write buffers at a position, in one call if the system has one for several."""
    if len(buffers) == 1:
        return os.pwrite(descriptor, buffers[0], position)
    if HAS_PWRITEV:
        return os.pwritev(descriptor, buffers, position)
    return os.pwrite(descriptor, b"".join(buffers), position)


class OsFile:
    """One file descriptor; closed with the last reference to it, readers included."""

    __slots__ = ("__weakref__", "_end", "_open_files", "descriptor", "path")

    def __init__(self, path: str, open_files: OpenFiles, *, create: bool) -> None:
        self.path = path
        self.descriptor = -1
        self._open_files = open_files
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self.descriptor = os.open(path, flags, 0o644)
        open_files.opened(self.descriptor)
        self._end = os.fstat(self.descriptor).st_size

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write everything at the end; on any failure truncate to the previous end."""
        end = self._end
        try:
            written = write_at(self.descriptor, buffers, end)
            wanted = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
            if written != wanted:
                self._append_rest(b"".join(buffers), written)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self.descriptor, end)
            raise
        self._end = end + wanted

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes from a position, fewer where the file ends."""
        return os.pread(self.descriptor, length, position)

    def size(self) -> int:
        """Return the length of the file."""
        return self._end

    def truncate(self, size: int) -> None:
        """Truncate the file to a length."""
        os.ftruncate(self.descriptor, size)
        self._end = size

    def sync(self) -> None:
        """Return once every byte appended so far would survive a power cut."""
        sync_descriptor(self.descriptor)

    def version(self) -> int:
        """Return the time of the last change."""
        return os.fstat(self.descriptor).st_mtime_ns

    def modified_ms(self) -> int:
        """Return the time of the last change, in milliseconds."""
        return os.fstat(self.descriptor).st_mtime_ns // NS_PER_MS

    def set_modified_ms(self, modified_ms: int) -> None:
        """Set the time of the last change."""
        os.utime(self.descriptor, ns=(modified_ms * NS_PER_MS,) * 2)

    def close(self) -> None:
        """Do nothing: a slow reader may hold a reference; the last one closes the descriptor."""

    def __del__(self) -> None:
        if self.descriptor >= 0:
            self._open_files.closed(self.descriptor)
            os.close(self.descriptor)

    def _append_rest(self, content: bytes, written: int) -> None:
        """Continue after a short write, which happens just before a disk is full."""
        view = memoryview(content)
        while written < len(view):
            count = os.pwrite(self.descriptor, view[written:], self._end + written)
            if count == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            written += count


class _Map(mmap.mmap):
    """A mapped file, which keeps its own descriptor until it is unmapped."""

    open_files: OpenFiles | None = None

    def __del__(self) -> None:
        if self.open_files is not None:
            self.open_files.closed(id(self))


class OsDisk:
    """The operating system's files, by path."""

    def __init__(self) -> None:
        self.open_files = OpenFiles()
        self.open_files.share(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        """Open a file for reading and appending."""
        return OsFile(path, self.open_files, create=create)

    def read_bytes(self, path: str) -> bytes:
        """Return a whole small file."""
        with open(path, "rb") as file:
            return file.read()

    def write_atomic(self, path: str, content: bytes, *, sync: bool = True) -> None:
        """Write beside the file, then rename over it."""
        beside = f"{path}.tmp"
        try:
            with SPARES.opened(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
                if sync:
                    sync_descriptor(descriptor)
        except OSError:
            self.remove(beside)  # it would take space on a full disk
            raise
        os.replace(beside, path)
        if sync:
            self.sync_folder(os.path.dirname(path) or ".")

    def map(self, path: str) -> Buffer:
        """Map a file into memory for reading."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            mapped = _Map(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.open_files = self.open_files
        self.open_files.opened(id(mapped))
        return memoryview(mapped)

    def files(self, path: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        try:
            with os.scandir(path) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return []

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none if there is no such folder."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or folder of this name."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False  # any other failure does not say whether it exists
        return True

    def size(self, path: str) -> int:
        """Return the length of a file by its name."""
        return os.stat(path).st_size

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents."""
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder over the target."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Delete a file; nothing happens if there is none."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Delete a folder with everything in it."""
        shutil.rmtree(path, ignore_errors=True)

    def space(self, path: str) -> tuple[int, int]:
        """Return the size of the disk, and the bytes that this process may still use."""
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def sync_file(self, path: str) -> None:
        """Sync a small file that was written and closed before.

        Linux reports a background write that has failed since to the next caller that syncs the
        file, as long as it has the file's inode in memory. Otherwise the checksums show the
        damage at the next start.
        """
        with SPARES.opened(path, os.O_RDONLY) as descriptor:
            sync_descriptor(descriptor)

    def sync_folder(self, path: str) -> None:
        """Sync the names in a folder."""
        with SPARES.opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            sync_descriptor(descriptor, os.fsync)

    def sync_all(self) -> None:
        """Sync every file system, instead of one call for each small file."""
        os.sync()
