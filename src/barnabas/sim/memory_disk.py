"""A disk in memory that distinguishes synced data from written data.

    disk = MemoryDisk()
    ... write, sync some of it ...
    disk.power_cut(Random(seed))      # keeps what a machine might find after a power cut

What a power cut may do, drawn from the seed:
- to a file: any number of the truncations and appends since its last sync happened, the last of
  them cut at any byte; sectors written since then may contain zeros or garbage;
- to names: each creation, rename and removal since the folder was last synced happened or not,
  independently. A rename is complete or absent. Syncing a file does not sync its name.

That is harsher than most file systems. `before` is called before every operation with its name
and path. It may raise, to simulate a full disk, a broken disk, or a power cut at the n-th step.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from barnabas.model.open_files import OpenFiles
from barnabas.model.ports import Buffer

SECTOR_BYTES = 512
ALL_BYTES = 1 << 40


@dataclass(eq=False)
class Content:
    """The content of a file: its current bytes, its synced bytes, and the changes in between."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    since: list[int | bytes] = field(default_factory=list)
    """Truncations, as lengths, and appends, as bytes, since the last sync."""
    version: int = 0
    modified_ms: int = 0

    def sync(self) -> None:
        """Sync the content."""
        self.synced = bytes(self.now)
        self.since.clear()

    def lose_power(self, rng: Random) -> None:
        """Become one of the contents that the drive may have by now."""
        left, lowest = bytearray(self.synced), len(self.synced)
        happened = rng.randint(0, len(self.since))
        for number, change in enumerate(self.since[:happened]):
            if isinstance(change, int):
                del left[change:]
                lowest = min(lowest, change)
            elif number == happened - 1:
                left += change[: rng.randint(0, len(change))]
            else:
                left += change
        if rng.random() < 0.5:
            _damage(left, lowest, rng)
        self.now = left
        self.version += 1
        self.sync()


@dataclass(eq=False)
class Folder:
    """The names in a folder, and the synced ones."""

    now: "dict[str, Content | Folder]" = field(default_factory=dict)
    synced: "dict[str, Content | Folder]" = field(default_factory=dict)


Entry = Content | Folder


@dataclass(frozen=True, eq=False)
class NameChange:
    """A name was added, removed or renamed."""

    entry: Entry
    source: tuple[Folder, str] | None
    target: tuple[Folder, str] | None

    def touches(self, folder: Folder) -> bool:
        """Return whether syncing the folder makes the change durable."""
        places = (self.source, self.target)
        return any(place is not None and place[0] is folder for place in places)

    def apply(self) -> None:
        """Make the change durable, unless an earlier change that it needs was lost."""
        if self.source is not None:
            folder, name = self.source
            if folder.synced.get(name) is not self.entry:
                return
            del folder.synced[name]
        if self.target is not None:
            folder, name = self.target
            folder.synced[name] = self.entry


class MemoryFile:
    """A handle on a content; it becomes invalid with a power cut."""

    def __init__(self, disk: "MemoryDisk", path: str, content: Content) -> None:
        self.path = path
        self.content = content
        self._disk = disk
        self._life = disk.life
        self._open_files = disk.open_files
        disk.handles += 1
        self._number = disk.handles
        self._open_files.opened(self._number)

    def __del__(self) -> None:
        self._open_files.closed(self._number)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append bytes, or raise and change nothing."""
        self._step("append")
        added = b"".join(bytes(buffer) for buffer in buffers)
        self._disk.use_room(len(added), self.path)
        self.content.now += added
        self.content.since.append(added)
        self.content.version += 1
        self.content.modified_ms = self._disk.wall_clock_ms()

    def read(self, position: int, length: int) -> bytes:
        """Return bytes from a position."""
        self._alive()
        return bytes(self.content.now[position : position + length])

    def size(self) -> int:
        """Return the length."""
        self._alive()
        return len(self.content.now)

    def truncate(self, size: int) -> None:
        """Truncate to a length; a file is never made longer."""
        self._step("truncate")
        assert size <= len(self.content.now), "truncate cannot lengthen a file"
        del self.content.now[size:]
        self.content.since.append(size)
        self.content.version += 1
        self.content.modified_ms = self._disk.wall_clock_ms()

    def sync(self) -> None:
        """Sync the content, but not the name."""
        self._step("sync")
        self.content.sync()

    def version(self) -> int:
        """Return how often the file was written."""
        return self.content.version

    def modified_ms(self) -> int:
        """Return when the file was last written, by the clock of the disk."""
        return self.content.modified_ms

    def set_modified_ms(self, modified_ms: int) -> None:
        """Set the time at which the file was last written."""
        self.content.modified_ms = modified_ms

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _alive(self) -> None:
        if self._life != self._disk.life:
            raise OSError(errno.EBADF, "the power failed while this file was open", self.path)

    def _step(self, operation: str) -> None:
        self._alive()
        self._disk.step(operation, self.path)


class MemoryDisk:
    """Folders and files. Paths have no root, and are split at `/`."""

    def __init__(self, folder: str = "data") -> None:
        """Start with one empty folder that is durable."""
        self.root = Folder()
        self.root.now[folder] = self.root.synced[folder] = Folder()
        self.life = 0
        self.steps = 0
        self.room: int | None = None
        """The free bytes, or None for an unlimited disk."""
        self.before: Callable[[str, str], None] | None = None
        self.open_files = OpenFiles()
        self.handles = 0
        """How many files were opened."""
        self.wall_clock_ms: Callable[[], int] = lambda: 0
        """The clock that dates files."""
        self._changes: list[NameChange] = []

    def step(self, operation: str, path: str) -> None:
        """Count an operation that changes something, and call `before`."""
        self.steps += 1
        if self.before is not None:
            self.before(operation, path)

    def use_room(self, size: int, path: str) -> None:
        """Take bytes from the free space."""
        if self.room is None:
            return
        if size > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.room -= size

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file for reading and appending."""
        folder, name = self._place(path)
        content = folder.now.get(name)
        if content is None and create:
            self.step("create", path)
            self.use_room(1, path)
            content = Content()
            self._change(NameChange(content, None, (folder, name)))
        if not isinstance(content, Content):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return MemoryFile(self, path, content)

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""
        return bytes(self._content(path).now)

    def write_atomic(self, path: str, content: bytes, *, sync: bool = True) -> None:
        """Write beside the file, then rename over it."""
        beside = self.open(f"{path}.tmp", create=True)
        if beside.size():
            beside.truncate(0)
        beside.append((content,))
        if sync:
            beside.sync()
        self.rename(f"{path}.tmp", path)
        if sync:
            self.sync_folder(path.rpartition("/")[0])

    def map(self, path: str) -> Buffer:
        """Return the current content."""
        return self.read_bytes(path)

    def files(self, path: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        entry = self._find(path)
        named = entry.now.items() if isinstance(entry, Folder) else ()
        return sorted(name for name, found in named if isinstance(found, Content))

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a folder."""
        entry = self._find(path)
        return sorted(entry.now) if isinstance(entry, Folder) else []

    def exists(self, path: str) -> bool:
        """Return whether a file or folder has this name."""
        return self._find(path) is not None

    def size(self, path: str) -> int:
        """Return the length of a file."""
        return len(self._content(path).now)

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents."""
        folder = self.root
        for name in path.split("/"):
            entry = folder.now.get(name)
            if entry is None:
                self.step("make_folder", path)
                entry = Folder()
                self._change(NameChange(entry, None, (folder, name)))
            assert isinstance(entry, Folder), f"{path} goes through a file"
            folder = entry

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder over the target."""
        self.step("rename", source)
        old, new = self._place(source), self._place(target)
        entry = old[0].now.get(old[1])
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        replaced = new[0].now.get(new[1])
        if isinstance(replaced, Folder) and replaced.now:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        self._change(NameChange(entry, old, new))

    def remove(self, path: str) -> None:
        """Delete a file; do nothing if there is none."""
        entry = self._find(path)
        if isinstance(entry, Content):
            self.step("remove", path)
            if self.room is not None:
                self.room += len(entry.now)
            self._change(NameChange(entry, self._place(path), None))

    def remove_tree(self, path: str) -> None:
        """Delete a folder with its content."""
        entry = self._find(path)
        if not isinstance(entry, Folder):
            return
        for name in list(entry.now):
            self.remove_tree(f"{path}/{name}")
            self.remove(f"{path}/{name}")
        self.step("remove_tree", path)
        self._change(NameChange(entry, self._place(path), None))

    def space(self, path: str) -> tuple[int, int]:
        """Return all bytes and the free bytes."""
        del path
        return ALL_BYTES, ALL_BYTES if self.room is None else self.room

    def sync_file(self, path: str) -> None:
        """Sync the content of a file."""
        self.open(path).sync()

    def sync_folder(self, path: str) -> None:
        """Sync the names in a folder."""
        self.step("sync_folder", path)
        folder = self._find(path)
        if not isinstance(folder, Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        # A name that was moved here is durable only if it was durable in the other folder.
        wanted, also = [], {folder}
        for change in reversed(self._changes):
            if any(change.touches(one) for one in also):
                wanted.append(change)
                also |= {place[0] for place in (change.source, change.target) if place}
        for change in reversed(wanted):
            change.apply()
        self._changes = [change for change in self._changes if change not in wanted]

    def sync_all(self) -> None:
        """Sync everything."""
        self.step("sync_all", "")
        for change in self._changes:
            change.apply()
        self._changes.clear()
        for folder in self._folders(self.root):
            for entry in folder.now.values():
                if isinstance(entry, Content):
                    entry.sync()

    def power_cut(self, rng: Random) -> None:
        """Lose unsynced data, except what the drive happened to have written."""
        self.life += 1
        self.before = None
        keep = rng.choice((0.0, 0.5, 0.9, 1.0))
        for change in self._changes:
            if rng.random() < keep:
                change.apply()
        self._changes.clear()
        for folder in self._folders(self.root):
            folder.now = dict(folder.synced)
            for entry in folder.now.values():
                if isinstance(entry, Content):
                    entry.lose_power(rng)

    def flip(self, path: str, bit: int) -> None:
        """Flip one bit of a file, on the drive and for every reader."""
        content = self._content(path)
        content.now[bit // 8] ^= 1 << bit % 8
        content.version += 1
        content.sync()

    def cut(self, path: str, size: int) -> None:
        """Truncate a file without telling its users."""
        content = self._content(path)
        del content.now[size:]
        content.version += 1
        content.sync()

    def _folders(self, folder: Folder) -> Iterator[Folder]:
        yield folder
        for entry in folder.synced.values():
            if isinstance(entry, Folder):
                yield from self._folders(entry)

    def _change(self, change: NameChange) -> None:
        if change.source is not None:
            del change.source[0].now[change.source[1]]
        if change.target is not None:
            change.target[0].now[change.target[1]] = change.entry
        self._changes.append(change)

    def _find(self, path: str) -> Entry | None:
        entry: Entry | None = self.root
        for name in path.split("/"):
            entry = entry.now.get(name) if isinstance(entry, Folder) else None
        return entry

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self._find(parent) if parent else self.root
        if not isinstance(folder, Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder, name

    def _content(self, path: str) -> Content:
        entry = self._find(path)
        if not isinstance(entry, Content):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return entry


def _damage(content: bytearray, start: int, rng: Random) -> None:
    """Put zeros or garbage into sectors that the drive may not have written."""
    for sector in range(start - start % SECTOR_BYTES, len(content), SECTOR_BYTES):
        if rng.random() < 0.3:
            low, high = max(start, sector), min(sector + SECTOR_BYTES, len(content))
            low = rng.randint(low, high)
            content[low:high] = rng.choice((bytes(high - low), rng.randbytes(high - low)))
