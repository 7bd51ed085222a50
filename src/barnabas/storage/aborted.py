"""The index of aborted transactions, whose records read_committed consumers skip.

One file for each segment, `.txnindex`, in Kafka's layout. It has the transactions whose abort
marker is in the segment, in the order of the markers:

    version int16, producer id int64, first offset int64, marker's offset int64,
    last stable offset int64, once the transaction had ended

Unlike the other indexes it is not a hint: consumers would see the records of a transaction that is
missing here. So the producer snapshot at a segment's end has a digest of the index. If the two do
not match, recovery rebuilds the index from the log.
"""

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from barnabas.model.ports import Disk
from barnabas.protocol.crc import crc32c

VERSION = 0

_ENTRY = struct.Struct(">hqqqq")
_LAST_OFFSET = struct.Struct(">q")
_LAST_OFFSET_AT = 18


class Aborted(NamedTuple):
    """One transaction that was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """No transaction that ends later begins below this."""


class Digest(NamedTuple):
    """A digest of a segment's index."""

    base_offset: int
    """The segment's base offset: compaction may have joined the segment with earlier ones since."""
    entries: int
    crc: int


class AbortedIndex:
    """The transactions that a segment's abort markers end."""

    __slots__ = ("_content", "_disk", "_stored", "base_offset", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._disk = disk
        self._content: bytearray | None = None
        self._stored = 0

    @property
    def content(self) -> bytearray:
        """All entries, written or not yet; read when first needed."""
        if self._content is None:
            stored = self._disk.read_bytes(self.path) if self._disk.exists(self.path) else b""
            self._content = bytearray(stored)
            self._stored = len(stored)
        return self._content

    def hold(self) -> None:
        """Read the file now: it may be renamed from now on."""
        assert self.content is not None

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self.content) // _ENTRY.size

    @property
    def digest(self) -> Digest:
        """The digest that identifies this index."""
        return Digest(self.base_offset, self.count, crc32c(self.content))

    def begins_as(self, digest: Digest) -> bool:
        """Tell whether the first entries have this digest."""
        first = self.content[: digest.entries * _ENTRY.size]
        return Digest(self.base_offset, len(first) // _ENTRY.size, crc32c(first)) == digest

    def entries(self) -> list[Aborted]:
        """Return all transactions."""
        return [self._entry(number) for number in range(self.count)]

    def append(self, entry: Aborted) -> None:
        """Add a transaction that ended after all others here. Never fails."""
        self.content.extend(_ENTRY.pack(VERSION, *entry))
        # The marker is in the log already; a full disk may take its entry later.
        with suppress(OSError):
            self.write()

    def write(self) -> None:
        """Write the entries in memory to the file."""
        content = self.content
        if self._stored == len(content):
            return
        file = self._disk.open(self.path, create=True)
        try:
            if file.size() != self._stored:
                file.truncate(self._stored)
            file.append((content[self._stored :],))
        finally:
            file.close()
        self._stored = len(content)

    def replace(self, entries: Iterable[Aborted]) -> bool:
        """Replace all entries by these; tell whether that is a change."""
        wanted = bytearray(b"".join(_ENTRY.pack(VERSION, *entry) for entry in entries))
        if wanted == self.content:
            return False
        self._disk.remove(self.path)
        self._content, self._stored = wanted, 0
        self.write()
        return True

    def truncate(self, end_offset: int) -> None:
        """Remove transactions that a marker from an offset on ended."""
        if self.count:
            self.replace(e for e in self.entries() if e.last_offset < end_offset)

    def collect(self, offset: int, upper_offset: int, found: list[Aborted]) -> bool:
        """Add transactions that overlap a range; tell whether no later segment can have more."""
        for number in range(self._first_from(offset), self.count):
            entry = self._entry(number)
            if entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return True
        return False

    def _first_from(self, offset: int) -> int:
        """Return the number of the first entry whose marker is not before an offset."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            position = middle * _ENTRY.size + _LAST_OFFSET_AT
            if _LAST_OFFSET.unpack_from(self.content, position)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, number: int) -> Aborted:
        _, *facts = _ENTRY.unpack_from(self.content, number * _ENTRY.size)
        return Aborted(*facts)
