"""The roles without a leader: waiting for one, asking to be one, and having been one.

Timeouts are drawn between the election timeout and twice that, so that voters seldom stand against
each other. They do so where a leader's process dies, which all of them notice at the same moment:
each votes for itself, and none can win. A candidate that sees this, because the voters that answer
have refused it and the others cannot be reached, gives up soon. A voter that refuses
a pre-vote may grant it once it misses the leader itself, so a prospective asks again and again
until its time is over.
"""

from typing import TYPE_CHECKING

from barnabas.model.ids import NodeId
from barnabas.protocol.messages.vote import VoteResponse
from barnabas.raft.messages import (
    FETCH_BYTES,
    FetchFacts,
    Leadership,
    VoteFacts,
    end_request,
    fetch_answer,
    fetch_request,
    told,
    vote_request,
)
from barnabas.raft.roles import Role
from barnabas.raft.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchResponse
    from barnabas.raft.machine import Raft

DOUBLINGS_MAX = 8


class Unattached(Role):
    """Without a leader; a voter waits until it asks for an election, an observer looks around."""

    name = "unattached"

    def __init__(self, raft: "Raft", wait_ms: int | None = None) -> None:
        super().__init__(raft)
        self._wait_ms = wait_ms
        self.deadline_ms = 0
        self._asked = 0

    def enter(self) -> None:
        """Wait, or look around."""
        wait_ms = self.raft.election_wait_ms() if self._wait_ms is None else self._wait_ms
        self.deadline_ms = self.raft.timers.now_ms + wait_ms
        if self.raft.is_voter:
            self.after("election", wait_ms, self._stand)
        else:
            self._look_around()

    def _stand(self) -> None:
        raft = self.raft
        raft.become(Prospective(raft) if raft.is_voter else Unattached(raft))

    def _look_around(self) -> None:
        """Ask the voters in turn; whoever knows the leader says so."""
        others = self.raft.other_voters()
        if not others:
            return
        voter = others[self._asked % len(others)]
        address = self.raft.address_of(voter.id, self._asked // len(others))
        self._asked += 1
        facts = FetchFacts(
            self.raft.key,
            self.raft.epoch,
            self.raft.log_end,
            self.raft.high_watermark,
            0,
            FETCH_BYTES,
        )
        self.ask(address, fetch_request(self.raft.cluster_id, facts), self._told)

    def _told(self, response: "FetchResponse | None") -> None:
        answer = None if response is None else fetch_answer(response)
        self.raft.forgive()  # who does not vote has nobody else to go by
        if answer is not None and self.raft.learn(answer.leader):
            return
        self.after("look", self.raft.retry_ms, self._look_around)


class Election(Role):
    """Asks all voters for something, and counts."""

    pre_vote = False

    def __init__(self, raft: "Raft") -> None:
        super().__init__(raft)
        self.granted: dict[NodeId, None] = {}
        self._attempts = 0

    def enter(self) -> None:
        """Ask everybody, this node first."""
        self.after("election", self.raft.election_wait_ms(), self.lost)
        self._count(self.raft.me)
        for voter in self.raft.other_voters():
            if self.raft.role is self:
                self._ask_for_vote(voter)

    def won(self) -> None:
        """Hear that a majority agrees."""
        raise NotImplementedError

    def lost(self) -> None:
        """Hear that the time is over."""
        self.raft.forgive()
        self.raft.become(Prospective(self.raft) if self.raft.is_voter else Unattached(self.raft))

    def refused(self, voter: Voter) -> None:
        """Hear that a voter does not agree."""
        raise NotImplementedError

    def unreached(self, voter: Voter) -> None:
        """Hear that a voter did not answer; it is asked again."""

    def _ask_for_vote(self, voter: Voter) -> None:
        raft = self.raft
        facts = VoteFacts(raft.epoch, raft.key, raft.log_end, self.pre_vote)
        request = vote_request(raft.cluster_id, voter, facts)
        self._attempts += 1
        address = raft.address_of(voter.id, self._attempts // max(1, len(raft.voters)))
        self.ask(address, request, lambda response: self._voted(voter, response))

    def _voted(self, voter: Voter, response: VoteResponse | None) -> None:
        if response is None or response.error_code or not response.topics:
            self.unreached(voter)
            self.ask_again(voter)
            return
        data = response.topics[0].partitions[0]
        leader = told(data.leader_id, data.leader_epoch, response.node_endpoints)
        if self.raft.learn(leader, voter.id):
            return
        if data.vote_granted and data.leader_epoch == self.raft.epoch:
            self._count(voter.id)
        else:
            self.refused(voter)

    def ask_again(self, voter: Voter) -> None:
        """Ask a voter once more, a little later."""
        self.after(f"ask {voter.id}", self.raft.retry_ms, lambda: self._ask_for_vote(voter))

    def _count(self, node_id: NodeId) -> None:
        self.granted[node_id] = None
        voters = self.raft.voters
        if sum(1 for voter in voters if voter.id in self.granted) >= voters.majority:
            self.won()


class Prospective(Election):
    """Would like to stand, if it would win."""

    name = "prospective"
    pre_vote = True

    def won(self) -> None:
        """Stand."""
        self.raft.stand()

    def refused(self, voter: Voter) -> None:
        """Ask again: it may miss the leader too before long."""
        self.ask_again(voter)


class Candidate(Election):
    """Stands in an epoch of its own. `Raft.stand` has saved its vote for itself."""

    name = "candidate"

    def __init__(self, raft: "Raft") -> None:
        super().__init__(raft)
        self._refused: dict[NodeId, None] = {}
        self._unreached: dict[NodeId, None] = {}
        self._gives_up = False

    def won(self) -> None:
        """Lead."""
        self.raft.lead(list(self.granted))

    def refused(self, voter: Voter) -> None:
        """Note that this voter will not vote for this node in this epoch."""
        self._unreached.pop(voter.id, None)
        self._refused[voter.id] = None
        self._give_up_if_hopeless()

    def unreached(self, voter: Voter) -> None:
        """Note that this voter may be gone."""
        self._unreached[voter.id] = None
        self._give_up_if_hopeless()

    def _give_up_if_hopeless(self) -> None:
        """End the election early where those who may still vote for this node are no majority.

        How long it waits before the next is drawn from a range that doubles with each election
        that was lost, so that candidates part.
        """
        raft = self.raft
        missing = len(self._refused.keys() | self._unreached.keys())
        if self._gives_up or not self._refused:
            return
        if len(raft.voters) - missing < raft.voters.majority:
            self._gives_up = True
            longest_ms = 2 * raft.retry_ms << min(raft.lost_elections, DOUBLINGS_MAX)
            wait_ms = raft.rng.randint(1, min(longest_ms, raft.settings.election_timeout_ms))
            self.after("election", wait_ms, self.lost)

    def lost(self) -> None:
        """Hear that the time is over; the next try waits for longer."""
        self.raft.lost_elections += 1
        super().lost()


class Resigned(Role):
    """Led this epoch. It may not vote for another in it, and has told everyone to elect one."""

    name = "resigned"

    def __init__(self, raft: "Raft", successors: list[ReplicaKey] | None = None) -> None:
        super().__init__(raft)
        self._successors = successors or []

    def enter(self) -> None:
        """Say so to everyone, and wait for whoever is next."""
        raft = self.raft
        wait_ms = raft.election_wait_ms() if raft.is_voter else 4 * raft.retry_ms
        self.after("election", wait_ms, self._stand)
        for voter in raft.other_voters():
            self._tell(voter, 0)

    def _tell(self, voter: Voter, attempt: int) -> None:
        leader = Leadership(self.raft.epoch, self.raft.me, self.raft.own_address)
        request = end_request(self.raft.cluster_id, leader, self._successors)

        def told_it(response: object | None) -> None:
            if response is None:
                retry = self.raft.retry_ms
                self.after(f"tell {voter.id}", retry, lambda: self._tell(voter, attempt + 1))

        self.ask(self.raft.address_of(voter.id, attempt), request, told_it)

    def _stand(self) -> None:
        raft = self.raft
        raft.become(Prospective(raft) if raft.is_voter else Unattached(raft))
