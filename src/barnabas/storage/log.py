"""A partition's log: a sequence of segments, appended to at the end, read anywhere.

    start_offset            flushed_offset           end_offset
         |                        |                       |
    [ sealed segment ][ sealed segment ][ active segment ...]

Segments leave no gaps: each ends where the next begins, also after compaction, so that recovery can
detect a segment that lost its tail. Everything here runs to completion on the caller's thread and
handles batches, never records. Syncing has two parts, so that the slow one can run elsewhere:
`begin_flush` returns what to sync, `finish_flush` records that it was done.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ports import Disk, FileSlice
from barnabas.model.steps import Steps, Work
from barnabas.protocol.records import (
    IN_TRANSACTION,
    BatchHeader,
    build,
    parse_header,
    stamp,
)
from barnabas.storage import producer_snapshots, rolling, times
from barnabas.storage.aborted import Aborted, Digest
from barnabas.storage.changes import Change
from barnabas.storage.checkpoints import write_number
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.flush import FlushTask, Unsynced, carry_out
from barnabas.storage.producer_snapshots import snapshot_offsets, snapshot_path
from barnabas.storage.producers import ProducerStates
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.storage.times import Found
from barnabas.storage.trust import Allowance
from barnabas.storage.walk import in_order, walk

if TYPE_CHECKING:
    from barnabas.storage.resuming import Captured

SNAPSHOTS_KEPT = 2
START_OFFSET_FILE = "log-start-offset"
TRUNCATED_FILE = "truncated-to"
CLEANER_FILE = "cleaner-offset"
SPARSE_FILE = "sparse"
RESUME_FILE = "resume-point"
DELETED = ".deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The part of a topic's configuration that a log needs."""

    segment_bytes: int = 1 << 30
    """A segment is sealed before it would grow beyond this."""
    segment_ms: int = 7 * 24 * 3_600_000
    """A segment is sealed once its first batch is older than this."""
    segment_jitter_ms: int = 0
    """`segment_ms` is reduced by up to this much, by a different amount for each segment."""
    index_interval_bytes: int = 4096
    """The bytes of log between two index entries."""
    index_bytes: int = 10 * 1024 * 1024
    """A segment is sealed before one of its indexes would grow beyond this."""
    compacts: bool = True
    """Whether compaction removes batches from between others."""
    index_fits_bytes: int = field(init=False)
    """While a segment is no larger than this, its indexes cannot be full."""

    def __post_init__(self) -> None:
        """Compute once what every append needs."""
        fits_bytes = rolling.index_fits_bytes(self.index_bytes, self.index_interval_bytes)
        object.__setattr__(self, "index_fits_bytes", fits_bytes)


def retired_path(path: str, segment: Segment) -> str:
    """Return the name of a retired file of a segment, until it is deleted.

    The end offset distinguishes it from an earlier file of the same base.
    """
    return f"{path}.{segment.next_offset}{DELETED}"


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
        self.sealed_offset = 0
        """Segments below this are durable, with the files that were written on sealing them."""
        self.truncations = 0
        """How often the log was truncated, which makes work on it in other threads void."""
        self.sparse = False
        """Whether compaction removed batches between others, here or on the leader."""
        self.truncated_to: int | None = None
        """The lowest offset to which the log was truncated since it was opened."""
        self.damaged_from: int | None = None
        """Where the last truncation found damage among the records that it kept."""
        self.change: Change[Any] | None = None
        """The changes to its files that are in progress (`storage/changes.py`)."""
        self.epochs = LeaderEpochs(disk, folder)
        self.producers = ProducerStates()
        self.unsynced = Unsynced()
        self.by_age: rolling.SealingByAge = rolling.Unlimited()
        """How many segments may be sealed for their age, together with those of other logs."""
        self._bases: list[int] = []
        self.captured: Captured | None = None
        """The resume point to store, once the log is synced up to it (`resuming.py`)."""
        self.resumes_at = (0, 0)
        """The active segment of the last resume point, and how many index entries it had."""
        self._snapshots: list[int] | None = None  # the offsets of snapshots, if they are known
        self._splices = 0
        self.known_latest: dict[tuple[tuple[int, int], int, int], Found | None] = {}
        """The last answers of `max_timestamp_record`, by their validity."""

    @property
    def active(self) -> Segment:
        """The segment that is appended to."""
        return self.segments[-1]

    @property
    def size(self) -> int:
        """All bytes in segment files."""
        return sum(segment.size for segment in self.segments)

    @property
    def is_synced(self) -> bool:
        """Whether nothing that was appended or sealed waits for a sync."""
        return self.flushed_offset >= self.end_offset and not self.unsynced.any_files

    @property
    def changes(self) -> tuple[int, int]:
        """Changes where the log is truncated, or segments are replaced or removed."""
        return self.truncations, self._splices

    @property
    def is_dense(self) -> bool:
        """Whether each batch begins where the previous one ends: none was ever removed."""
        return not (self.sparse or self.settings.compacts)

    def note_sparse(self) -> None:
        """Store that there are gaps, even if a later topic config turns compaction off."""
        if not self.sparse:
            path = f"{self.folder}/{SPARSE_FILE}"
            self.disk.write_atomic(path, b"", sync=False)
            self.unsynced.add_paths((path,))
            self.unsynced.add_folders((self.folder,))
            self.sparse = True

    def append(self, batch: memoryview, header: BatchHeader, epoch: int) -> int:
        """Write a checked batch at the end; return the offset of its first record.

        Raises `OSError` if the disk refuses; the log is then unchanged.
        """
        active, base_offset = self.segments[-1], self.end_offset
        size, first_ms = active.size, active.first_append_ms
        if rolling.must_roll(
            self.settings, active, size, first_ms, header, base_offset, self.by_age
        ):
            active = self.roll()
        stamp(batch, 0, base_offset, epoch)
        active.append(batch, header, base_offset)
        self._remember(active, batch, header, base_offset, epoch)
        return base_offset

    def append_replicated(self, records: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Append checked batches from the leader in one write, with their offsets and epochs.

        A batch may begin above the end, if compaction has removed batches on the leader. A batch
        that begins below the end or has an earlier epoch is refused; those before it are written.
        Raises `OSError` if the disk refuses; the log is then unchanged, except for segments that
        were filled before.
        """
        following = self._following(headers)
        written = 0
        while written < following:
            run = self._run(headers[written:following])
            size = sum(header.size for header in run)
            self._append_run(records[:size], run)
            records = records[size:]
            written += len(run)
        if following < len(headers):
            refused = headers[following]
            raise CorruptBatchError(
                f"offset {refused.base_offset} of epoch {refused.leader_epoch} was sent to follow"
                f" {self.end_offset - 1} of epoch {self.epochs.last}"
            )

    def _following(self, headers: Sequence[BatchHeader]) -> int:
        """Return how many of the batches follow the end of the log, and each other."""
        end_offset, epoch = self.end_offset, max(0, self.epochs.last)
        for number, header in enumerate(headers):
            if header.base_offset < end_offset or header.leader_epoch < epoch:
                return number
            if header.base_offset > end_offset:
                self.note_sparse()
            end_offset, epoch = header.last_offset + 1, header.leader_epoch
        return len(headers)

    def _run(self, headers: Sequence[BatchHeader]) -> Sequence[BatchHeader]:
        """Return the batches that fit into the active segment; roll if none fits."""
        active, first, settings = self.segments[-1], headers[0], self.settings
        size, first_ms = active.size, active.first_append_ms
        if rolling.must_roll(
            settings, active, size, first_ms, first, first.base_offset, self.by_age
        ):
            active = self.roll()
        size, first_ms = active.size, active.first_append_ms
        if first_ms is None:
            first_ms = first.max_timestamp
        for number, header in enumerate(headers):
            if rolling.must_roll(
                settings, active, size, first_ms, header, header.base_offset, self.by_age
            ):
                return headers[:number]
            size += header.size
        return headers

    def _append_run(self, records: memoryview, headers: Sequence[BatchHeader]) -> None:
        active, position = self.segments[-1], 0
        active.append_replicated(records, headers)
        for header in headers:
            batch = records[position : position + header.size]
            self._remember(active, batch, header, header.base_offset, header.leader_epoch)
            position += header.size

    def _remember(
        self,
        active: Segment,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        epoch: int,
    ) -> None:
        """Update producers and epochs from a batch that was written."""
        if header.producer_id >= 0:
            if header.attributes & IN_TRANSACTION:
                aborted = self.producers.follow(header, base_offset, batch)
                if aborted is not None:
                    active.aborted.append(aborted)
            else:
                self.producers.record(header, base_offset)
        entries = self.epochs.entries
        if not entries or entries[-1][0] < epoch:
            self.epochs.assign(epoch, base_offset)
        self.end_offset = base_offset + header.last_offset_delta + 1

    def read(
        self,
        offset: int,
        limit_bytes: int,
        upper_offset: int,
        *,
        at_least_one: bool,
        allowance: Allowance | None = None,
    ) -> FileSlice | None:
        """Return whole batches from the one that holds `offset`, none from `upper_offset` on.

        Raises OFFSET_OUT_OF_RANGE outside the log, `CorruptBatchError` if the batch at the offset
        is damaged, and `UncheckedError` if it was not checked since the log was opened and the
        allowance does not cover that.
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
                end = segment.position_of(upper_offset)
                end = self._limited(segment, start, end, limit_bytes, at_least_one=at_least_one)
                if end <= start:
                    return None
                good_end = segment.ensure_trusted(start, end, offset, allowance)
                return FileSlice(segment.file, start, good_end - start)
        return None

    def aborted(self, offset: int, upper_offset: int) -> list[Aborted]:
        """Return the aborted transactions that overlap a range of offsets."""
        found: list[Aborted] = []
        number = max(0, bisect_right(self._bases, offset) - 1)
        for segment in self.segments[number:]:
            if segment.aborted.count and segment.aborted.collect(offset, upper_offset, found):
                break
        return found

    def aborted_in(self, offset: int, piece: FileSlice) -> list[Aborted]:
        """Return the aborted transactions that overlap a read from an offset on."""
        following = self.segments[max(0, bisect_right(self._bases, offset) - 1) :]
        if not any(segment.aborted.count for segment in following):
            return []
        segment = next(segment for segment in following if segment.paths[0] == piece.file.path)
        return self.aborted(offset, segment.offset_at(piece.position + piece.length))

    def roll(self) -> Segment:
        """Seal the active segment and open the next.

        The new file is created last: an earlier failure leaves no file that could hide later
        appends to the old segment.
        """
        if self.segments:
            self.active.write_indexes()
            self.store_memory()
        following = Segment(
            self.disk,
            self.folder,
            self.end_offset,
            create=True,
            interval=self.settings.index_interval_bytes,
        )
        if self.segments:
            self.active.freeze()
            self.unsynced.add_file(self.active.file)
            self.unsynced.add_paths(self.active.paths[1:])
        self.unsynced.add_folders((self.folder,))
        self.segments.append(following)
        self._bases.append(following.base_offset)
        return following

    def store_memory(self) -> None:
        """Write the epochs and a producer snapshot as of the end; remove old snapshots."""
        if self.epochs.store():
            self.unsynced.add_paths((self.epochs.path,))
        # Also if no producer is known: otherwise a start would search all headers for them.
        path = snapshot_path(self.folder, self.end_offset)
        content = producer_snapshots.encode(self.producers, self._last_aborts())
        self.disk.write_atomic(path, content, sync=False)
        self.unsynced.add_paths((path,))
        if self._snapshots is None:
            self._snapshots = snapshot_offsets(self.disk, self.folder)
        offsets = sorted({*self._snapshots, self.end_offset})
        # One for each segment's start: a truncation below the newest needs an older one, and
        # compaction may have removed the batches with that information.
        wanted = {*self._bases, *offsets[-SNAPSHOTS_KEPT:]}
        for offset in offsets:
            if offset not in wanted:
                self.disk.remove(snapshot_path(self.folder, offset))
        self._snapshots = [offset for offset in offsets if offset in wanted]

    def begin_flush(self) -> FlushTask | None:
        """Return the task that makes everything appended so far durable."""
        if self.is_synced:
            return None
        files, paths, folders = self.unsynced.take()
        files.append(self.active.file)
        base = self.active.base_offset
        return FlushTask(tuple(files), folders, self.end_offset, base, self.truncations, paths)

    def finish_flush(self, task: FlushTask) -> None:
        """Record that a flush task was carried out."""
        if task.truncations == self.truncations:
            self.flushed_offset = max(self.flushed_offset, task.upto_offset)
            self.sealed_offset = max(self.sealed_offset, task.sealed_offset)

    def flush(self) -> None:
        """Sync everything with blocking calls, while no client is served."""
        task = self.begin_flush()
        if task is None:
            return
        carry_out(self.disk, task)
        self.finish_flush(task)

    def offset_for_time(self, timestamp: int, upper_offset: int, work: Work) -> Steps[Found | None]:
        """Return the first record at or after a time, with the epoch it was written in."""
        return times.first_at_or_after(self, timestamp, upper_offset, work)

    def max_timestamp_record(self, upper_offset: int, work: Work) -> Steps[Found | None]:
        """Return the first record that has the largest timestamp of all."""
        return times.latest(self, upper_offset, work)

    def droppable(self) -> int:
        """Return how many of the first segments are entirely below the start offset."""
        return max(0, bisect_right(self._bases, self.start_offset) - 1)

    def splice(self, first: int, count: int, new: list[Segment]) -> None:
        """Replace segments by others."""
        for segment in self.segments[first : first + count]:
            self.unsynced.drop_file(segment.paths[0])
        self.segments[first : first + count] = new
        self._bases = [segment.base_offset for segment in self.segments]
        self._splices += 1

    def finish_change(self) -> None:
        """Carry out the rest of a change now, before the log is truncated or closed."""
        if self.change is not None:
            self.change.finish(self.disk)
            self.change = None

    def truncate(self, end_offset: int, settled: int | None = None) -> list[str]:
        """Truncate the log to end at an offset, or before the batch that reaches over it.

        Transactions count as ended if their markers are below `settled`, or else below the synced
        offset. Returns files to delete. Truncated records must not come back after a crash, so the
        truncation is synced here. The new end is stored: after a crash, recovery must check later
        appends even if the stored recovery point is above them. If the headers of batches with
        producers are found to be damaged, `damaged_from` is set.
        """
        assert self.change is None
        assert self.start_offset <= end_offset
        if end_offset >= self.end_offset:
            return []
        boundary = self._boundary(end_offset)
        self._note_truncation(boundary)
        self.truncations += 1
        self.end_offset = max(boundary, self.start_offset)
        paths = self._drop_from(boundary)
        self._close_gap()
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        self.sealed_offset = min(self.sealed_offset, self.active.base_offset)
        self.epochs.truncate_end(self.end_offset)
        self.disk.remove(f"{self.folder}/{CLEANER_FILE}")
        self.producers, doubts = producer_snapshots.rebuild(self)
        places = [doubt.damaged_at for doubt in doubts if doubt.damaged_at is not None]
        self.damaged_from = min(places, default=None)
        self._snapshots = None
        self.producers.settle(self.flushed_offset if settled is None else settled)
        # Snapshots of truncated records must not come back once other records replace those.
        self.unsynced.add_folders((self.folder,))
        return paths

    def sound_before(self, offset: int) -> tuple[int, int]:
        """Return where the segment that holds an offset starts, and up to where it is valid.

        That is at most the offset, and less if a batch near it has wrong offsets.
        """
        number = bisect_right(self._bases, offset) - 1
        if number < 0:
            return offset, offset
        segment = self.segments[number]
        start = end = segment.base_offset
        found = walk(segment.file, 0, segment.size, check=True)
        limit = start + RELATIVE_OFFSET_MAX
        for _, header in in_order(found, start, limit, dense=self.is_dense):
            if header.last_offset >= offset:
                break
            end = header.last_offset + 1
        return start, end

    def restart_at(self, offset: int) -> list[str]:
        """Remove everything, and continue with an empty log at an offset. Returns files to delete.

        The new start is stored first: after a crash, recovery removes what is left below it.
        """
        assert self.change is None
        self._note_truncation(min(offset, self.end_offset))
        write_number(self.disk, f"{self.folder}/{START_OFFSET_FILE}", offset)
        self.truncations += 1
        paths: list[str] = []
        while self.segments:
            paths += self.retire(self.active)
            self.splice(len(self.segments) - 1, 1, [])
        for known in snapshot_offsets(self.disk, self.folder):
            self.disk.remove(snapshot_path(self.folder, known))
        self._snapshots = None
        self.disk.remove(f"{self.folder}/{CLEANER_FILE}")
        self.disk.sync_folder(self.folder)
        self.start_offset = self.end_offset = self.flushed_offset = self.sealed_offset = offset
        self.epochs.entries = []
        if self.epochs.store():
            self.unsynced.add_paths((self.epochs.path,))
        self.producers = ProducerStates()
        self.roll()
        return paths

    def retire(self, segment: Segment) -> list[str]:
        """Rename a segment's files, to delete them later; readers that have them open continue."""
        retired = []
        # The end offset distinguishes the name from an earlier file of the same base.
        suffix = f".{segment.next_offset}{DELETED}"
        for path in segment.paths:
            if self.disk.exists(path):
                self.disk.rename(path, path + suffix)
                retired.append(path + suffix)
        segment.renamed(suffix)
        return retired

    def close(self) -> None:
        """Write indexes and producers; the caller has synced the records before."""
        self.finish_change()
        self.store_memory()
        self.disk.remove(f"{self.folder}/{RESUME_FILE}")
        for segment in self.segments:
            segment.close()

    def _last_aborts(self) -> Digest:
        """Return the digest of the index of aborts of the last segment."""
        for segment in reversed(self.segments):
            if segment.base_offset < self.end_offset:
                return segment.aborted.digest
        return producer_snapshots.NO_ABORTS

    def _boundary(self, offset: int) -> int:
        """Return where the batch that holds an offset starts, or the offset if none does."""
        segment = self.segments[bisect_right(self._bases, offset) - 1]
        found = segment.locate(offset) if segment.base_offset < offset else None
        return offset if found is None else min(offset, found.header.base_offset)

    def _note_truncation(self, offset: int) -> None:
        lowest = offset if self.truncated_to is None else min(offset, self.truncated_to)
        write_number(self.disk, f"{self.folder}/{TRUNCATED_FILE}", lowest)
        self.truncated_to = lowest

    def _drop_from(self, boundary: int) -> list[str]:
        """Remove everything from a batch boundary on."""
        paths: list[str] = []
        nothing_left = boundary < self.start_offset  # the start is within a batch
        # A segment that begins at the boundary stays, empty: earlier segments were sealed, perhaps
        # compacted, and only the snapshot at its start has their producers.
        kept = 0 if nothing_left else max(1, bisect_right(self._bases, boundary))
        while len(self.segments) > kept:
            paths += self.retire(self.active)
            self.splice(len(self.segments) - 1, 1, [])
        self.disk.sync_folder(self.folder)
        if nothing_left:
            self.roll()
        else:
            self.active.truncate(self.active.position_of(boundary))
            self.active.file.sync()
        return paths

    def _close_gap(self) -> None:
        """Make the log end where its last batch does.

        If compaction removed batches, an empty batch fills the gap: offsets are not assigned again,
        and a segment must reach up to the next. If compaction never ran, the offset of a batch was
        damaged (no checksum covers it), and the records in the gap are missing.
        """
        base, end_offset = self.active.next_offset, self.end_offset
        if base >= end_offset:
            return
        if self.is_dense:
            self._note_truncation(base)
            self.end_offset = base
        else:
            epoch = self.epochs.epoch_for(base)
            batch = build(
                [],
                base_offset=base,
                last_offset=end_offset - 1,
                base_timestamp=-1,
                leader_epoch=epoch,
            )
            self.active.append(batch, parse_header(batch), base)
            self.active.file.sync()

    @staticmethod
    def _limited(
        segment: Segment, start: int, end: int, limit_bytes: int, *, at_least_one: bool
    ) -> int:
        """Return where a read ends, within the limit if possible."""
        if end - start <= limit_bytes:
            return end
        stop = segment.end_within(start, start + limit_bytes)
        if stop <= start and at_least_one:
            stop = segment.first_batch_end(start)
        return min(end, stop)
