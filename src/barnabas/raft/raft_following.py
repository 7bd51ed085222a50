"""The role of a follower: fetch from the leader, append, sync, fetch again.

One request is in flight at a time. The next one leaves only after everything of the last is synced,
because the leader counts everything below its fetch offset as durable on this node. The follower
adopts the leader's high watermark as far as its own log is synced.

If the leader no longer has the records at the fetch offset, the follower fetches a snapshot piece
by piece, and replaces its log by it.
"""

from typing import TYPE_CHECKING, NoReturn

from barnabas.effects import Notice
from barnabas.model.errors import CorruptBatchError, ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages import update_raft_voter
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.raft.messages import (
    FETCH_BYTES,
    FetchAnswer,
    FetchFacts,
    fetch_answer,
    fetch_request,
    leadership_from,
    snapshot_request,
)
from barnabas.raft.metadata_log import DivergedError, Divergence
from barnabas.raft.metadata_snapshots import SnapshotId, decode
from barnabas.raft.raft_roles import Halted, Role
from barnabas.raft.voters import LISTENER

if TYPE_CHECKING:
    from barnabas.raft.raft_elections import Elections

FAILURES_MAX = 3


class Follower(Role):
    """Replicates the log of the leader that `Elections.leader_id` names."""

    name = "follower"

    def __init__(self, elections: "Elections") -> None:
        super().__init__(elections)
        self.log = elections.log
        self.committed = elections.committed
        self.has_fetched = False
        self._leader_high_watermark = 0
        self._request_number = 0
        self._failures = 0
        self._asking = False
        self._sent_address = False
        self._snapshot: SnapshotId | None = None
        self._pieces = bytearray()

    def enter(self) -> None:
        """Start fetching after the existing log is synced."""
        self._restart_leader_timeout()
        self.log.flush()
        self._fetch()

    def refuses_pre_votes(self) -> bool:
        """Refuse once the leader has answered a fetch: the follower does not miss it."""
        return self.has_fetched

    def flushed(self) -> None:
        """Adopt the high watermark as far as this log is synced, and fetch on."""
        self.log.note_synced()
        self._advance()
        if self.is_current and not self._asking:
            self._fetch()

    def may_fetch(self) -> bool:
        """Whether everything below the fetch offset is synced, as a fetch claims."""
        return self.log.flushed_offset == self.log.end_offset

    def _advance(self) -> None:
        self.committed.advance(min(self._leader_high_watermark, self.log.flushed_offset))

    def _restart_leader_timeout(self) -> None:
        self.after("leader", self.timeouts.draw_leader_ms(), self._miss_leader)

    def _miss_leader(self) -> None:
        self.elections.state.miss_leader()
        self.elections.ask_for_pre_votes()

    def _fetch(self) -> None:
        if not self.may_fetch():
            return
        facts = FetchFacts(
            self.identity.key,
            self.elections.epoch,
            self.elections.log_end,
            self.committed.high_watermark,
            self.timeouts.fetch_ms // 2,
            FETCH_BYTES,
        )
        self._ask(fetch_request(self.identity.cluster_id, facts))

    def _ask(self, request: Message) -> None:
        """Send the one request in flight; only a response to it is accepted."""
        self._request_number += 1
        self._asking = True
        number = self._request_number

        def answered(response: FetchResponse | FetchSnapshotResponse | None) -> None:
            if not self.is_awaited(number):
                return
            self._request_number += 1
            self._asking = False
            if isinstance(response, FetchResponse):
                self._fetched(fetch_answer(response))
            elif isinstance(response, FetchSnapshotResponse):
                self._fetched_piece(response)
            else:
                self._failures += 1
                self._fetch_failed()

        leader = self.elections.leader_id
        address = None if leader is None else self.voters.address_of(leader, self._failures)
        self.ask(address, request, answered)

    def is_awaited(self, number: int) -> bool:
        """Whether a response belongs to the last request: late and repeated ones are ignored."""
        return number == self._request_number

    def _fetch_failed(self) -> None:
        """Try again; after several failures, give the leader up before the fetch timeout.

        A process that is gone refuses connections at once. If the other voters still have contact
        to the leader, they grant no pre-vote, and the leader stays.
        """
        if self._failures >= FAILURES_MAX:
            self._miss_leader()
        else:
            self._fetch_later()

    def _fetch_later(self) -> None:
        self._snapshot = None
        self.after("fetch", self.timeouts.retry_ms, self._fetch)

    def _fetched(self, answer: FetchAnswer | None) -> None:
        if answer is None:
            self._fetch_later()
        elif answer.error is not ErrorCode.NONE or answer.leader.epoch != self.elections.epoch:
            if not self.elections.learn(answer.leader):
                self._fetch_later()
        else:
            self.has_fetched = True
            self._failures = 0
            self._restart_leader_timeout()
            self._apply(answer)

    def _apply(self, answer: FetchAnswer) -> None:
        if answer.divergence is not None:
            self._truncate(answer.divergence)
        elif answer.snapshot is not None:
            self._start_snapshot(answer.snapshot)
        else:
            self._append(answer)

    def _append(self, answer: FetchAnswer) -> None:
        self._leader_high_watermark = answer.high_watermark
        try:
            self.log.append_replicated(answer.records, self.elections.epoch)
        except CorruptBatchError as error:
            self._warn_of_damage(error)
            self.log.flush()
            self._fetch_later()
            return
        self.log.flush()
        self._advance()
        if self.is_current:
            self._correct_own_address()
            self._fetch()

    def _warn_of_damage(self, error: CorruptBatchError) -> None:
        event = "invalid metadata in fetch response from leader"
        self.environment.warn(event, {"problem": str(error)})

    def _truncate(self, divergence: Divergence) -> None:
        """Truncate by epoch (KIP-101); halt if that would remove committed records."""
        before = self.log.end_offset
        try:
            self.log.truncate(divergence, self.committed.high_watermark)
        except DivergedError as error:
            self._halt(error)
        self.log.flush()
        if self.log.end_offset < before:
            self._fetch()
        else:
            self._fetch_later()

    def _halt(self, error: DivergedError) -> NoReturn:
        event = "metadata log diverges below the high watermark"
        self.environment.outbox.append(Notice("critical", event, {"problem": str(error)}))
        self.elections.become(Halted(self.elections))
        raise error

    def _start_snapshot(self, snapshot: SnapshotId) -> None:
        if snapshot.end_offset < self.committed.high_watermark:
            self._halt(
                DivergedError(
                    f"the leader's snapshot ends at {snapshot.end_offset}, below the high watermark"
                )
            )
        self._snapshot = snapshot
        self._pieces = bytearray()
        self._fetch_piece()

    def _fetch_piece(self) -> None:
        identity, snapshot = self.identity, self._snapshot
        assert snapshot is not None
        epoch, position = self.elections.epoch, len(self._pieces)
        self._ask(snapshot_request(identity.cluster_id, identity.key, epoch, snapshot, position))

    def _fetched_piece(self, response: FetchSnapshotResponse) -> None:
        if response.error_code or not response.topics or self._snapshot is None:
            self._fetch_later()
            return
        data = response.topics[0].partitions[0]
        leader = data.current_leader
        endpoints = response.node_endpoints
        if self.elections.learn(leadership_from(leader.leader_id, leader.leader_epoch, endpoints)):
            return
        found = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
        if data.error_code or found != self._snapshot or data.position != len(self._pieces):
            self._fetch_later()
            return
        self._restart_leader_timeout()
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
            self._warn_of_damage(error)
            self._fetch_later()
            return
        self.committed.install(loaded, content)
        self._fetch()

    def _correct_own_address(self) -> None:
        """Have the leader correct this voter's address in the log (KIP-853)."""
        identity, voters = self.identity, self.voters.current
        voter, address = voters.find(identity.node_id), identity.address
        if voter is None or address is None or not voters.directories_known:
            return
        if self._sent_address or voter.address == address or not self.voters.include_this_node:
            return
        self._sent_address = True
        request = update_raft_voter.UpdateRaftVoterRequest(
            cluster_id=identity.cluster_id,
            current_leader_epoch=self.elections.epoch,
            voter_id=identity.node_id,
            voter_directory_id=identity.directory,
            listeners=[
                update_raft_voter.Listener(name=LISTENER, host=address.host, port=address.port)
            ],
            kraft_version_feature=update_raft_voter.KRaftVersionFeature(max_supported_version=1),
        )

        def answered(response: update_raft_voter.UpdateRaftVoterResponse | None) -> None:
            self._sent_address = response is not None and response.error_code == 0

        leader = self.elections.leader_id
        assert leader is not None
        self.ask(self.voters.address_of(leader), request, answered)
