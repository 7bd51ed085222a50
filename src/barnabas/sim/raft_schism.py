"""Two leaders that change who votes, each without knowing of the other: a play for five nodes.

By chance this hardly ever comes together (the single-server bug of Raft, 2015):

    1. the leader of four is cut off together with an observer, and takes it in as the fifth
    2. somebody else is elected, and is told at once to remove the old leader: one that did so
       before its first commit could commit that with a single other voter of three
    3. the old leader meets the one that has not heard of it: with the observer they are three of
       five, and elect a leader that knows nothing of the removal

So the removal must be refused in the second act.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from barnabas.raft.machine import Raft
from barnabas.raft.voters import Voter
from barnabas.sim.raft_host import RaftHost
from barnabas.sim.raft_network import RaftNetwork
from barnabas.sim.world import World

VOTERS = 4
PATIENCE_MS = 2_000
SECOND_ACT_MS = 150


class Operator(Protocol):
    """Whoever changes who votes."""

    def add_voter(self, host: RaftHost, new: RaftHost) -> None:
        """Ask a leader to take a node in."""

    def remove_voter(self, host: RaftHost, voter: Voter) -> None:
        """Ask a leader to let a voter go."""


class Schism:
    """One performance, if the cast is there."""

    def __init__(self, world: World, network: RaftNetwork, operator: Operator) -> None:
        self._world = world
        self._network = network
        self._operator = operator
        self._over_ms = 0

    def begin(self, old: RaftHost) -> None:
        """Cut the leader off with an observer, and have it take that one in."""
        raft = old.raft
        assert raft is not None
        outside = [h for h in self._hosts if raft.voters.find(h.node_id) is None]
        others = [h for h in self._hosts if h is not old and h not in outside]
        if len(raft.voters) != VOTERS or not outside or any(h.raft is None for h in self._hosts):
            return
        self._part([old, *outside], others)
        self._operator.add_voter(old, outside[0])
        self._over_ms = self._world.now_ms + PATIENCE_MS
        self._await_another(old, outside, others)

    @property
    def _hosts(self) -> list[RaftHost]:
        return list(self._network.hosts.values())

    def _await_another(
        self, old: RaftHost, outside: Sequence[RaftHost], others: Sequence[RaftHost]
    ) -> None:
        """Look every millisecond whether somebody was elected."""
        new = next((h for h in others if _leads(h.raft)), None)
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
        friend, stranger = self._world.rng.sample(list(others), 2)
        self._part([stranger], [new, friend])
        voter = None if new.raft is None else new.raft.voters.find(old.node_id)
        if voter is not None:
            self._operator.remove_voter(new, voter)
        self._later(lambda: self._join([old, stranger, *outside]))

    def _later(self, action: Callable[[], None]) -> None:
        self._world.after(SECOND_ACT_MS, action)

    def _part(self, here: Iterable[RaftHost], there: Sequence[RaftHost]) -> None:
        cuts = self._network.cuts
        for one in here:
            for other in there:
                cuts[one.node_id, other.node_id] = cuts[other.node_id, one.node_id] = None

    def _join(self, together: Sequence[RaftHost]) -> None:
        for one in together:
            for other in together:
                self._network.cuts.pop((one.node_id, other.node_id), None)


def _leads(raft: Raft | None) -> bool:
    return raft is not None and raft.is_leader
