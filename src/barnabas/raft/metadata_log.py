"""The metadata log on disk: appends, reads, truncation, and the voter sets that it contains.

A leader and its followers store the same bytes. One `Flush` runs at a time; batches appended in the
meantime share the next one. A follower truncates its log only where its epochs diverge from the
leader's, and never below the high watermark.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.effects import Effect, Flush, MakeDurable, Notice, Remove
from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ids import NodeId
from barnabas.model.ports import Buffer, Disk
from barnabas.protocol.message import Message
from barnabas.protocol.messages.voters_record import VotersRecord
from barnabas.protocol.records import BatchHeader, Record, batches, build, parse_header, verify
from barnabas.raft.control import build_control, control_messages
from barnabas.raft.damage import END_FILE, claim, note_end, refuse_damage
from barnabas.raft.metadata_snapshots import FILE_NAME, NO_SNAPSHOT, Pair, SnapshotId
from barnabas.raft.quorum_state import DIRECTORY_FILE, STATE_FILE
from barnabas.raft.voters import VoterHistory, VoterSet
from barnabas.storage.changes import Changes, Sync
from barnabas.storage.checkpoints import write_number
from barnabas.storage.flush import FlushTask
from barnabas.storage.log import START_OFFSET_FILE, Log, LogSettings
from barnabas.storage.recovery import Recovered, open_log
from barnabas.storage.trimming import drop_segments

FOLDER = "__cluster_metadata"
SETTINGS = LogSettings(segment_bytes=1 << 30, compacts=False)
READ_BYTES = 1 << 20
BESIDE = re.compile(
    f"{FILE_NAME.pattern}|{'|'.join(map(re.escape, (END_FILE, STATE_FILE, DIRECTORY_FILE)))}"
)
"""The quorum's other files in the log's folder."""
REMOVE_AFTER_MS = 60_000


class DivergedError(StorageError):
    """A leader's log lacks records that this node knows to be committed, so this node must halt."""


class Divergence(NamedTuple):
    """The largest epoch that two logs may share, and where it ends in the leader's."""

    epoch: int
    end_offset: int


class MetadataLog:
    """The log of the quorum on this node."""

    def __init__(
        self,
        disk: Disk,
        data_folder: str,
        me: NodeId,
        outbox: list[Effect],
        history: VoterHistory,
    ) -> None:
        self.folder = f"{data_folder}/{FOLDER}"
        self.history = history
        self.on_flushed: Callable[[], None] = lambda: None
        self._disk = disk
        self._data_folder = data_folder
        self._me = me
        self._outbox = outbox
        self._flushing = False
        self._log: Log
        self._changes: Changes
        self._base = NO_SNAPSHOT

    @property
    def start_offset(self) -> int:
        """The log's first offset; a snapshot holds everything below it."""
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.end_offset

    @property
    def flushed_offset(self) -> int:
        """Everything below this survives a power cut."""
        return self._log.flushed_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, -1 if there never was one."""
        return self.epoch_before(self.end_offset)

    @property
    def size(self) -> int:
        """The size of all segments in bytes."""
        return self._log.size

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the record before an offset, -1 if it is not known."""
        if offset == self._base.end_offset:
            return self._base.epoch
        return self._log.epochs.epoch_for(offset - 1)

    def open(self, base: SnapshotId, voters: VoterSet | None) -> Recovered:
        """Open the log after a snapshot; raise `StorageError` if synced records are damaged."""
        refuse_damage(self._disk, self.folder, self._me)
        recovered = self._opened()
        self._take(recovered.log)
        self._base = base
        if self.start_offset > base.end_offset:
            raise StorageError(
                f"{self.folder} starts at offset {self.start_offset}, and no snapshot holds the "
                f"records below it; restore the snapshot file"
            )
        self.history.reset(base.end_offset, voters)
        if not self._continues(base):
            self.reset(base, voters)
        for header, batch in self.batches(max(self.start_offset, base.end_offset), self.end_offset):
            self._note_voters(header, batch)
        return recovered

    def _take(self, log: Log) -> None:
        self._log = log
        self._changes = Changes(log, self._sync_later)

    def _sync_later(self, sync: Sync, done: Callable[[], None]) -> None:
        self._outbox.append(MakeDurable(sync, done))

    def _opened(self) -> Recovered:
        return open_log(self._disk, self.folder, SETTINGS, root=self._data_folder, others=BESIDE)

    def _continues(self, base: SnapshotId) -> bool:
        """Whether the log continues a snapshot. After a crash during `reset` it may not."""
        if self.start_offset == base.end_offset:
            return True
        epoch = self._log.epochs.epoch_for(base.end_offset - 1)
        return self.end_offset >= base.end_offset and epoch == base.epoch

    def append(self, pairs: Sequence[Pair], epoch: int, now_ms: int) -> int:
        """Append records as the leader; return the offset after them."""
        headers = claim(self._me, self.flushed_offset)
        batch = build([Record(number, now_ms, *pair, headers) for number, pair in enumerate(pairs)])
        self._log.append(memoryview(batch), parse_header(batch), epoch)
        return self.end_offset

    def append_control(self, messages: Sequence[Message], epoch: int, now_ms: int) -> int:
        """Append a control batch as the leader; return the offset after it."""
        batch = build_control(messages, now_ms, claim(self._me, self.flushed_offset))
        self._log.append(memoryview(batch), parse_header(batch), epoch)
        self._note_voters(parse_header(batch), batch)
        return self.end_offset

    def append_replicated(self, content: Buffer, epoch: int) -> None:
        """Check and append the batches that the leader of an epoch sent."""
        for header, batch in batches(bytearray(content)):
            verify(batch, header)
            if header.base_offset != self.end_offset:
                raise CorruptBatchError(
                    f"the leader sent offset {header.base_offset} after {self.end_offset - 1}"
                )
            if not self.last_epoch <= header.leader_epoch <= epoch:
                raise CorruptBatchError(
                    f"the leader of epoch {epoch} sent a batch of epoch {header.leader_epoch} "
                    f"after {self.last_epoch}"
                )
            self._log.append(batch, header, header.leader_epoch)
            self._note_voters(header, batch)

    def read(self, offset: int, limit_bytes: int, upper_offset: int) -> bytes:
        """Return whole batches, starting at an offset."""
        found = self._log.read(offset, limit_bytes, upper_offset, at_least_one=True)
        return b"" if found is None else found.file.read(found.position, found.length)

    def batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate over the batches between two offsets."""
        while start < end:
            content = self.read(start, READ_BYTES, end)
            if not content:
                raise StorageError(f"{self.folder} has no batch at offset {start}")
            for header, batch in batches(content):
                yield header, batch
                start = header.last_offset + 1

    def divergence(self, offset: int, epoch: int) -> Divergence | None:
        """Compare the end of a follower's log with this one: None if that log is a prefix of this.

        Raises `LookupError` if this log starts too late to tell.
        """
        entries = self._log.epochs.entries
        if (offset, epoch) == self._base or (offset == 0 and self.start_offset == 0):
            return None
        if offset < self.start_offset or not entries or epoch < entries[0][0]:
            if self.start_offset > 0:
                raise LookupError
            return Divergence(epoch, 0)
        shared, end = self._log.epochs.end_offset_for(epoch, self.end_offset)
        if shared < 0:
            return Divergence(entries[-1][0], self.end_offset)
        return None if shared == epoch and offset <= end else Divergence(shared, end)

    def truncate(self, divergence: Divergence, high_watermark: int) -> None:
        """Remove the records that the leader lacks; raise `DivergedError` if one was committed."""
        _, mine = self._log.epochs.end_offset_for(divergence.epoch, self.end_offset)
        end = divergence.end_offset if mine < 0 else min(mine, divergence.end_offset)
        end = min(end, self.end_offset)
        if self.protects(high_watermark, end):
            raise DivergedError(
                f"the leader asks to truncate {self.folder} to offset {end}, but the records below "
                f"{high_watermark} are committed"
            )
        self._log.finish_change()
        note_end(self._disk, self.folder, min(end, self.flushed_offset), sync=True)
        self._remove(self._log.truncate(max(end, self.start_offset)))
        self.history.truncate(self.end_offset)

    def protects(self, high_watermark: int, end: int) -> bool:
        """Whether truncation to an offset would remove committed records (KAFKA-12460)."""
        return end < max(high_watermark, self._base.end_offset)

    def reset(self, base: SnapshotId, voters: VoterSet | None) -> None:
        """Discard the log in favour of a snapshot that is durable already, and continue after it.

        A crash may happen after each step: `open` then finds a log that does not continue the
        snapshot, and calls this again.
        """
        log = self._log
        log.finish_change()
        self._changes.close()
        note_end(self._disk, self.folder, 0, sync=True)
        if log.end_offset > base.end_offset:
            self._remove(log.truncate(max(log.start_offset, base.end_offset)))
        write_number(self._disk, f"{self.folder}/{START_OFFSET_FILE}", base.end_offset)
        for segment in log.segments:
            segment.close()
        self._take(self._opened().log)
        self._log.epochs.entries = [(base.epoch, base.end_offset)]
        self._base = base
        self._flushing = False
        self.history.reset(base.end_offset, voters)

    def flush(self) -> None:
        """Start a sync of everything appended so far, unless one is under way."""
        if self._flushing:
            return
        task, log = self._log.begin_flush(), self._log
        if task is not None:
            self._flushing = True
            self._outbox.append(Flush(task, lambda: self._flushed(log, task)))

    def flush_now(self) -> None:
        """Sync on the event loop, before clients are served."""
        self._log.flush()

    def note_synced(self) -> None:
        """Write down how far a follower has synced, so that the next start can check the log.

        If the disk is full, the last written offset stays. It is lower, and still true.
        """
        with suppress(OSError):
            note_end(self._disk, self.folder, self.flushed_offset, sync=False)

    def drop_before_snapshot(self, base: SnapshotId, keep_records: int) -> None:
        """Delete segments that a snapshot covers, except some that slow followers may need."""
        log, self._base = self._log, base
        last = base.end_offset - keep_records
        starts = [s.base_offset for s in log.segments[1:] if s.base_offset <= last]
        if starts:
            self._drop_before(starts[-1])
        if log.active.size:
            log.roll()

    def _drop_before(self, offset: int) -> None:
        retired: list[str] = []

        def failed(error: OSError) -> None:
            self._remove(retired)
            event = "cannot delete metadata log segments before a snapshot"
            self._outbox.append(Notice("warning", event, {"problem": str(error)}))

        steps = drop_segments(self._log, offset, retired)
        self._changes.start(steps, lambda _: self._remove(retired), failed)

    def close(self) -> None:
        """Close the log, and write down its end for the check at the next start."""
        self._log.flush()
        self._log.close()
        note_end(self._disk, self.folder, self.flushed_offset, sync=True)

    def _flushed(self, log: Log, task: FlushTask) -> None:
        if log is not self._log:
            return
        self._flushing = False
        log.finish_flush(task)
        self.on_flushed()
        if log is self._log and log.flushed_offset < log.end_offset:
            self.flush()

    def _note_voters(self, header: BatchHeader, batch: bytearray | memoryview) -> None:
        if not header.is_control:
            return
        base = parse_header(batch).base_offset  # set after the header was parsed
        for message in control_messages(batch, header):
            if isinstance(message, VotersRecord):
                self.history.add(base, VoterSet.of_record(message))

    def _remove(self, paths: list[str]) -> None:
        if paths:
            self._outbox.append(Remove(tuple(paths), REMOVE_AFTER_MS))
