"""Which files of logs are open, and which of them are closed to make room for others.

The operating system limits the open files and connections of a process, and logs may have more
segments than that.
The segment that a log appends to stays open. Sealed segments and the memory maps of indexes are
opened when they are read, and the least recently used are closed again. A file whose bytes are on
their way to a client, or that waits for its sync, is closed once that is done: the
reader or the sync holds it.

Connections count towards the same limit, so each of them leaves room for one file less.
"""

from collections.abc import Sized
from typing import Protocol
from weakref import ReferenceType, ref

UNLIMITED = 1 << 62
FILES_TO_READ = 16
"""Logs need at least this many files besides one for each partition, to read sealed segments."""
TIDY_FROM = 1024


class Holder(Protocol):
    """Keeps a file open that it could open again."""

    def close_file(self) -> None:
        """Release the file; it is closed once no other holder uses it."""


class OpenFiles:
    """All files that a disk has open, and the holders that can release theirs.

    Only the event loop uses it, except `opened` and `closed`, which the syncing threads call too:
    adding to a set and removing from it are atomic in the interpreter.
    """

    def __init__(self) -> None:
        self._pool = UNLIMITED
        self._others: Sized = ()
        self._open: set[int] = set()
        # The least recently used first. Weak, or the files of a deleted topic would stay open.
        self._held: dict[ReferenceType[Holder], None] = {}
        self._newest: ReferenceType[Holder] | None = None
        self._tidy_at = TIDY_FROM

    def share(self, pool: int, others: Sized = ()) -> None:
        """Set how many descriptors may be open, together with all else that uses the same limit."""
        self._pool, self._others = pool, others

    @property
    def limit(self) -> int:
        """How many files may be open now."""
        return self._pool - len(self._others)

    @property
    def count(self) -> int:
        """How many files are open."""
        return len(self._open)

    def opened(self, key: int) -> None:
        """Count a file by a number that no other open file has."""
        self._open.add(key)

    def closed(self, key: int) -> None:
        """Stop counting a file. Call this before the system can reuse its number."""
        self._open.discard(key)

    def hold(self, holder: Holder) -> None:
        """Remember that a holder has just opened or used a file that it can release."""
        key = ref(holder)
        if key is self._newest:  # one read uses its file several times
            return
        self._held.pop(key, None)
        self._held[key] = None
        self._newest = key
        if len(self._held) >= self._tidy_at:
            self._held = {each: None for each in self._held if each() is not None}
            self._tidy_at = max(TIDY_FROM, 2 * len(self._held))

    def keep(self, holder: Holder) -> None:
        """Remember that a holder needs its file from now on."""
        self._held.pop(ref(holder), None)
        self._newest = None

    def make_room(self) -> bool:
        """Close the least recently used files until one more may be open; tell whether it may."""
        while len(self._open) >= self.limit and self._held:
            least_used = next(iter(self._held))
            del self._held[least_used]
            self._newest = None
            holder = least_used()
            if holder is not None:
                holder.close_file()
        return len(self._open) < self.limit
