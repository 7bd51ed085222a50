"""Checks that all simulated nodes commit the same metadata records.

The first node that delivers a committed batch defines it. Another node that delivers other records
at the same offsets, skips some, or delivers some twice ends the run. A node's state is a hash chain
over all delivered batches, so that one value is enough to check a snapshot.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from barnabas.raft.metadata_snapshots import Pair
from barnabas.sim.world import InvariantError

CHAIN_KEY = b"#chain"
END_KEY = b"#end"
START = b""


def extended(chain: bytes, records: Sequence[Pair], end_offset: int) -> bytes:
    """Return the hash chain with one batch added."""
    digest = blake2b(chain, digest_size=8)
    for key, value in records:
        digest.update(key + b"=" + value + b";")
    digest.update(str(end_offset).encode())
    return digest.digest()


class CommittedHistory:
    """All batches that any node has committed, as hash chains by end offset."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.chains: dict[int, bytes] = {0: START}
        self.leaders: dict[int, int] = {}

    def check(self, node_id: int, start: int, chain: bytes, end_offset: int) -> None:
        """Compare a node's state after a batch with the history."""
        if start not in self.chains:
            raise InvariantError(f"node {node_id} delivers a batch at {start}, where none starts")
        known = self.chains.get(end_offset)
        if known is None:
            if start != self.end_offset:
                raise InvariantError(
                    f"node {node_id} delivers a batch {start}..{end_offset}, other nodes another"
                )
            self.chains[end_offset] = chain
            self.end_offset = end_offset
        elif known != chain:
            raise InvariantError(
                f"node {node_id} delivers other records before {end_offset} than the first node"
            )

    def leads(self, node_id: int, epoch: int) -> None:
        """Check that an epoch has one leader."""
        if self.leaders.setdefault(epoch, node_id) != node_id:
            raise InvariantError(f"{self.leaders[epoch]} and {node_id} lead epoch {epoch}")


class CheckingListener:
    """The listener of one node during one life."""

    def __init__(self, node_id: int, history: CommittedHistory) -> None:
        self.node_id = node_id
        self.chain = START
        self.end_offset = 0
        self.values: dict[bytes, bytes] = {}
        self._history = history

    def load_snapshot(self, records: Iterable[Pair]) -> None:
        """Start from a snapshot, which must match the history."""
        values = dict(records)
        if CHAIN_KEY not in values:
            raise InvariantError(
                f"node {self.node_id} loads a snapshot whose end was never committed"
            )
        self.end_offset = int(values.pop(END_KEY))
        self.chain = values.pop(CHAIN_KEY)
        self.values = values
        if self._history.chains.get(self.end_offset) != self.chain:
            raise InvariantError(
                f"node {self.node_id} loads a snapshot that does not match the history"
            )

    def committed(self, records: Sequence[Pair], end_offset: int) -> None:
        """Apply a batch, and check it against the history."""
        start = self.end_offset
        self.chain = extended(self.chain, records, end_offset)
        self.end_offset = end_offset
        self.values.update(records)
        self._history.check(self.node_id, start, self.chain, end_offset)

    def became_active(self, epoch: int) -> None:
        """Check that an active leader knows all committed batches."""
        if self.end_offset < self._history.end_offset:
            raise InvariantError(
                f"{self.node_id} is active in epoch {epoch} and knows commits up to "
                f"{self.end_offset}, but the history ends at {self._history.end_offset}"
            )

    def resigned(self) -> None:
        """Do nothing: no check depends on it."""

    def leader_changed(self) -> None:
        """Do nothing: no check depends on it."""

    def snapshot(self) -> Iterable[Pair]:
        """Return the applied values and the hash chain."""
        end = str(self.end_offset).encode()
        return [*self.values.items(), (CHAIN_KEY, self.chain), (END_KEY, end)]
