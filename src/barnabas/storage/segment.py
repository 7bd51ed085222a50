"""One segment: a run of batches in a file, and the two indexes that find places in it.

Only the last segment of a log is appended to; the others are immutable until retention removes
or compaction replaces them whole.

A batch is checked by its CRC when it comes in. What was on disk before this process started, or
was changed behind its back, is checked once more before it is first served: block by block, so
that a read pays for no more than it needs and later reads go by sendfile.
"""

from bisect import bisect_right

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Buffer, Disk, File
from barnabas.protocol.records import LENGTH_OVERHEAD, BatchHeader
from barnabas.storage.index import OffsetIndex, TimeIndex
from barnabas.storage.walk import Located, header_at, walk

RECENT_MAX = 256
TRUST_BLOCK_BYTES = 1024 * 1024


def segment_name(base_offset: int) -> str:
    """Return the stem of the segment's files: the base offset in twenty digits."""
    return f"{base_offset:020d}"


class Segment:
    """Batches from `base_offset` up to, not with, `next_offset`."""

    __slots__ = (
        "_disk",
        "_recent_offsets",
        "_recent_positions",
        "_since_index",
        "_stem",
        "_trusted_blocks",
        "_version",
        "base_offset",
        "file",
        "first_append_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "offset_index",
        "size",
        "time_index",
        "trusted_from",
    )

    def __init__(self, disk: Disk, folder: str, base_offset: int, *, create: bool = False) -> None:
        self._disk = disk
        self._stem = f"{folder}/{segment_name(base_offset)}"
        self.base_offset = base_offset
        self.file: File = disk.open(f"{self._stem}.log", create=create)
        self.offset_index = OffsetIndex(disk, f"{self._stem}.index")
        self.time_index = TimeIndex(disk, f"{self._stem}.timeindex")
        self.size = self.file.size()
        self.next_offset = base_offset
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.first_append_ms: int | None = None
        self._since_index = 0
        self._recent_offsets: list[int] = []
        self._recent_positions: list[int] = []
        # Bytes from here on were checked as they came in, by this process.
        self.trusted_from = self.size
        self._trusted_blocks: set[int] = set()
        self._version = -1  # of the sealed file; -1 while it grows

    @property
    def paths(self) -> tuple[str, str, str]:
        """The files that make up the segment."""
        return (f"{self._stem}.log", f"{self._stem}.index", f"{self._stem}.timeindex")

    def append(self, batch: Buffer, header: BatchHeader, base_offset: int, interval: int) -> None:
        """Write one batch at the end; its offsets start at `base_offset`."""
        position = self.size
        self.file.append((batch,))
        self.note(position, header, base_offset, interval)

    def note(self, position: int, header: BatchHeader, base_offset: int, interval: int) -> None:
        """Take a batch that stands in the file into the indexes and the running totals.

        The offset comes apart from the header, which may be from before it was stamped.
        """
        last_offset = base_offset + header.last_offset_delta
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = last_offset
        if self._since_index > interval:
            self.offset_index.append(base_offset - self.base_offset, position)
            self._index_time()
            self._since_index = 0
        size = header.length + LENGTH_OVERHEAD
        self._since_index += size
        self.size = position + size
        self.next_offset = last_offset + 1
        offsets = self._recent_offsets
        offsets.append(base_offset)
        self._recent_positions.append(position)
        if len(offsets) > RECENT_MAX:
            del offsets[: RECENT_MAX // 2]
            del self._recent_positions[: RECENT_MAX // 2]

    def locate(self, offset: int) -> Located | None:
        """Find the batch that holds the offset, or else the first one after it."""
        for found in walk(self.file, self._start_for(offset), self.size, check=False):
            if found.header.last_offset >= offset:
                return found
        return None

    def position_of(self, offset: int) -> int:
        """Return where the batch that holds the offset starts; the end where none does."""
        if offset >= self.next_offset:
            return self.size
        offsets = self._recent_offsets
        if offsets and offset >= offsets[0]:
            return self._recent_positions[bisect_right(offsets, offset) - 1]
        found = self.locate(offset)
        return self.size if found is None else found.position

    def cut_before(self, start: int, limit: int) -> int:
        """Return the last known batch boundary at or below the limit, or `start` for none."""
        positions = self._recent_positions
        if positions and positions[0] <= limit:
            return max(start, positions[bisect_right(positions, limit) - 1])
        entry = self.offset_index.floor(limit, column=1)
        return start if entry is None else max(start, entry[1])

    def first_batch_end(self, position: int) -> int:
        """Return where the batch that starts at a position ends."""
        return position + header_at(self.file, position, self.size).size

    def ensure_trusted(self, start: int, end: int) -> int:
        """Check what was not yet checked between two batch boundaries.

        Returns up to where the bytes are good; raises where not even the first batch is.
        """
        if self._version >= 0 and self.file.version() != self._version:
            self.forget_trust()
        if start >= self.trusted_from:
            return end
        for block in range(start // TRUST_BLOCK_BYTES, (end - 1) // TRUST_BLOCK_BYTES + 1):
            if block in self._trusted_blocks:
                continue
            bad = self._check_block(block)
            if bad is not None:
                if bad <= start:
                    raise CorruptBatchError(f"{self.file.path} is damaged at byte {bad}")
                return min(bad, end)
            self._trusted_blocks.add(block)
        return end

    def forget_trust(self) -> None:
        """Check everything again before it is next served."""
        self._trusted_blocks.clear()
        self.trusted_from = self.size
        self._version = self.file.version()

    def seal(self) -> None:
        """Close the books: the segment takes no more batches."""
        self._index_time()
        self.offset_index.write()
        self.time_index.write()
        self._version = self.file.version()

    def truncate(self, position: int, next_offset: int) -> None:
        """Cut the file; the indexes are made anew by whoever cuts."""
        self.file.truncate(position)
        self.size = position
        self.next_offset = next_offset
        self.trusted_from = min(self.trusted_from, position)
        self._trusted_blocks.clear()
        self._recent_offsets.clear()
        self._recent_positions.clear()

    def reset_indexes(self) -> None:
        """Forget indexes and totals, before every batch is noted again."""
        self.offset_index.clear()
        self.time_index.clear()
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        self._since_index = 0
        self._recent_offsets.clear()
        self._recent_positions.clear()
        self.next_offset = self.base_offset
        self.size = 0

    def load_indexes(self) -> int:
        """Take over the stored indexes; return the position from which headers must be read."""
        self.offset_index.load()
        self.time_index.load()
        last_time = self.time_index.last()
        if last_time is not None:
            self.max_timestamp = last_time[0]
            self.max_timestamp_offset = self.base_offset + last_time[1]
        last = self.offset_index.last()
        return 0 if last is None else last[1]

    def close(self) -> None:
        """Write what the indexes hold in memory and let go of the file."""
        self.seal()
        self.file.close()

    def _start_for(self, offset: int) -> int:
        entry = self.offset_index.floor(offset - self.base_offset)
        return 0 if entry is None else entry[1]

    def _index_time(self) -> None:
        last = self.time_index.last()
        if self.max_timestamp >= 0 and (last is None or self.max_timestamp > last[0]):
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def _check_block(self, block: int) -> int | None:
        """Return the position of the first bad batch that reaches into the block."""
        first = block * TRUST_BLOCK_BYTES
        last = min(first + TRUST_BLOCK_BYTES, self.size)
        entry = self.offset_index.floor(first, column=1)
        position = 0 if entry is None else entry[1]
        try:
            while position < last:
                end = self.first_batch_end(position)
                if end > first:
                    for _ in walk(self.file, position, end, check=True):
                        pass
                position = end
        except CorruptBatchError:
            return position
        return None
