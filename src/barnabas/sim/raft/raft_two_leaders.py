"""A scripted fault: two leaders change the voters, each without knowing of the other.

Random faults hardly ever produce this sequence (the single-server bug of Raft, 2015):

    1. the leader of four voters is cut off with an observer, and adds it as the fifth voter
    2. another leader is elected, and the operator asks it at once to remove the old leader; before
       its first commit it could commit the removal with one other voter of three
    3. the old leader reaches the voter that does not know of the removal: with the observer they
       are three of five, and elect a second leader

So the leader must refuse the removal in step 2.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from barnabas.raft.voters import Voter
from barnabas.sim.raft.raft_host import RaftHost
from barnabas.sim.raft.raft_network import RaftNetwork
from barnabas.sim.world import World

VOTERS = 4
ELECTION_MS_MAX = 2_000
SECOND_STEP_MS = 150


class Operator(Protocol):
    """Sends voter changes to leaders."""

    def add_voter(self, host: RaftHost, new: RaftHost) -> None:
        """Ask a leader to add a voter."""

    def remove_voter(self, host: RaftHost, voter: Voter) -> None:
        """Ask a leader to remove a voter."""


class TwoLeaders:
    """Runs the sequence once, if enough nodes are up."""

    def __init__(self, world: World, network: RaftNetwork, operator: Operator) -> None:
        self._world = world
        self._network = network
        self._operator = operator
        self._over_ms = 0

    def begin(self, old: RaftHost) -> None:
        """Cut the leader off with an observer, and have it add the observer as a voter."""
        raft = old.raft
        assert raft is not None
        outside = [h for h in self._hosts if raft.voters.find(h.node_id) is None]
        others = [h for h in self._hosts if h is not old and h not in outside]
        if len(raft.voters) != VOTERS or not outside or any(h.raft is None for h in self._hosts):
            return
        self._isolate([old, *outside], others)
        self._operator.add_voter(old, outside[0])
        self._over_ms = self._world.now_ms + ELECTION_MS_MAX
        self._await_another(old, outside, others)

    @property
    def _hosts(self) -> list[RaftHost]:
        return list(self._network.hosts.values())

    def _await_another(
        self, old: RaftHost, outside: Sequence[RaftHost], others: Sequence[RaftHost]
    ) -> None:
        """Check every millisecond whether another leader was elected."""
        new = next((h for h in others if h.leads), None)
        if new is not None and old.raft is not None:
            self._remove(old, new, outside, [h for h in others if h is not new])
        elif self._world.now_ms < self._over_ms:
            self._world.after(1, lambda: self._await_another(old, outside, others))

    def _remove(
        self,
        old: RaftHost,
        new: RaftHost,
        outside: Sequence[RaftHost],
        others: Sequence[RaftHost],
    ) -> None:
        near, far = self._world.rng.sample(list(others), 2)
        self._isolate([far], [new, near])
        voter = None if new.raft is None else new.raft.voters.find(old.node_id)
        if voter is not None:
            self._operator.remove_voter(new, voter)
        self._later(lambda: self._join([old, far, *outside]))

    def _later(self, action: Callable[[], None]) -> None:
        self._world.after(SECOND_STEP_MS, action)

    def _isolate(self, here: Iterable[RaftHost], there: Sequence[RaftHost]) -> None:
        cuts = self._network.cuts
        for one in here:
            for other in there:
                cuts[one.node_id, other.node_id] = cuts[other.node_id, one.node_id] = None

    def _join(self, together: Sequence[RaftHost]) -> None:
        for one in together:
            for other in together:
                self._network.cuts.pop((one.node_id, other.node_id), None)
