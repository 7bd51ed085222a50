"""The voters as this node knows them, and the addresses at which it can reach them."""

from barnabas.effects import Address
from barnabas.model.ids import NodeId
from barnabas.raft.identity import Identity
from barnabas.raft.voters import Voter, VoterHistory, VoterSet


class KnownVoters:
    """The current voter set according to this node's log, with this node's place in it."""

    def __init__(self, identity: Identity, history: VoterHistory) -> None:
        self.history = history
        self._identity = identity
        self._learned: dict[NodeId, Address] = {}

    @property
    def current(self) -> VoterSet:
        """The voter set in effect."""
        return self.history.current

    @property
    def include_this_node(self) -> bool:
        """Whether this node is a voter."""
        return self.current.includes(self._identity.key)

    @property
    def are_this_node_alone(self) -> bool:
        """Whether this node is the only voter, and so a majority by itself."""
        return len(self.current) == 1 and self.include_this_node

    def others(self) -> list[Voter]:
        """Return all voters except this node."""
        return [voter for voter in self.current if voter.id != self._identity.node_id]

    def learn_address(self, node_id: NodeId, address: Address) -> None:
        """Remember the address that a response names for a leader."""
        self._learned[node_id] = address

    def address_of(self, node_id: NodeId, attempt: int = 0) -> Address | None:
        """Return the address of a node. Later attempts try the addresses from other sources."""
        bootstrap = self.history.bootstrap.find(node_id)
        voter = self.current.find(node_id)
        known = [
            self._learned.get(node_id),
            None if voter is None else voter.address,
            None if bootstrap is None else bootstrap.address,
        ]
        addresses = list(dict.fromkeys(address for address in known if address is not None))
        return addresses[attempt % len(addresses)] if addresses else None
