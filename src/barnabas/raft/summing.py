"""Writing a snapshot of the metadata while the quorum goes on.

What was committed up to an offset is encoded batch by batch, each in an event of its own, and
synced off the event loop. Only once the snapshot is safe may the log before it and older snapshots
go. Who leads meanwhile does not matter: what was committed stays committed. Where a leader's newer
snapshot takes the place of everything, the one that is being written is abandoned.
"""

from typing import TYPE_CHECKING

from barnabas.effects import MakeDurable, Notice
from barnabas.raft.snapshots import NO_SNAPSHOT, SnapshotId, pieces
from barnabas.storage.changes import Change

if TYPE_CHECKING:
    from barnabas.raft.machine import Raft


class SummingUp:
    """The snapshot that a node is writing, if any."""

    def __init__(self, raft: "Raft") -> None:
        self._raft = raft
        self._change: Change[None] | None = None
        self._snapshot = NO_SNAPSHOT

    @property
    def is_idle(self) -> bool:
        """Whether no snapshot is being written."""
        return self._change is None

    def start(self, end_offset: int) -> None:
        """Begin a snapshot of what the listener knows, which is everything below the offset."""
        raft = self._raft
        snapshot = SnapshotId(end_offset, raft.log.epoch_before(end_offset))
        voters = raft.log.history.at(end_offset)
        content = pieces(snapshot, voters, raft.listener.snapshot(), raft.timers.wall_ms)
        change = Change(
            raft.snapshots.storing(snapshot, content),
            lambda _: self._stored(snapshot),
            self._refused,
        )
        self._change, self._snapshot = change, snapshot
        self._go_on(change)

    def abandon(self) -> None:
        """Write no further: a newer snapshot is there, or the node stops."""
        change, self._change = self._change, None
        if change is not None:
            change.is_over = True
            self._raft.snapshots.give_up(self._snapshot)

    def _go_on(self, change: Change[None]) -> None:
        sync = change.advance()
        if sync is not None:
            self._raft.outbox.append(MakeDurable(sync, lambda: self._go_on(change)))

    def _stored(self, snapshot: SnapshotId) -> None:
        self._change = None
        try:
            self._raft.log.summed_up(snapshot, self._raft.settings.snapshot_after_records)
        except OSError as error:
            self._refused(error)
        else:
            self._raft.remove_old_snapshots()

    def _refused(self, error: OSError) -> None:
        self._change = None
        event = "the disk refused a snapshot of the metadata"
        self._raft.outbox.append(Notice("warning", event, {"problem": str(error)}))
