"""The interface through which Raft reports commits and leadership to the metadata layer."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from barnabas.raft.metadata_snapshots import Pair


class RaftListener(Protocol):
    """Applies what the quorum commits, and acts as the controller while this node leads."""

    def load_snapshot(self, records: Iterable[Pair]) -> None:
        """Replace all state by the content of a snapshot, which ends at the high watermark."""

    def committed(self, records: Sequence[Pair], end_offset: int) -> None:
        """Apply one whole batch. Batches come in order and once; a control batch has no records."""

    def became_active(self, epoch: int) -> None:
        """Start to act as the leader: every earlier commit has been delivered."""

    def resigned(self) -> None:
        """Stop acting as the leader. Records proposed earlier may still be committed, or never."""

    def leader_changed(self) -> None:
        """Note that `leader_id` has changed."""

    def snapshot(self) -> Iterable[Pair]:
        """Return the state after everything committed so far, as records.

        Raft iterates over it in many steps. Later commits must not change what it returns.
        """
