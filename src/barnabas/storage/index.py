"""Sparse indexes: from an offset or a time to a nearby position in a segment.

An entry is written for the first batch after every `index.interval.bytes` of log, in Kafka's
layout: `.index` holds (offset - base, position), `.timeindex` holds (largest timestamp so far,
offset - base). Entries are gathered in memory and written to the file a page at a time, since
losing them is harmless. An index is only a hint: readers check that a batch is where an entry says,
and the index is rebuilt from the log after a crash. The file is read through a memory map.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar

from barnabas.model.ports import Buffer, Disk

PAGE_BYTES = 4096


class SparseIndex:
    """Entries of two ascending numbers, looked up by either."""

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._tail = bytearray()
        self._stored = 0
        self._map: Buffer | None = None
        # The last entry, if it is known: after an append no file needs to be opened for it.
        self._last: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """How many entries there are."""
        return (self._stored + len(self._tail)) // self.ENTRY.size

    def load(self) -> None:
        """Read the file; an incomplete entry at its end is ignored."""
        size = self._disk.size(self.path) if self._disk.exists(self.path) else 0
        self._stored = size - size % self.ENTRY.size
        self._tail.clear()
        self._map = self._last = None

    def hold(self) -> None:
        """Map the file now: it may be renamed from now on."""
        if self._stored and self._map is None:
            self._map = self._disk.map(self.path)

    def clear(self) -> None:
        """Remove every entry, to rebuild the index from the log."""
        self._disk.remove(self.path)
        self._stored = 0
        self._tail.clear()
        self._map = self._last = None

    def keep_first(self, count: int) -> None:
        """Drop the entries of the file after the first ones; the next write removes them."""
        self._stored = count * self.ENTRY.size
        self._map = self._last = None

    def append(self, first: int, second: int) -> None:
        """Add an entry; both numbers must not be below those of the last. Never fails."""
        self._tail += self.ENTRY.pack(first, second)
        self._last = first, second
        if len(self._tail) >= PAGE_BYTES:
            # The batch is already in the log; a full disk may accept its entry later.
            with suppress(OSError):
                self.write()

    def write(self) -> None:
        """Write the entries in memory to the file."""
        if not self._tail:
            return
        file = self._disk.open(self.path, create=True)
        try:
            if file.size() != self._stored:
                file.truncate(self._stored)
            file.append((self._tail,))
        finally:
            file.close()
        self._stored += len(self._tail)
        self._tail = bytearray()
        self._map = None

    def entry(self, number: int) -> tuple[int, int]:
        """Return one entry, counted from the first."""
        position = number * self.ENTRY.size
        if position >= self._stored:
            first, second = self.ENTRY.unpack_from(self._tail, position - self._stored)
        else:
            mapped = self._map
            if mapped is None:
                mapped = self._mapped()
            first, second = self.ENTRY.unpack_from(mapped, position)
        return first, second

    def last(self) -> tuple[int, int] | None:
        """Return the last entry, if there is any."""
        if self._last is None and self.count:
            self._last = self.entry(self.count - 1)
        return self._last

    def floor(self, value: int, column: int = 0) -> tuple[int, int] | None:
        """Return the last entry whose number in the column is at most the value."""
        return next(self.downwards(value, column), None)

    def downwards(self, value: int, column: int = 0) -> Iterator[tuple[int, int]]:
        """Yield the entries whose number is at most the value, from the last one down.

        The first is nearly always right. A caller that finds no batch there tries earlier entries.
        If entries are out of order because of damage, only fitting ones are yielded.
        """
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[column] <= value:
                low = middle + 1
            else:
                high = middle
        for number in range(low - 1, -1, -1):
            found = self.entry(number)
            if found[column] <= value:
                yield found

    def close_file(self) -> None:
        """Unmap the file; the next lookup maps it again."""
        self._map = None

    def _mapped(self) -> Buffer:
        open_files = self._disk.open_files
        open_files.make_room()
        mapped = self._map = self._disk.map(self.path)
        open_files.hold(self)
        return mapped


class OffsetIndex(SparseIndex):
    """(offset - base offset, position)."""

    ENTRY = struct.Struct(">II")


class TimeIndex(SparseIndex):
    """(largest timestamp up to and with this batch, offset - base offset)."""

    ENTRY = struct.Struct(">qI")
