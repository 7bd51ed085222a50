"""Copying a leader's log: fetch, append, sync, fetch again.

One request is under way at a time, and the next goes only when everything of the last is synced:
the offset it asks for is what the leader counts as safe here. The high watermark that comes with
an answer is taken over as far as this log is synced.

Where the leader no longer has what is asked for, a snapshot is fetched instead, piece by piece, and
takes the place of everything.
"""

from typing import TYPE_CHECKING, NoReturn

from barnabas.effects import Notice
from barnabas.model.errors import CorruptBatchError, ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages import update_raft_voter
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.raft.electing import Prospective, Unattached
from barnabas.raft.messages import (
    FETCH_BYTES,
    FetchAnswer,
    FetchFacts,
    fetch_answer,
    fetch_request,
    snapshot_request,
    told,
)
from barnabas.raft.metadata_log import DivergedError, Divergence
from barnabas.raft.roles import Halted, Role
from barnabas.raft.snapshots import SnapshotId, decode
from barnabas.raft.voters import LISTENER

if TYPE_CHECKING:
    from barnabas.raft.machine import Raft

REFUSALS_MAX = 3


class Follower(Role):
    """Copies the log of the leader that `Raft.leader_id` names."""

    name = "follower"

    def __init__(self, raft: "Raft") -> None:
        super().__init__(raft)
        self.has_fetched = False
        self._leader_high_watermark = 0
        self._ticket = 0
        self._failures = 0
        self._asking = False
        self._said_where = False
        self._snapshot: SnapshotId | None = None
        self._pieces = bytearray()

    def enter(self) -> None:
        """Start fetching once what is here already is synced."""
        self._leader_is_there()
        self.raft.log.flush()
        self._fetch()

    def refuses_pre_votes(self) -> bool:
        """It has heard from its leader, and not missed it since."""
        return self.has_fetched

    def flushed(self) -> None:
        """Take over the high watermark as far as this log is safe, and fetch on."""
        self.raft.log.note_synced()
        self._advance()
        if self.raft.role is self and not self._asking:
            self._fetch()

    def may_fetch(self) -> bool:
        """Whether the fetch says no more than the truth: all below its offset is synced."""
        return self.raft.log.flushed_offset == self.raft.log.end_offset

    def _advance(self) -> None:
        self.raft.advance(min(self._leader_high_watermark, self.raft.log.flushed_offset))

    def _leader_is_there(self) -> None:
        raft = self.raft
        timeout_ms = raft.settings.fetch_timeout_ms
        # A little luck decides who misses the leader first, and is likely to be the next.
        self.after("leader", timeout_ms + raft.rng.randint(0, timeout_ms // 4), self._miss_leader)

    def _miss_leader(self) -> None:
        raft = self.raft
        raft.miss_leader()
        raft.become(Prospective(raft) if raft.is_voter else Unattached(raft))

    def _fetch(self) -> None:
        raft = self.raft
        if not self.may_fetch():
            return
        facts = FetchFacts(
            raft.key,
            raft.epoch,
            raft.log_end,
            raft.high_watermark,
            raft.settings.fetch_timeout_ms // 2,
            FETCH_BYTES,
        )
        self._ask(fetch_request(raft.cluster_id, facts))

    def _ask(self, request: Message) -> None:
        """Send the one request that is under way; only its own answer is heard."""
        raft = self.raft
        self._ticket += 1
        self._asking = True
        ticket = self._ticket

        def answered(response: FetchResponse | FetchSnapshotResponse | None) -> None:
            if not self.is_awaited(ticket):
                return
            self._ticket += 1
            self._asking = False
            if isinstance(response, FetchResponse):
                self._fetched(fetch_answer(response))
            elif isinstance(response, FetchSnapshotResponse):
                self._fetched_piece(response)
            else:
                self._failures += 1
                self._lost_touch()

        leader = raft.leader_id
        address = None if leader is None else raft.address_of(leader, self._failures)
        self.ask(address, request, answered)

    def is_awaited(self, ticket: int) -> bool:
        """Whether an answer belongs to the last request: none is heard twice, or late."""
        return ticket == self._ticket

    def _lost_touch(self) -> None:
        """Try again; where nobody answers at all, miss the leader before the time is over.

        A process that is gone refuses connections at once. Should the others still hear of the
        leader, they grant no pre-vote, and nothing is disturbed.
        """
        if self._failures >= REFUSALS_MAX:
            self._miss_leader()
        else:
            self._later()

    def _later(self) -> None:
        self._snapshot = None
        self.after("fetch", self.raft.retry_ms, self._fetch)

    def _fetched(self, answer: FetchAnswer | None) -> None:
        if answer is None:
            self._later()
        elif answer.error is not ErrorCode.NONE or answer.leader.epoch != self.raft.epoch:
            if not self.raft.learn(answer.leader):
                self._later()
        else:
            self.has_fetched = True
            self._failures = 0
            self._leader_is_there()
            self._take(answer)

    def _take(self, answer: FetchAnswer) -> None:
        if answer.divergence is not None:
            self._cut(answer.divergence)
        elif answer.snapshot is not None:
            self._start_snapshot(answer.snapshot)
        else:
            self._append(answer)

    def _append(self, answer: FetchAnswer) -> None:
        log = self.raft.log
        self._leader_high_watermark = answer.high_watermark
        try:
            log.append_copied(answer.records, self.raft.epoch)
        except CorruptBatchError as error:
            notice = Notice(
                "warning", "metadata that was fetched is damaged", {"problem": str(error)}
            )
            self.raft.outbox.append(notice)
            log.flush()
            self._later()
            return
        log.flush()
        self._advance()
        if self.raft.role is self:
            self._say_where()
            self._fetch()

    def _cut(self, divergence: Divergence) -> None:
        """Truncate by epoch (KIP-101); refuse where that would take what was committed."""
        before = self.raft.log.end_offset
        try:
            self.raft.log.truncate(divergence, self.raft.high_watermark)
        except DivergedError as error:
            self._halt(error)
        self.raft.log.flush()
        if self.raft.log.end_offset < before:
            self._fetch()
        else:
            self._later()

    def _halt(self, error: DivergedError) -> NoReturn:
        self.raft.outbox.append(
            Notice(
                "critical",
                "the quorum's log contradicts what was committed",
                {"problem": str(error)},
            )
        )
        self.raft.become(Halted(self.raft))
        raise error

    def _start_snapshot(self, snapshot: SnapshotId) -> None:
        if snapshot.end_offset < self.raft.high_watermark:
            self._halt(DivergedError(f"a snapshot that ends at {snapshot.end_offset} is too old"))
        self._snapshot = snapshot
        self._pieces = bytearray()
        self._fetch_piece()

    def _fetch_piece(self) -> None:
        raft, snapshot = self.raft, self._snapshot
        assert snapshot is not None
        self._ask(
            snapshot_request(raft.cluster_id, raft.key, raft.epoch, snapshot, len(self._pieces))
        )

    def _fetched_piece(self, response: FetchSnapshotResponse) -> None:
        if response.error_code or not response.topics or self._snapshot is None:
            self._later()
            return
        data = response.topics[0].partitions[0]
        leader = data.current_leader
        leadership = told(leader.leader_id, leader.leader_epoch, response.node_endpoints)
        if self.raft.learn(leadership):
            return
        found = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
        if data.error_code or found != self._snapshot or data.position != len(self._pieces):
            self._later()
            return
        self._leader_is_there()
        self._pieces += data.unaligned_records
        if len(self._pieces) < data.size and data.unaligned_records:
            self._fetch_piece()
        else:
            self._finish_snapshot(self._snapshot)

    def _finish_snapshot(self, snapshot: SnapshotId) -> None:
        content, self._pieces, self._snapshot = bytes(self._pieces), bytearray(), None
        try:
            loaded = decode(snapshot, content)
        except CorruptBatchError as error:
            self.raft.outbox.append(
                Notice("warning", "metadata that was fetched is damaged", {"problem": str(error)})
            )
            self._later()
            return
        self.raft.install(loaded, content)
        self._fetch()

    def _say_where(self) -> None:
        """Have the leader correct this voter's address in the log (KIP-853)."""
        raft = self.raft
        voter, address = raft.voters.find(raft.me), raft.own_address
        if voter is None or address is None or not raft.voters.directories_known:
            return
        if self._said_where or voter.address == address or not raft.is_voter:
            return
        self._said_where = True
        request = update_raft_voter.UpdateRaftVoterRequest(
            cluster_id=raft.cluster_id,
            current_leader_epoch=raft.epoch,
            voter_id=raft.me,
            voter_directory_id=raft.directory,
            listeners=[
                update_raft_voter.Listener(name=LISTENER, host=address.host, port=address.port)
            ],
            kraft_version_feature=update_raft_voter.KRaftVersionFeature(max_supported_version=1),
        )

        def heard(response: update_raft_voter.UpdateRaftVoterResponse | None) -> None:
            self._said_where = response is not None and response.error_code == 0

        assert raft.leader_id is not None
        self.ask(raft.address_of(raft.leader_id), request, heard)
