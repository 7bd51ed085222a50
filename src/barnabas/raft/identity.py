"""Who this node is in the metadata quorum: its id, its directory, its address and its cluster."""

from dataclasses import dataclass

from barnabas.effects import Address
from barnabas.model.ids import NodeId
from barnabas.raft.voters import ReplicaKey


@dataclass(slots=True)
class Identity:
    """What this node says about itself in requests, and compares requests with."""

    node_id: NodeId
    address: Address | None
    """Where other members of the quorum reach this node."""
    cluster_id: str | None
    """A request of another cluster is refused, if both sides know their cluster id."""
    directory: bytes = b""
    """The id of the metadata directory. `Raft.open` reads or creates it."""

    @property
    def key(self) -> ReplicaKey:
        """This node with its directory."""
        return ReplicaKey(self.node_id, self.directory)

    def is_in_cluster(self, cluster_id: str | None) -> bool:
        """Whether a request is for this cluster, as far as both sides know their cluster id."""
        return None in (cluster_id, self.cluster_id) or cluster_id == self.cluster_id
