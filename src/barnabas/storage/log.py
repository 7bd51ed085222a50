"""A partition's log: segments in a row, appended to at the end, read anywhere.

    start_offset            flushed_offset           end_offset
         |                        |                       |
    [ sealed segment ][ sealed segment ][ active segment ...]

Everything here runs to completion on the caller's thread and touches batches, never records
(look-ups by time open a single batch). Syncing is split in two so that its slow half can run
elsewhere: `begin_flush` says what to sync, `finish_flush` takes note that it was done.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ports import Disk, File, FileSlice
from barnabas.protocol.records import LENGTH_OVERHEAD, BatchHeader, Record, records, stamp
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.producers import ProducerStates, snapshot_offsets, snapshot_path
from barnabas.storage.segment import Segment, segment_name
from barnabas.storage.walk import Located, walk

SNAPSHOTS_KEPT = 2
RELATIVE_OFFSET_MAX = (1 << 31) - 1
START_OFFSET_FILE = "log-start-offset"
DELETED = ".deleted"
SWAP = ".swap"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What shapes a log; everything else about a topic is its partition's business."""

    segment_bytes: int = 1 << 30
    """A segment is sealed before it would grow beyond this."""
    segment_ms: int = 7 * 24 * 3_600_000
    """A segment is sealed once its records span more than this."""
    index_interval_bytes: int = 4096
    """How much log lies between two index entries."""


class FlushTask(NamedTuple):
    """Files and folders to sync, and the offset below which everything is safe afterwards."""

    files: tuple[File, ...]
    folder: str | None
    upto_offset: int


class Log:
    """The batches of one partition. Made by `recovery.open_log`."""

    def __init__(self, disk: Disk, folder: str, settings: LogSettings) -> None:
        self.disk = disk
        self.folder = folder
        self.settings = settings
        self.segments: list[Segment] = []
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.epochs = LeaderEpochs(disk, folder)
        self.producers = ProducerStates()
        self._bases: list[int] = []
        self._unsynced: list[Segment] = []
        self._folder_unsynced = False

    @property
    def active(self) -> Segment:
        """The segment that is appended to."""
        return self.segments[-1]

    @property
    def size(self) -> int:
        """All bytes in segment files."""
        return sum(segment.size for segment in self.segments)

    def append(self, batch: memoryview, header: BatchHeader, epoch: int) -> int:
        """Write a checked batch at the end; return the offset its first record got.

        Raises `OSError` where the disk refuses; the log is then as it was.
        """
        active = self.segments[-1]
        if self._must_roll(active, header):
            active = self.roll()
        base_offset = self.end_offset
        stamp(batch, 0, base_offset, epoch)
        active.append(batch, header, base_offset, self.settings.index_interval_bytes)
        if active.first_append_ms is None:
            active.first_append_ms = header.max_timestamp
        if header.producer_id >= 0:
            self.producers.record(header, base_offset)
        entries = self.epochs.entries
        if not entries or entries[-1][0] < epoch:
            self.epochs.assign(epoch, base_offset)
        self.end_offset = base_offset + header.last_offset_delta + 1
        return base_offset

    def read(
        self, offset: int, limit_bytes: int, upper_offset: int, *, at_least_one: bool
    ) -> FileSlice | None:
        """Return whole batches from the one that holds `offset`, none from `upper_offset` on.

        Raises OFFSET_OUT_OF_RANGE outside the log, and `CorruptBatchError` where the batch at
        the offset is damaged.
        """
        if offset < self.start_offset or offset > self.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {self.start_offset}..{self.end_offset}",
            )
        if offset >= upper_offset:
            return None
        number = len(self.segments) - 1
        if offset < self.segments[number].base_offset:
            number = bisect_right(self._bases, offset) - 1
        for segment in self.segments[number:]:
            start = segment.position_of(offset)
            if start < segment.size:
                return self._slice(segment, start, limit_bytes, upper_offset, at_least_one)
        return None

    def roll(self) -> Segment:
        """Seal the active segment and open the next."""
        following = Segment(self.disk, self.folder, self.end_offset, create=True)
        if self.segments:
            self.active.seal()
            self.epochs.store()
            self._unsynced.append(self.active)
        self._folder_unsynced = True
        self.segments.append(following)
        self._bases.append(following.base_offset)
        self.write_snapshot(sync=False)
        return following

    def write_snapshot(self, *, sync: bool) -> None:
        """Store what is known of producers as of the end, and drop the oldest snapshots."""
        if self.producers.by_id or snapshot_offsets(self.disk, self.folder):
            path = snapshot_path(self.folder, self.end_offset)
            self.disk.write_atomic(path, self.producers.encode(), sync=sync)
        for offset in snapshot_offsets(self.disk, self.folder)[:-SNAPSHOTS_KEPT]:
            self.disk.remove(snapshot_path(self.folder, offset))

    def begin_flush(self) -> FlushTask | None:
        """Say what must be synced for everything appended so far to be safe."""
        if self.flushed_offset >= self.end_offset and not self._unsynced:
            return None
        files = (*(segment.file for segment in self._unsynced), self.active.file)
        folder = self.folder if self._folder_unsynced else None
        self._unsynced.clear()
        self._folder_unsynced = False
        return FlushTask(files, folder, self.end_offset)

    def finish_flush(self, task: FlushTask) -> None:
        """Take note that a task was carried out."""
        self.flushed_offset = max(self.flushed_offset, min(task.upto_offset, self.end_offset))

    def offset_for_time(self, timestamp: int, upper_offset: int) -> tuple[Record, int] | None:
        """Return the first record at or after a time, with the epoch it was written in."""
        for segment in self.segments:
            if segment.max_timestamp < timestamp or segment.next_offset <= self.start_offset:
                continue
            entry = segment.time_index.floor(timestamp - 1)
            offset = segment.base_offset + (0 if entry is None else entry[1])
            start = segment.position_of(max(offset, self.start_offset))
            for found in walk(segment.file, start, segment.size, check=False):
                if found.header.max_timestamp < timestamp:
                    continue
                for record in self._open(segment, found):
                    if record.timestamp >= timestamp and record.offset >= self.start_offset:
                        inside = record.offset < upper_offset
                        return (record, found.header.leader_epoch) if inside else None
        return None

    def max_timestamp_record(self, upper_offset: int) -> tuple[Record, int] | None:
        """Return the first record that has the largest timestamp of all."""
        filled = [s for s in self.segments if s.max_timestamp >= 0]
        if not filled:
            return None
        best = max(filled, key=lambda segment: segment.max_timestamp)
        return self.offset_for_time(best.max_timestamp, upper_offset)

    def advance_start(self, offset: int) -> None:
        """Make everything below an offset unreadable, for good."""
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.disk.write_atomic(f"{self.folder}/{START_OFFSET_FILE}", f"{offset}\n".encode())

    def drop_segments(self, count: int) -> list[str]:
        """Take the first segments out of the log; return the files that can be deleted."""
        dropped = self.segments[:count]
        assert count < len(self.segments)
        self.segments = self.segments[count:]
        self._bases = [segment.base_offset for segment in self.segments]
        self.start_offset = max(self.start_offset, self.segments[0].base_offset)
        self._unsynced = [s for s in self._unsynced if s not in dropped]
        self.epochs.truncate_start(self.start_offset)
        return [path for segment in dropped for path in self.retire(segment)]

    def droppable(self) -> int:
        """Return how many leading segments lie wholly below the start offset."""
        return sum(
            1
            for segment, following in zip(self.segments, self.segments[1:], strict=False)
            if following.base_offset <= self.start_offset and segment is not self.active
        )

    def replace(self, old: Sequence[Segment], source: str | None) -> list[str]:
        """Put one compacted segment in the place of neighbours; return the files to delete.

        The new file lies in the folder `source` under the name of the first old one. It is first
        renamed to say which offsets it stands for: after a crash, recovery goes on from there.
        """
        first = self.segments.index(old[0])
        assert self.segments[first : first + len(old)] == list(old)
        stem = segment_name(old[0].base_offset)
        swap = f"{self.folder}/{stem}.log.{old[-1].next_offset:020d}{SWAP}"
        if source is not None:
            self.disk.rename(f"{source}/{stem}.log", swap)
            self.disk.sync_folder(self.folder)
        retired = [path for segment in old for path in self.retire(segment)]
        adopted = [] if source is None else [self._adopt(swap, source, old)]
        self.segments[first : first + len(old)] = adopted
        self._bases = [segment.base_offset for segment in self.segments]
        self._unsynced = [segment for segment in self._unsynced if segment not in old]
        return retired

    def truncate(self, end_offset: int) -> list[str]:
        """Cut the log so that it ends at a batch boundary; return files to delete."""
        assert end_offset >= self.start_offset
        paths: list[str] = []
        while len(self.segments) > 1 and self.active.base_offset >= end_offset:
            paths += self.retire(self.segments.pop())
            self._bases.pop()
        self.active.truncate(self.active.position_of(end_offset), end_offset)
        rebuild_indexes(self.active, self.settings.index_interval_bytes)
        self.end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.epochs.truncate_end(end_offset)
        self.producers.truncate(end_offset)
        return paths

    def retire(self, segment: Segment) -> list[str]:
        """Rename a segment's files out of the log's sight; readers that hold them go on."""
        retired = []
        for path in segment.paths:
            if self.disk.exists(path):
                # The end offset keeps the name apart from an earlier file of the same base.
                target = f"{path}.{segment.next_offset}{DELETED}"
                self.disk.rename(path, target)
                retired.append(target)
        return retired

    def close(self) -> None:
        """Write indexes and producers; the caller has synced the data before."""
        self.write_snapshot(sync=True)
        self.epochs.store()
        for segment in self.segments:
            segment.close()

    def _must_roll(self, active: Segment, header: BatchHeader) -> bool:
        if not active.size:
            return False
        if active.size + header.length + LENGTH_OVERHEAD > self.settings.segment_bytes:
            return True
        first_ms = active.first_append_ms
        if first_ms is not None and header.max_timestamp - first_ms > self.settings.segment_ms:
            return True
        return self.end_offset + header.last_offset_delta - active.base_offset > RELATIVE_OFFSET_MAX

    @staticmethod
    def _slice(
        segment: Segment, start: int, limit_bytes: int, upper_offset: int, at_least_one: bool
    ) -> FileSlice | None:
        end = segment.position_of(upper_offset)
        if end - start > limit_bytes:
            cut = segment.cut_before(start, start + limit_bytes)
            if cut <= start:
                if not at_least_one:
                    return None
                cut = segment.first_batch_end(start)
            end = min(end, cut)
        if end <= start:
            return None
        return FileSlice(segment.file, start, segment.ensure_trusted(start, end) - start)

    @staticmethod
    def _open(segment: Segment, found: Located) -> list[Record]:
        segment.ensure_trusted(found.position, found.position + found.header.size)
        return list(records(segment.file.read(found.position, found.header.size), found.header))

    def _adopt(self, swap: str, source: str, old: Sequence[Segment]) -> Segment:
        """Move a compacted segment under its final name."""
        stem = f"{self.folder}/{segment_name(old[0].base_offset)}"
        self.disk.rename(swap, f"{stem}.log")
        for suffix in (".index", ".timeindex"):
            indexed = f"{source}/{segment_name(old[0].base_offset)}{suffix}"
            if self.disk.exists(indexed):
                self.disk.rename(indexed, stem + suffix)
        self.disk.sync_folder(self.folder)
        segment = Segment(self.disk, self.folder, old[0].base_offset)
        segment.load_indexes()
        segment.next_offset = old[-1].next_offset
        segment.forget_trust()
        return segment


def rebuild_indexes(segment: Segment, interval: int) -> None:
    """Make the indexes anew from the headers in the file."""
    end = segment.size
    segment.reset_indexes()
    for position, header in walk(segment.file, 0, end, check=False):
        segment.note(position, header, header.base_offset, interval)
