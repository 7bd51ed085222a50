"""The interfaces through which the core reaches files.

Storage uses only `Disk` and `File`. `server/files/disk.py` implements them with the calls of the
operating system, `tests/support/disks/memory_disk.py` with memory that can lose unsynced data.
Errors are `OSError` throughout, as the operating system words them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.model.open_files import OpenFiles

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """One open file that is only appended to, truncated, or read by position."""

    path: str

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers at the end, or raise and leave the file as long as it was."""

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes from a position, fewer where the file ends."""

    def size(self) -> int:
        """Return the length of the file."""

    def truncate(self, size: int) -> None:
        """Truncate the file to a length."""

    def sync(self) -> None:
        """Return once every byte appended so far would survive a power cut."""

    def version(self) -> int:
        """Return a number that changes whenever a process writes to the file."""

    def modified_ms(self) -> int:
        """Return when the file was last written to, in milliseconds of wall time."""

    def set_modified_ms(self, modified_ms: int) -> None:
        """Set the time at which the file was last written to."""

    def close(self) -> None:
        """Give the file back to the operating system."""


class Disk(Protocol):
    """A tree of folders and files, addressed by strings with `/` between names."""

    open_files: OpenFiles
    """The files that are open, and how many may be."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and appending."""

    def read_bytes(self, path: str) -> bytes:
        """Return a whole small file."""

    def write_atomic(self, path: str, content: bytes, *, sync: bool = True) -> None:
        """Replace a small file so that a crash leaves the old one or the new one.

        Without `sync` it returns sooner, and after a power cut the file may be damaged.
        """

    def map(self, path: str) -> Buffer:
        """Return the content for reading, memory-mapped where the system can."""

    def files(self, path: str) -> list[str]:
        """Return the sorted names of the files in a folder, without those of folders."""

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none if there is no such folder."""

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or folder of this name."""

    def size(self, path: str) -> int:
        """Return the length of a file by its name."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; nothing happens if it exists."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder over the target."""

    def remove(self, path: str) -> None:
        """Delete a file; nothing happens if there is none."""

    def remove_tree(self, path: str) -> None:
        """Delete a folder with everything in it."""

    def space(self, path: str) -> tuple[int, int]:
        """Return all bytes and the free bytes of the disk that a path lies on."""

    def sync_file(self, path: str) -> None:
        """Return once a small file would survive a power cut, by its name.

        Raises `SyncFailedError` if the sync fails, and `OSError` if none was tried.
        """

    def sync_folder(self, path: str) -> None:
        """Return once the names in a folder would survive a power cut.

        Raises `SyncFailedError` if the sync fails, and `OSError` if none was tried.
        """

    def sync_all(self) -> None:
        """Return once everything written so far would survive a power cut, names included.

        This is slow and need not report failures. Use it for data that can be checked or rebuilt.
        """


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes that can go from the page cache to a socket without passing through us."""

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length


Chunk = Buffer | FileSlice
