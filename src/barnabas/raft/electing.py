"""The roles without a leader: unattached, prospective, candidate and resigned.

Election timeouts are drawn between the election timeout and twice that, so that two voters seldom
become candidates at the same time. They do when a leader's process dies, because all of them notice
it at the same moment: each votes for itself, and none can win. A candidate detects this when the
voters that answer have refused it and the others cannot be reached; it then gives up early. A voter
that refuses a pre-vote may grant it later, after it misses the leader itself. So a prospective node
repeats its requests until its election timeout is over.
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
    leadership_from,
    vote_request,
)
from barnabas.raft.raft_roles import Role
from barnabas.raft.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchResponse
    from barnabas.raft.raft_elections import Elections


class Unattached(Role):
    """Has no leader. A voter waits before it starts an election; an observer looks for a leader."""

    name = "unattached"

    def __init__(self, elections: "Elections", wait_ms: int | None = None) -> None:
        super().__init__(elections)
        self._wait_ms = wait_ms
        self.deadline_ms = 0
        self._asked = 0

    def enter(self) -> None:
        """Wait for an election, or look for a leader."""
        wait_ms = self.timeouts.draw_election_ms() if self._wait_ms is None else self._wait_ms
        self.deadline_ms = self.timers.now_ms + wait_ms
        if self.voters.include_this_node:
            self.after("election", wait_ms, self.elections.ask_for_pre_votes)
        else:
            self._look_for_leader()

    def _look_for_leader(self) -> None:
        """Ask the voters in turn; one that knows the leader names it."""
        others = self.voters.others()
        if not others:
            return
        voter = others[self._asked % len(others)]
        address = self.voters.address_of(voter.id, self._asked // len(others))
        self._asked += 1
        facts = FetchFacts(
            self.identity.key,
            self.elections.epoch,
            self.elections.log_end,
            self.elections.committed.high_watermark,
            0,
            FETCH_BYTES,
        )
        self.ask(address, fetch_request(self.identity.cluster_id, facts), self._answered)

    def _answered(self, response: "FetchResponse | None") -> None:
        answer = None if response is None else fetch_answer(response)
        self.elections.state.trust_others()  # an observer has no other source
        if answer is not None and self.elections.learn(answer.leader):
            return
        self.after("look", self.timeouts.retry_ms, self._look_for_leader)


class Election(Role):
    """Asks all voters for a vote or a pre-vote, and counts the grants."""

    pre_vote = False

    def __init__(self, elections: "Elections") -> None:
        super().__init__(elections)
        self.granted: dict[NodeId, None] = {}
        self._attempts = 0

    def enter(self) -> None:
        """Count this node's own vote, and ask the other voters."""
        self.after("election", self.timeouts.draw_election_ms(), self.lost)
        self._count(self.identity.node_id)
        for voter in self.voters.others():
            if self.is_current:
                self._ask_for_vote(voter)

    def won(self) -> None:
        """Go on after a majority granted."""
        raise NotImplementedError

    def lost(self) -> None:
        """Start over after the election timeout."""
        self.elections.state.trust_others()
        self.elections.ask_for_pre_votes()

    def refused(self, voter: Voter) -> None:
        """Act on the refusal of a voter."""
        raise NotImplementedError

    def unreached(self, voter: Voter) -> None:
        """Act on a voter that did not answer, before it is asked again."""

    def _ask_for_vote(self, voter: Voter) -> None:
        elections = self.elections
        facts = VoteFacts(elections.epoch, self.identity.key, elections.log_end, self.pre_vote)
        request = vote_request(self.identity.cluster_id, voter, facts)
        self._attempts += 1
        attempt = self._attempts // max(1, len(self.voters.current))
        address = self.voters.address_of(voter.id, attempt)
        self.ask(address, request, lambda response: self._voted(voter, response))

    def _voted(self, voter: Voter, response: VoteResponse | None) -> None:
        if response is None or response.error_code or not response.topics:
            self.unreached(voter)
            self.ask_again(voter)
            return
        data = response.topics[0].partitions[0]
        leader = leadership_from(data.leader_id, data.leader_epoch, response.node_endpoints)
        if self.elections.learn(leader, voter.id):
            return
        if data.vote_granted and data.leader_epoch == self.elections.epoch:
            self._count(voter.id)
        else:
            self.refused(voter)

    def ask_again(self, voter: Voter) -> None:
        """Ask a voter once more after a short wait."""
        self.after(f"ask {voter.id}", self.timeouts.retry_ms, lambda: self._ask_for_vote(voter))

    def _count(self, node_id: NodeId) -> None:
        self.granted[node_id] = None
        voters = self.voters.current
        if sum(1 for voter in voters if voter.id in self.granted) >= voters.majority:
            self.won()


class Prospective(Election):
    """Asks for pre-votes, to become a candidate only if it can win."""

    name = "prospective"
    pre_vote = True

    def won(self) -> None:
        """Become a candidate."""
        self.elections.start_candidacy()

    def refused(self, voter: Voter) -> None:
        """Ask again: the voter may soon miss the leader as well."""
        self.ask_again(voter)


class Candidate(Election):
    """Asks for votes in a new epoch. `start_candidacy` has saved its vote for itself."""

    name = "candidate"

    def __init__(self, elections: "Elections") -> None:
        super().__init__(elections)
        self._refused: dict[NodeId, None] = {}
        self._unreached: dict[NodeId, None] = {}
        self._gives_up = False

    def won(self) -> None:
        """Become the leader."""
        self.elections.lead(list(self.granted))

    def refused(self, voter: Voter) -> None:
        """Note that this voter will not vote for this node in this epoch."""
        self._unreached.pop(voter.id, None)
        self._refused[voter.id] = None
        self._give_up_if_hopeless()

    def unreached(self, voter: Voter) -> None:
        """Note that this voter may be down."""
        self._unreached[voter.id] = None
        self._give_up_if_hopeless()

    def _give_up_if_hopeless(self) -> None:
        """End the election early if the voters that may still grant are no majority.

        The wait before the next election is drawn from a range that doubles with each lost
        election, so that competing candidates get out of step.
        """
        voters = self.voters.current
        missing = len(self._refused.keys() | self._unreached.keys())
        if self._gives_up or not self._refused:
            return
        if len(voters) - missing < voters.majority:
            self._gives_up = True
            wait_ms = self.timeouts.draw_candidacy_ms(self.elections.lost_elections)
            self.after("election", wait_ms, self.lost)

    def lost(self) -> None:
        """Count the lost election: the next early end waits longer."""
        self.elections.lost_elections += 1
        super().lost()


class Resigned(Role):
    """Led this epoch. It grants no vote in it, and asks the other voters to elect a leader."""

    name = "resigned"

    def __init__(self, elections: "Elections", successors: list[ReplicaKey] | None = None) -> None:
        super().__init__(elections)
        self._successors = successors or []

    def enter(self) -> None:
        """Announce the resignation to the other voters, and wait for the next leader."""
        is_voter = self.voters.include_this_node
        wait_ms = self.timeouts.draw_election_ms() if is_voter else 4 * self.timeouts.retry_ms
        self.after("election", wait_ms, self.elections.ask_for_pre_votes)
        for voter in self.voters.others():
            self._announce(voter, 0)

    def _announce(self, voter: Voter, attempt: int) -> None:
        identity = self.identity
        leader = Leadership(self.elections.epoch, identity.node_id, identity.address)
        request = end_request(identity.cluster_id, leader, self._successors)

        def answered(response: object | None) -> None:
            if response is None:
                retry_ms = self.timeouts.retry_ms
                self.after(
                    f"announce {voter.id}", retry_ms, lambda: self._announce(voter, attempt + 1)
                )

        self.ask(self.voters.address_of(voter.id, attempt), request, answered)
