"""The role of the leader: append, serve fetches, and commit what a majority has synced.

The first record of an epoch is a leader change message. Until that record is committed, nothing is:
a majority that holds records of earlier epochs can still be outvoted by one that does not (Raft
5.4.2, figure 8). Until then the leader is not active, and must not act on its metadata.

A fetch that finds nothing new waits. The leader answers it when it appends a record, when the high
watermark passes the one that the follower knows (KIP-1166), or when the fetch's wait is over.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.protocol.messages.leader_change_message import Voter as NamedVoter
from barnabas.raft.messages import (
    FetchAnswer,
    FetchFacts,
    begin_request,
    fetch_response,
    leadership_from,
)
from barnabas.raft.metadata_snapshots import Pair
from barnabas.raft.raft_roles import Role
from barnabas.raft.raft_voter_changes import VoterChanges
from barnabas.raft.replicas import Replicas
from barnabas.raft.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from barnabas.raft.raft_elections import Elections


class WaitingFetch:
    """A fetch that waits for a new record or a higher high watermark."""

    __slots__ = ("facts", "pending", "timer")

    def __init__(self, facts: FetchFacts) -> None:
        self.facts = facts
        self.pending: Pending[FetchResponse] = Pending()
        self.timer: Timer


class Leader(Role):
    """Leads the epoch in which a majority voted for it."""

    name = "leader"

    def __init__(self, elections: "Elections", granted: Sequence[NodeId]) -> None:
        super().__init__(elections)
        self.log = elections.log
        self.committed = elections.committed
        self.replicas = Replicas(self.identity.key, self.timers.now_ms)
        self.voter_changes = VoterChanges(self)
        self.active = False
        self.epoch_start = self.log.end_offset
        self._granted = granted
        self._waiting: dict[WaitingFetch, None] = {}
        self._uncommitted: deque[tuple[int, int]] = deque()
        """The ends of what was appended and is not committed, each with the time."""

    def enter(self) -> None:
        """Write the epoch's first record, and announce the leader to the voters."""
        voters = {voter.id: voter.directory for voter in self.voters.current}
        change = LeaderChangeMessage(
            version=1,
            leader_id=self.identity.node_id,
            voters=[NamedVoter(voter_id=n, voter_directory_id=d) for n, d in voters.items()],
            granting_voters=[
                NamedVoter(voter_id=n, voter_directory_id=voters[n])
                for n in self._granted
                if n in voters
            ],
        )
        try:
            self.log.append_control([change], self.elections.epoch, self.timers.wall_ms)
        except OSError as error:
            self.environment.warn_of_disk(error)
            self.elections.resign()
            return
        self._appended()
        self._watch_voters()

    def leave(self) -> None:
        """Answer all waiting requests: this node does not lead any more."""
        super().leave()
        waiting, self._waiting = list(self._waiting), {}
        for fetch in waiting:
            fetch.timer.cancel()
        self.voter_changes.fail_all()
        for fetch in waiting:
            fetch.pending.complete(self._not_leader())

    def retry(self) -> None:
        """Resign, so that a voter whose disk accepts writes can lead."""
        self.elections.resign()

    def refuses_pre_votes(self) -> bool:
        """Refuse: there is a leader, this node."""
        return True

    def flushed(self) -> None:
        """Count this node's own log towards the majority."""
        self.advance()

    def append(self, pairs: Sequence[Pair], now_ms: int) -> int:
        """Append records; return the offset after them.

        Raises `OSError` if the disk refuses. The leader then resigns after a short wait, because it
        cannot decide anything, not even which replica replaces a broker whose disk is full.
        """
        try:
            end = self.log.append(pairs, self.elections.epoch, now_ms)
        except OSError:
            self.after("refused", self.timeouts.retry_ms, self.retry)
            raise
        self._appended()
        return end

    def voters_appended(self) -> None:
        """Act on a new voter set in the log: the majority may have changed with it."""
        self._appended()
        self._watch_voters()
        if self.is_current:
            self.advance()

    def _appended(self) -> None:
        self._uncommitted.append((self.log.end_offset, self.timers.now_ms))
        self.log.flush()
        self._answer_waiting()

    def advance(self) -> None:
        """Raise the high watermark to the offset that a majority has synced."""
        offset = self.replicas.majority_offset(self.voters.current, self.log.flushed_offset)
        if offset <= self.committed.high_watermark or not self.covers_own_epoch(offset):
            return
        while self._uncommitted and self._uncommitted[0][0] <= offset:
            self.elections.commit_times.add(self.timers.now_ms - self._uncommitted.popleft()[1])
        self.committed.advance(offset)
        if not self.active:
            self.active = True
            self.elections.listener.became_active(self.elections.epoch)
        if self.is_current:
            self.voter_changes.advanced()
        if self.is_current:
            self._answer_waiting()

    def covers_own_epoch(self, offset: int) -> bool:
        """Whether the records below an offset include this epoch's first (Raft figure 8)."""
        return offset > self.epoch_start

    def fetch(self, facts: FetchFacts) -> FetchResponse | Pending[FetchResponse]:
        """Answer a fetch at once, or let it wait for something new."""
        answer = self._answer(facts)
        if answer.divergence is None and answer.snapshot is None:
            self._acknowledged(facts)
            if not self.is_current:
                return self._not_leader()
            answer = self._answer(facts)
            behind = facts.high_watermark < self.committed.high_watermark
            if not answer.records and not behind and facts.max_wait_ms > 0:
                return self._wait(facts)
        else:
            self.replicas.contacted(facts.replica, self.timers.now_ms)
        return fetch_response(answer)

    def contacted(self, key: ReplicaKey) -> None:
        """Note that a replica is alive, though it did not fetch from the log."""
        self.replicas.contacted(key, self.timers.now_ms)

    def successors(self) -> list[ReplicaKey]:
        """Return the other voters; those with the most of the log come first."""
        known = [(self.replicas.of(voter), voter) for voter in self.voters.others()]
        known.sort(key=lambda pair: -1 if pair[0] is None else pair[0].end_offset, reverse=True)
        return [voter.key if replica is None else replica.key for replica, voter in known]

    def _acknowledged(self, facts: FetchFacts) -> None:
        if facts.replica.id < 0 or facts.replica == self.identity.key:
            return
        self.replicas.fetched(
            facts.replica,
            facts.log_end.offset,
            self.log.end_offset,
            self.timers.now_ms,
            self.timers.wall_ms,
        ).high_watermark = facts.high_watermark
        self.advance()
        if self.is_current:
            self.voter_changes.replica_fetched()

    def _answer(self, facts: FetchFacts) -> FetchAnswer:
        empty = FetchAnswer(
            self.elections.leadership,
            high_watermark=self.committed.high_watermark,
            log_start_offset=self.log.start_offset,
        )
        try:
            divergence = self.log.divergence(facts.log_end.offset, facts.log_end.epoch)
        except LookupError:
            return empty._replace(snapshot=self.committed.snapshots.newest)
        if divergence is not None:
            return empty._replace(divergence=divergence)
        end = self.log.end_offset
        return empty._replace(records=self.log.read(facts.log_end.offset, facts.max_bytes, end))

    def _not_leader(self) -> FetchResponse:
        answer = FetchAnswer(self.elections.leadership, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return fetch_response(answer)

    def _wait(self, facts: FetchFacts) -> Pending[FetchResponse]:
        fetch = WaitingFetch(facts)
        self._waiting[fetch] = None
        fetch.timer = self.timers.after(facts.max_wait_ms, lambda: self._end_wait(fetch))

        def forget() -> None:
            fetch.timer.cancel()
            self._waiting.pop(fetch, None)

        fetch.pending.on_abandoned = forget
        return fetch.pending

    def _end_wait(self, fetch: WaitingFetch) -> None:
        fetch.timer.cancel()
        if self._waiting.pop(fetch, fetch) is None:
            fetch.pending.complete(fetch_response(self._answer(fetch.facts)))

    def _answer_waiting(self) -> None:
        """Answer the waiting fetches for which there is something new."""
        end, high_watermark = self.log.end_offset, self.committed.high_watermark
        for fetch in list(self._waiting):
            facts = fetch.facts
            if facts.log_end.offset < end or facts.high_watermark < high_watermark:
                self._end_wait(fetch)

    def _watch_voters(self) -> None:
        """Watch the other voters, if there are any; the only voter needs no timers."""
        if not self.voters.are_this_node_alone:
            self._announce_to_silent_voters()
            self._check_quorum()

    def _announce_to_silent_voters(self) -> None:
        """Announce this leader to voters that have not fetched for a while."""
        fetch_ms = self.timeouts.fetch_ms
        silent_since = self.timers.now_ms - fetch_ms // 2
        for voter in self.voters.others():
            replica = self.replicas.of(voter)
            if replica is None or replica.contact_ms < silent_since:
                self._announce(voter)
        self.after("call", max(1, fetch_ms // 4), self._announce_to_silent_voters)

    def _announce(self, voter: Voter) -> None:
        request = begin_request(self.identity.cluster_id, voter, self.elections.leadership)

        def answered(response: BeginQuorumEpochResponse | None) -> None:
            if response is not None and response.topics:
                data = response.topics[0].partitions[0]
                endpoints = response.node_endpoints
                leader = leadership_from(data.leader_id, data.leader_epoch, endpoints)
                self.elections.learn(leader)

        self.ask(self.voters.address_of(voter.id), request, answered)

    def _check_quorum(self) -> None:
        """Resign if no majority has fetched for a while: another node may lead already."""
        now_ms = self.timers.now_ms
        allowed_ms = self.timeouts.fetch_ms * 3 // 2
        last_ms = self.replicas.majority_contact_ms(self.voters.current, now_ms)
        left_ms = last_ms + allowed_ms - now_ms
        if left_ms <= 0:
            facts = {"epoch": self.elections.epoch, "node": self.identity.node_id}
            self.environment.warn("controller resigns: no majority of voters fetches", facts)
            self.elections.resign()
        else:
            self.after("quorum", left_ms, self._check_quorum)
