"""Writes snapshots of the committed metadata while the quorum keeps working.

The writer encodes batch by batch, each in an event of its own, and has the file synced off the
event loop. It deletes the log before the snapshot and older snapshots only after the snapshot is
durable. A change of leader does not matter: committed records stay committed. When a leader's newer
snapshot replaces the whole log, the writer abandons its own.
"""

from barnabas.effects import MakeDurable, Remove
from barnabas.raft.commit_listener import RaftListener
from barnabas.raft.environment import Environment
from barnabas.raft.metadata_log import REMOVE_AFTER_MS, MetadataLog
from barnabas.raft.metadata_snapshots import NO_SNAPSHOT, SnapshotId, Snapshots, pieces
from barnabas.storage.changes import Change


class SnapshotWriter:
    """Writes at most one snapshot at a time."""

    def __init__(
        self,
        log: MetadataLog,
        snapshots: Snapshots,
        listener: RaftListener,
        environment: Environment,
        after_records: int,
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._listener = listener
        self._environment = environment
        self._after_records = after_records
        self._change: Change[None] | None = None
        self._snapshot = NO_SNAPSHOT

    def start_if_due(self, end_offset: int) -> None:
        """Start a snapshot if enough records were committed since the last one.

        The listener must have applied everything below the offset, and nothing else.
        """
        since = end_offset - self._snapshots.newest.end_offset
        if since >= self._after_records and self._change is None:
            self._start(end_offset)

    def abandon(self) -> None:
        """Stop writing: a leader's newer snapshot has arrived, or the node stops."""
        change, self._change = self._change, None
        if change is not None:
            change.is_over = True
            self._snapshots.give_up(self._snapshot)

    def remove_older(self) -> None:
        """Delete the snapshots that are older than the newest."""
        older = self._snapshots.older()
        if older:
            self._environment.outbox.append(Remove(older, REMOVE_AFTER_MS))

    def _start(self, end_offset: int) -> None:
        snapshot = SnapshotId(end_offset, self._log.epoch_before(end_offset))
        voters = self._log.history.at(end_offset)
        now_ms = self._environment.timers.wall_ms
        content = pieces(snapshot, voters, self._listener.snapshot(), now_ms)
        change = Change(
            self._snapshots.storing(snapshot, content),
            lambda _: self._stored(snapshot),
            self._failed,
        )
        self._change, self._snapshot = change, snapshot
        self._continue(change)

    def _continue(self, change: Change[None]) -> None:
        sync = change.advance()
        if sync is not None:
            effect = MakeDurable(sync, lambda: self._continue(change))
            self._environment.outbox.append(effect)

    def _stored(self, snapshot: SnapshotId) -> None:
        self._change = None
        try:
            self._log.drop_before_snapshot(snapshot, self._after_records)
        except OSError as error:
            self._failed(error)
        else:
            self.remove_older()

    def _failed(self, error: OSError) -> None:
        self._change = None
        event = "writing a metadata snapshot failed"
        self._environment.warn(event, {"problem": str(error)})
