"""Leading: append, let the others fetch, and commit what a majority has synced.

The first record of an epoch says that it has begun. Until that record is committed nothing is: a
majority that holds records of earlier epochs may still be outvoted by one that does not (Raft
5.4.2, figure 8). Until then the leader is not active, and nobody may act on what it knows.

Fetches that find nothing new wait. They are answered when something is appended, when the high
watermark moves past what the follower knows (KIP-1166), or when their time is over.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.effects import Notice
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.protocol.messages.leader_change_message import Voter as NamedVoter
from barnabas.raft.membership import Membership
from barnabas.raft.messages import (
    FetchAnswer,
    FetchFacts,
    begin_request,
    fetch_response,
    told,
)
from barnabas.raft.replicas import Replicas
from barnabas.raft.roles import Role
from barnabas.raft.snapshots import Pair
from barnabas.raft.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from barnabas.raft.machine import Raft


class Parked:
    """A fetch that waits for something new."""

    __slots__ = ("facts", "pending", "timer")

    def __init__(self, facts: FetchFacts) -> None:
        self.facts = facts
        self.pending: Pending[FetchResponse] = Pending()
        self.timer: Timer


class Leader(Role):
    """Has the votes of a majority."""

    name = "leader"

    def __init__(self, raft: "Raft", granted: Sequence[NodeId]) -> None:
        super().__init__(raft)
        self.replicas = Replicas(raft.key, raft.timers.now_ms)
        self.membership = Membership(raft, self)
        self.active = False
        self.epoch_start = raft.log.end_offset
        self._granted = granted
        self._parked: dict[Parked, None] = {}

    def enter(self) -> None:
        """Write the epoch's first record, and tell everyone."""
        raft = self.raft
        voters = {voter.id: voter.directory for voter in raft.voters}
        change = LeaderChangeMessage(
            version=1,
            leader_id=raft.me,
            voters=[NamedVoter(voter_id=n, voter_directory_id=d) for n, d in voters.items()],
            granting_voters=[
                NamedVoter(voter_id=n, voter_directory_id=voters[n])
                for n in self._granted
                if n in voters
            ],
        )
        try:
            raft.log.append_control([change], raft.epoch, raft.timers.wall_ms)
        except OSError as error:
            notice = Notice("warning", "the disk refused metadata", {"problem": str(error)})
            raft.outbox.append(notice)
            raft.resign()
            return
        self._appended()
        self._watch_voters()

    def leave(self) -> None:
        """Answer everyone who waits: somebody else leads, or nobody."""
        super().leave()
        parked, self._parked = list(self._parked), {}
        for fetch in parked:
            fetch.timer.cancel()
        self.membership.give_up()
        for fetch in parked:
            fetch.pending.complete(self.raft.not_leader())

    def again(self) -> None:
        """Have somebody else lead, whose disk takes metadata."""
        self.raft.resign()

    def refuses_pre_votes(self) -> bool:
        """It knows who leads."""
        return True

    def flushed(self) -> None:
        """Count this node's own log."""
        self.advance()

    def append(self, pairs: Sequence[Pair], now_ms: int) -> int:
        """Append records for others; return the offset after them.

        Raises `OSError` where the disk refuses. The controller then resigns in a moment: nothing
        can be decided here, not even who leads in place of a broker whose disk is full.
        """
        try:
            end = self.raft.log.append(pairs, self.raft.epoch, now_ms)
        except OSError:
            self.after("refused", self.raft.retry_ms, self.again)
            raise
        self._appended()
        return end

    def append_voters(self) -> None:
        """Go on after the membership changed: what is a majority may have, too."""
        self._appended()
        self._watch_voters()
        if self.raft.role is self:
            self.advance()

    def _appended(self) -> None:
        self.raft.log.flush()
        self._wake()

    def advance(self) -> None:
        """Move the high watermark to what a majority has synced."""
        raft = self.raft
        offset = self.replicas.majority_offset(raft.voters, raft.log.flushed_offset)
        if offset <= raft.high_watermark or not self.covers_own_epoch(offset):
            return
        raft.advance(offset)
        if not self.active:
            self.active = True
            raft.listener.became_active(raft.epoch)
        if raft.role is self:
            self.membership.advanced()
        if raft.role is self:
            self._wake()

    def covers_own_epoch(self, offset: int) -> bool:
        """Whether the records below an offset include this epoch's first (Raft figure 8)."""
        return offset > self.epoch_start

    def fetch(self, facts: FetchFacts) -> FetchResponse | Pending[FetchResponse]:
        """Serve a copy, or let it wait."""
        answer = self._answer(facts)
        if answer.divergence is None and answer.snapshot is None:
            self._acknowledged(facts)
            if self.raft.role is not self:
                return self.raft.not_leader()
            answer = self._answer(facts)
            behind = facts.high_watermark < self.raft.high_watermark
            if not answer.records and not behind and facts.max_wait_ms > 0:
                return self._park(facts)
        else:
            self.replicas.contacted(facts.replica, self.raft.timers.now_ms)
        return fetch_response(answer)

    def contacted(self, key: ReplicaKey) -> None:
        """Hear that a copy is there, though it did not fetch from the log."""
        self.replicas.contacted(key, self.raft.timers.now_ms)

    def successors(self) -> list[ReplicaKey]:
        """Return the other voters, those first that have most of the log."""
        known = [(self.replicas.of(voter), voter) for voter in self.raft.other_voters()]
        known.sort(key=lambda pair: -1 if pair[0] is None else pair[0].end_offset, reverse=True)
        return [voter.key if replica is None else replica.key for replica, voter in known]

    def _acknowledged(self, facts: FetchFacts) -> None:
        if facts.replica.id < 0 or facts.replica == self.raft.key:
            return
        raft = self.raft
        self.replicas.fetched(
            facts.replica,
            facts.log_end.offset,
            raft.log.end_offset,
            raft.timers.now_ms,
            raft.timers.wall_ms,
        ).high_watermark = facts.high_watermark
        self.advance()
        if raft.role is self:
            self.membership.fetched()

    def _answer(self, facts: FetchFacts) -> FetchAnswer:
        raft = self.raft
        empty = FetchAnswer(
            raft.leadership,
            high_watermark=raft.high_watermark,
            log_start_offset=raft.log.start_offset,
        )
        try:
            divergence = raft.log.divergence(facts.log_end.offset, facts.log_end.epoch)
        except LookupError:
            return empty._replace(snapshot=raft.snapshots.newest)
        if divergence is not None:
            return empty._replace(divergence=divergence)
        end = raft.log.end_offset
        return empty._replace(records=raft.log.read(facts.log_end.offset, facts.max_bytes, end))

    def _park(self, facts: FetchFacts) -> Pending[FetchResponse]:
        parked = Parked(facts)
        self._parked[parked] = None
        parked.timer = self.raft.timers.after(facts.max_wait_ms, lambda: self._release(parked))

        def forget() -> None:
            parked.timer.cancel()
            self._parked.pop(parked, None)

        parked.pending.on_abandoned = forget
        return parked.pending

    def _release(self, parked: Parked) -> None:
        parked.timer.cancel()
        if self._parked.pop(parked, parked) is None:
            parked.pending.complete(fetch_response(self._answer(parked.facts)))

    def _wake(self) -> None:
        """Answer the fetches for which there is something now."""
        end, high_watermark = self.raft.log.end_offset, self.raft.high_watermark
        for parked in list(self._parked):
            facts = parked.facts
            if facts.log_end.offset < end or facts.high_watermark < high_watermark:
                self._release(parked)

    def _watch_voters(self) -> None:
        """Keep an eye on the others, where there are any: a lone voter sleeps."""
        if not self.raft.is_lone:
            self._call_voters()
            self._check_quorum()

    def _call_voters(self) -> None:
        """Tell voters that have not fetched for a while who leads."""
        settings, now_ms = self.raft.settings, self.raft.timers.now_ms
        silent_since = now_ms - settings.fetch_timeout_ms // 2
        for voter in self.raft.other_voters():
            replica = self.replicas.of(voter)
            if replica is None or replica.contact_ms < silent_since:
                self._call(voter)
        self.after("call", max(1, settings.fetch_timeout_ms // 4), self._call_voters)

    def _call(self, voter: Voter) -> None:
        raft = self.raft
        request = begin_request(raft.cluster_id, voter, raft.leadership)

        def heard(response: BeginQuorumEpochResponse | None) -> None:
            if response is not None and response.topics:
                data = response.topics[0].partitions[0]
                raft.learn(told(data.leader_id, data.leader_epoch, response.node_endpoints))

        self.ask(raft.address_of(voter.id), request, heard)

    def _check_quorum(self) -> None:
        """Give up where no majority has fetched for a while: another may lead long since."""
        raft = self.raft
        allowed_ms = raft.settings.fetch_timeout_ms * 3 // 2
        last_ms = self.replicas.majority_contact_ms(raft.voters, raft.timers.now_ms)
        left_ms = last_ms + allowed_ms - raft.timers.now_ms
        if left_ms <= 0:
            raft.outbox.append(
                Notice(
                    "warning",
                    "the controller lost the majority",
                    {"epoch": raft.epoch, "node": raft.me},
                )
            )
            raft.resign()
        else:
            self.after("quorum", left_ms, self._check_quorum)
