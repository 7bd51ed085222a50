"""What the quorum has committed, as all who heard of it agree, and what each node makes of it.

The first to hear of a committed batch writes it down; whoever hears of other records at the same
offsets, of fewer, or of some twice, breaks the world. A node's state is a chain over everything it
was told, so that a snapshot can be held against the truth by one value.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from barnabas.raft.snapshots import Pair
from barnabas.sim.world import InvariantError

CHAIN_KEY = b"#chain"
END_KEY = b"#end"
START = b""


def extended(chain: bytes, records: Sequence[Pair], end_offset: int) -> bytes:
    """Return the chain with one more batch."""
    digest = blake2b(chain, digest_size=8)
    for key, value in records:
        digest.update(key + b"=" + value + b";")
    digest.update(str(end_offset).encode())
    return digest.digest()


class Truth:
    """Everything that was ever committed."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.chains: dict[int, bytes] = {0: START}
        self.leaders: dict[int, int] = {}

    def heard(self, node_id: int, start: int, chain: bytes, end_offset: int) -> None:
        """Hold against the truth what a node's state is after a batch."""
        if start not in self.chains:
            raise InvariantError(f"node {node_id} heard of a batch that starts at {start}")
        known = self.chains.get(end_offset)
        if known is None:
            if start != self.end_offset:
                raise InvariantError(
                    f"node {node_id} heard of a batch {start}..{end_offset}, and others of another"
                )
            self.chains[end_offset] = chain
            self.end_offset = end_offset
        elif known != chain:
            raise InvariantError(f"node {node_id} heard of other records before {end_offset}")

    def leads(self, node_id: int, epoch: int) -> None:
        """Check that an epoch has one leader."""
        if self.leaders.setdefault(epoch, node_id) != node_id:
            raise InvariantError(f"{self.leaders[epoch]} and {node_id} lead epoch {epoch}")


class Audience:
    """The listener of one node for one life."""

    def __init__(self, node_id: int, truth: Truth) -> None:
        self.node_id = node_id
        self.chain = START
        self.end_offset = 0
        self.values: dict[bytes, bytes] = {}
        self._truth = truth

    def load_snapshot(self, records: Iterable[Pair]) -> None:
        """Start over from a snapshot, which must be of the truth."""
        values = dict(records)
        if CHAIN_KEY not in values:
            raise InvariantError(f"node {self.node_id} loads a snapshot without its end")
        self.end_offset = int(values.pop(END_KEY))
        self.chain = values.pop(CHAIN_KEY)
        self.values = values
        if self._truth.chains.get(self.end_offset) != self.chain:
            raise InvariantError(f"node {self.node_id} loads a snapshot of what never was")

    def committed(self, records: Sequence[Pair], end_offset: int) -> None:
        """Hear of a batch."""
        start = self.end_offset
        self.chain = extended(self.chain, records, end_offset)
        self.end_offset = end_offset
        self.values.update(records)
        self._truth.heard(self.node_id, start, self.chain, end_offset)

    def became_active(self, epoch: int) -> None:
        """Check that an active leader knows all that was ever committed."""
        if self.end_offset < self._truth.end_offset:
            raise InvariantError(
                f"{self.node_id} is active in epoch {epoch} with what was committed up to "
                f"{self.end_offset}, and more was up to {self._truth.end_offset}"
            )

    def resigned(self) -> None:
        """Nothing depends on it here."""

    def leader_changed(self) -> None:
        """Nothing depends on it here."""

    def snapshot(self) -> Iterable[Pair]:
        """Sum up what was heard until now."""
        end = str(self.end_offset).encode()
        return [*self.values.items(), (CHAIN_KEY, self.chain), (END_KEY, end)]
