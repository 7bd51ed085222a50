"""Tracks the high watermark of the metadata log and delivers committed records to the listener."""

from barnabas.protocol.records import records
from barnabas.raft.commit_listener import RaftListener
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.metadata_snapshots import Pair, Snapshot, Snapshots
from barnabas.raft.snapshot_writing import SnapshotWriter


class CommitTimes:
    """How long appends of this node, as the leader, took until they were committed."""

    __slots__ = ("count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0

    def add(self, duration_ms: int) -> None:
        """Count an append that is committed now."""
        self.count += 1
        self.total_ms += duration_ms


class CommittedRecords:
    """The committed part of the log; the listener gets every batch of it once and in order."""

    def __init__(
        self,
        log: MetadataLog,
        snapshots: Snapshots,
        writer: SnapshotWriter,
        listener: RaftListener,
    ) -> None:
        self.high_watermark = 0
        self.snapshots = snapshots
        self._log = log
        self._writer = writer
        self._listener = listener
        self._delivered = 0
        self.applied_ms = -1
        """The time of the last batch that the listener has."""
        self._delivering = False

    def advance(self, high_watermark: int) -> None:
        """Raise the high watermark, and deliver the records below it."""
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._deliver()
            if not self._delivering:
                self._writer.start_if_due(self._delivered)

    def load(self, snapshot: Snapshot) -> None:
        """Have the listener start from a snapshot."""
        self.high_watermark = self._delivered = snapshot.id.end_offset
        self._listener.load_snapshot(snapshot.records)

    def install(self, snapshot: Snapshot, content: bytes) -> None:
        """Replace the log and the listener's state by a leader's snapshot."""
        self._writer.abandon()
        self.snapshots.store(snapshot.id, content)
        self._log.reset(snapshot.id, snapshot.voters)
        self.load(snapshot)
        self._writer.remove_older()

    def close(self) -> None:
        """Abandon the snapshot that is being written."""
        self._writer.abandon()

    def _deliver(self) -> None:
        if self._delivering:
            return  # the listener caused this commit; the loop below delivers it
        self._delivering = True
        try:
            while self._delivered < self.high_watermark:
                self._deliver_to(self.high_watermark)
        finally:
            self._delivering = False

    def _deliver_to(self, end: int) -> None:
        for header, batch in self._log.batches(self._delivered, end):
            pairs: list[Pair] = []
            if not header.is_control:
                pairs = [(r.key or b"", r.value or b"") for r in records(batch, header)]
            self._delivered = header.last_offset + 1
            self.applied_ms = header.max_timestamp
            self._listener.committed(pairs, self._delivered)
