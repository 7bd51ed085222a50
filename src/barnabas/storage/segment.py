"""One segment of a log: a file of batches, and its indexes (offsets, times, aborted transactions).

Only the last segment of a log is appended to. The others are immutable until retention removes
them or compaction replaces them.

The CRC of a batch is checked before it is appended. Batches that were on disk before this process
started, or that another process changed, are checked again before they are served (`trust.py`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from weakref import ReferenceType, ref

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Buffer, Disk, File
from barnabas.protocol.records import LENGTH_OVERHEAD, BatchHeader
from barnabas.storage.aborted import AbortedIndex
from barnabas.storage.index import OffsetIndex, TimeIndex
from barnabas.storage.names import INDEX_SUFFIXES, LOG_SUFFIX, segment_name
from barnabas.storage.trust import Allowance, Trust
from barnabas.storage.walk import Located, header_at, walk

RECENT_MAX = 256
INTERVAL_BYTES = 4096
RELATIVE_OFFSET_MAX = (1 << 31) - 1


class Totals(NamedTuple):
    """The totals of the headers of a segment's first batches."""

    base_offset: int
    next_offset: int
    size: int
    since_index: int
    """Bytes since the last index entry."""
    max_timestamp: int
    max_timestamp_offset: int
    first_append_ms: int
    offsets_indexed: int
    times_indexed: int


class Segment:
    """Batches from `base_offset` up to `next_offset`, exclusive."""

    __slots__ = (
        "__weakref__",
        "_appends",
        "_disk",
        "_file",
        "_file_elsewhere",
        "_interval",
        "_recent_from",
        "_recent_last",
        "_recent_positions",
        "_since_index",
        "_stem",
        "_suffix",
        "aborted",
        "base_offset",
        "first_append_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "offset_index",
        "size",
        "time_index",
        "trust",
    )

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: int,
        *,
        create: bool = False,
        interval: int = INTERVAL_BYTES,
    ) -> None:
        self._disk = disk
        self._stem = f"{folder}/{segment_name(base_offset)}"
        self._suffix = ""
        self._interval = interval
        self.base_offset = base_offset
        log_path, index_path, time_index_path, aborted_path = self.paths
        self._file: File | None = self._created(log_path) if create else None
        self._file_elsewhere: ReferenceType[File] | None = None
        self._appends = create  # a segment that is appended to keeps its file open
        self.offset_index = OffsetIndex(disk, index_path)
        self.time_index = TimeIndex(disk, time_index_path)
        self.aborted = AbortedIndex(disk, aborted_path, base_offset)
        self.size = disk.size(log_path) if self._file is None else self._file.size()
        self.next_offset = base_offset
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.first_append_ms: int | None = None
        self.trust = Trust(self.size)
        self._since_index = 0
        # The last offsets and the positions of the latest batches, and where they begin.
        self._recent_last: list[int] = []
        self._recent_positions: list[int] = []
        self._recent_from = 0

    @property
    def paths(self) -> tuple[str, str, str, str]:
        """The files that make up the segment, the one of its batches first."""
        stem, (index, time_index, aborted) = self._stem, INDEX_SUFFIXES
        return (stem + LOG_SUFFIX, stem + index, stem + time_index, stem + aborted)

    @property
    def file(self) -> File:
        """The file with the batches, opened again if it was closed to save descriptors."""
        file = self._file
        if file is None:
            return self._open()
        if not self._appends:
            self._disk.open_files.hold(self)
        return file

    def append(self, batch: Buffer, header: BatchHeader, base_offset: int) -> None:
        """Write one batch at the end; its offsets start at `base_offset`."""
        position = self.size
        (self._file or self._open()).append((batch,))
        self.note(position, header, base_offset)

    def append_replicated(self, records: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Append consecutive batches with the offsets that they have."""
        position = self.size
        self.file.append((records,))
        for header in headers:
            self.note(position, header, header.base_offset)
            position += header.size

    def note(self, position: int, header: BatchHeader, base_offset: int) -> None:
        """Add a batch that is in the file to the indexes and the totals.

        The offset is passed separately, since the header may have been parsed before it was set.
        """
        last_offset = base_offset + header.last_offset_delta
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = last_offset
        if self._since_index > self._interval:
            self.offset_index.append(base_offset - self.base_offset, position)
            self._index_time()
            self._since_index = 0
        size = header.length + LENGTH_OVERHEAD
        self._since_index += size
        self.size = position + size
        self.next_offset = last_offset + 1
        if self.first_append_ms is None:
            self.first_append_ms = header.max_timestamp
        lasts = self._recent_last
        if not lasts:
            self._recent_from = base_offset
        lasts.append(last_offset)
        self._recent_positions.append(position)
        if len(lasts) > RECENT_MAX:
            self._recent_from = lasts[RECENT_MAX // 2 - 1] + 1
            del lasts[: RECENT_MAX // 2]
            del self._recent_positions[: RECENT_MAX // 2]

    def locate(self, offset: int) -> Located | None:
        """Find the batch that holds the offset, or the first one after it."""
        for found in walk(self.file, self._start_for(offset), self.size, check=False):
            if found.header.last_offset >= offset:
                return found
        return None

    def position_of(self, offset: int) -> int:
        """Return where the batch that holds the offset, or the first after it, starts.

        That is the end of the file if there is none.
        """
        if offset >= self.next_offset:
            return self.size
        lasts = self._recent_last
        if lasts and offset >= self._recent_from:
            number = bisect_left(lasts, offset)
            if number < len(lasts):
                return self._recent_positions[number]
        if offset <= self.base_offset:
            return 0  # even if its header is damaged
        found = self.locate(offset)
        return self.size if found is None else found.position

    def end_within(self, start: int, limit: int) -> int:
        """Return a batch boundary at or below the limit: the last one, or one near it.

        It is `start` only if the batch there does not end below the limit.
        """
        positions = self._recent_positions
        if positions and positions[0] <= limit:
            return max(start, positions[bisect_right(positions, limit) - 1])
        end = max(start, self.boundary_before(limit))
        if end == start:
            for found in walk(self.file, start, self.size, check=False):
                if found.position + found.header.size > limit:
                    break
                end = found.position + found.header.size
        return end

    def boundary_before(self, limit: int) -> int:
        """Return an indexed batch boundary at or below a position; 0 is always one."""
        for relative, position in self.offset_index.downwards(limit, column=1):
            if self._is_batch(position, self.base_offset + relative):
                return position
        return 0

    def offset_at(self, position: int) -> int:
        """Return the first offset of the batch at a position; at the end, the one that follows."""
        if position < self.size:
            with suppress(CorruptBatchError):
                return header_at(self.file, position, self.size).base_offset
        return self.next_offset

    def first_batch_end(self, position: int) -> int:
        """Return where the batch that starts at a position ends."""
        return position + header_at(self.file, position, self.size).size

    def offset_before_time(self, timestamp: int) -> int:
        """Return an offset such that every record before it is older than a time."""
        for indexed, relative in self.time_index.downwards(timestamp - 1):
            if self._is_time(indexed, relative):
                return self.base_offset + relative
        return self.base_offset

    def ensure_trusted(
        self, start: int, end: int, offset: int, allowance: Allowance | None = None
    ) -> int:
        """Check the batches between two boundaries that were not checked yet.

        Returns up to where the bytes are good. Raises if the first batch is damaged, or if damage
        before it may hide the batch that holds the offset. With an allowance it checks no more than
        that covers: it raises `UncheckedError` if the first batch was not checked yet, and returns
        a boundary below the first unchecked batch otherwise.
        """
        if allowance is None:
            return self.trust.ensure(self, start, end, offset)
        return self.trust.ensure_within(self, start, end, offset, allowance)

    def is_damaged_near(self, position: int | None) -> bool:
        """Tell whether damage that was found at a position still exists."""
        return position is not None and not self.trust.is_good_near(self, position)

    def write_indexes(self) -> None:
        """Write the indexes to their files. May be repeated."""
        self._index_time()
        self.offset_index.write()
        self.time_index.write()
        self.aborted.write()

    def hold(self) -> None:
        """Open what is read by name: another segment will soon have the names."""
        self.offset_index.hold()
        self.time_index.hold()
        self.aborted.hold()

    def freeze(self) -> None:
        """Accept no more batches; this broker does not change the file from now on."""
        self.trust.version = self.file.version()
        self._appends = False
        self._disk.open_files.hold(self)

    def thaw(self) -> None:
        """Become the active segment again, whose file stays open."""
        self._appends = True
        if self._file is None:
            self._open()
        self._disk.open_files.keep(self)

    def close_file(self) -> None:
        """Close the file unless it is appended to; readers that have it open continue."""
        if self._file is not None and not self._appends:
            self._file_elsewhere = ref(self._file)
            self._file = None

    def renamed(self, suffix: str) -> None:
        """Use the new names of renamed files; with an empty suffix, their original names.

        A reader of the segment must not find another one under its old name.
        """
        self._suffix = suffix
        _, index, time_index, _ = self.paths
        self.offset_index.path = index + suffix
        self.time_index.path = time_index + suffix

    def truncate(self, position: int) -> None:
        """Truncate the file at a batch boundary, and accept appends again."""
        self.thaw()
        self.file.truncate(position)
        self.size = position
        self.trust.truncate(position)
        self.rebuild_indexes()
        self.aborted.truncate(self.next_offset)

    def rebuild_indexes(self, *, dense: bool = False) -> None:
        """Rebuild indexes and totals from the headers in the file, as far as they are valid.

        This excludes aborted transactions, since they may begin in other segments.
        """
        end = self.size
        self.reset()
        try:
            self._note_from(0, end, dense=dense)
        finally:
            self.size = end

    def reset(self) -> None:
        """Reset indexes and totals, before every batch is added again."""
        self.offset_index.clear()
        self.time_index.clear()
        self.reset_totals()

    def reset_totals(self) -> None:
        """Reset the totals."""
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        self.first_append_ms = None
        self._since_index = 0
        self._recent_last.clear()
        self._recent_positions.clear()
        self.next_offset = self.base_offset
        self.size = 0

    def totals(self) -> Totals:
        """Return the totals of all batches, of which there is at least one."""
        assert self.first_append_ms is not None
        return Totals(
            self.base_offset,
            self.next_offset,
            self.size,
            self._since_index,
            self.max_timestamp,
            self.max_timestamp_offset,
            self.first_append_ms,
            self.offset_index.count,
            self.time_index.count,
        )

    def resume(self, totals: Totals) -> bool:
        """Take over the totals of the first batches; return False if they do not match this file.

        The batches behind the last index entry are read, to make sure that one of them ends there.
        """
        self.offset_index.load()
        self.time_index.load()
        counts = self.offset_index.count, self.time_index.count
        indexed = counts[0] >= totals.offsets_indexed and counts[1] >= totals.times_indexed
        if not indexed or totals.size > self.file.size():
            return False
        self.reset_totals()
        self.offset_index.keep_first(totals.offsets_indexed)
        self.time_index.keep_first(totals.times_indexed)
        self.size = totals.size
        last = self.offset_index.last() or (0, 0)
        if self._end_offset_from(last[1]) != totals.next_offset:
            return False
        last_time = self.time_index.last()
        if last_time is not None and not self._is_time(*last_time):
            return False
        self.next_offset, self._since_index = totals.next_offset, totals.since_index
        self.max_timestamp = totals.max_timestamp
        self.max_timestamp_offset = totals.max_timestamp_offset
        self.first_append_ms = totals.first_append_ms
        return True

    def _end_offset_from(self, position: int) -> int:
        """Return the offset after the last batch, walking from a position; -1 at a bad one."""
        end_offset = -1
        with suppress(CorruptBatchError):
            for found in walk(self.file, position, self.size, check=False):
                end_offset = found.header.last_offset + 1
            return end_offset
        return -1

    def load_indexes(self) -> bool:
        """Take over the stored indexes; return False if they cannot be those of this file."""
        self.offset_index.load()
        self.time_index.load()
        if not self.size:
            return not self.offset_index.count and not self.time_index.count
        last, last_time = self.offset_index.last(), self.time_index.last()
        if last is None and self.size > 4 * self._interval:
            return False
        if last is not None and not self._is_batch(last[1], self.base_offset + last[0]):
            return False
        if last_time is None or not self._is_time(*last_time):
            return False
        self.max_timestamp = last_time[0]
        self.max_timestamp_offset = self.base_offset + last_time[1]
        return True

    def load_tail(self, *, dense: bool = False) -> None:
        """Take over stored indexes and read the headers that they do not cover."""
        end = self.size
        if self.load_indexes():
            last = self.offset_index.last()
            self.next_offset = self.base_offset + (last[0] if last else 0)
            self._note_from(last[1] if last else 0, end, dense=dense)
        else:
            self.rebuild_indexes(dense=dense)
        if end:
            # The log's end depends on the last batch, so that one is checked.
            for _ in walk(self.file, self._recent_positions[-1], end, check=True):
                pass
            self.first_append_ms = header_at(self.file, 0, self.size).max_timestamp

    def close(self) -> None:
        """Write the index entries in memory, and close the file."""
        self.write_indexes()
        if self._file is not None:
            self._file.close()

    def _created(self, path: str) -> File:
        open_files = self._disk.open_files
        if not open_files.make_room():
            raise OSError(
                f"{path} was not made: {open_files.count} files are open, and {open_files.limit} "
                f"may be; raise the limit of open files, or segment.bytes"
            )
        return self._disk.open(path, create=True)

    def _open(self) -> File:
        """Open the file, or get it from a reader that still has it open."""
        file = None if self._file_elsewhere is None else self._file_elsewhere()
        if file is None:
            self._disk.open_files.make_room()
            file = self._disk.open(self.paths[0] + self._suffix)
        self._file = file
        if not self._appends:
            self._disk.open_files.hold(self)
        return file

    def _note_from(self, start: int, end: int, *, dense: bool) -> None:
        """Add the batches in a part of the file, unless their offsets are wrong."""
        for position, header in walk(self.file, start, end, check=False):
            gap = header.base_offset - self.next_offset
            follows = gap == 0 if dense else gap >= 0
            if not follows or header.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                raise CorruptBatchError(f"offset {header.base_offset} is at byte {position}")
            self.note(position, header, header.base_offset)

    def _start_for(self, offset: int) -> int:
        for relative, position in self.offset_index.downwards(offset - self.base_offset):
            if self._is_batch(position, self.base_offset + relative):
                return position
        return 0

    def _is_batch(self, position: int, base_offset: int) -> bool:
        try:
            return header_at(self.file, position, self.size).base_offset == base_offset
        except CorruptBatchError:
            return False

    def _is_time(self, timestamp: int, relative: int) -> bool:
        """Whether the batch that ends at an offset is as young as the index says."""
        offset = self.base_offset + relative
        try:
            found = self.locate(offset)
        except CorruptBatchError:
            return False
        return (
            found is not None
            and found.header.last_offset == offset
            and found.header.max_timestamp == timestamp
        )

    def _index_time(self) -> None:
        last = self.time_index.last()
        if self.max_timestamp >= 0 and (last is None or self.max_timestamp > last[0]):
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
