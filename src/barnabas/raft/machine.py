"""The quorum's member on this node: what comes in, what is remembered, and who it is by now.

    Raft                 this file: state, voting, learning of leaders, committing
      role               what the node is (`roles.py`): `electing.py`, `following.py`, `leading.py`
      log                the metadata log (`metadata_log.py`) and its `snapshots`
      membership         who votes (`voters.py`, `membership.py`)

Raft decides nothing about the content: a `RaftListener` is told, once and in order, what was
committed, and proposes more where this node is the active leader. Requests of other nodes come in
as `handle_*`, answers to own requests through `ask`, time through `timers`, the end of a sync
through the `Flush` effect. What must be on disk before an answer leaves is written synchronously,
for it is a few bytes; the log is not.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Protocol

from barnabas.effects import Address, Effect, Remove
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import ClusterSettings
from barnabas.model.timers import Timers
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from barnabas.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from barnabas.protocol.messages.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse
from barnabas.protocol.records import records
from barnabas.raft import answering, describing
from barnabas.raft.electing import Candidate, Prospective, Resigned, Unattached
from barnabas.raft.following import Follower
from barnabas.raft.leading import Leader
from barnabas.raft.messages import FetchAnswer, Leadership, LogEnd, fetch_response
from barnabas.raft.metadata_log import FOLDER, REMOVE_AFTER_MS, MetadataLog
from barnabas.raft.quorum_state import QuorumState, QuorumStateFile, load_directory_id
from barnabas.raft.roles import Halted, Role
from barnabas.raft.snapshots import NO_SNAPSHOT, Pair, Snapshot, Snapshots
from barnabas.raft.summing import SummingUp
from barnabas.raft.voters import ReplicaKey, Voter, VoterHistory, VoterSet
from barnabas.storage.recovery import Recovered

AskPeer = Callable[[Address, Message, int, Callable[[Any | None], None]], None]
"""Takes address, request, how many milliseconds to wait, and who hears the answer or None."""


class NotLeaderError(ApiError):
    """Only the active leader of the quorum takes records, and this node is not it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


class RaftListener(Protocol):
    """Whoever the log is for."""

    def load_snapshot(self, records: Iterable[Pair]) -> None:
        """Replace everything known by what a snapshot holds, which ends at the high watermark."""

    def committed(self, records: Sequence[Pair], end_offset: int) -> None:
        """Hear of one whole batch, in order and once; a batch of the quorum's own is empty."""

    def became_active(self, epoch: int) -> None:
        """Hear that this node leads, and that all that was ever committed has been told."""

    def resigned(self) -> None:
        """Hear that it leads no more: what it proposed may be committed yet, or never."""

    def leader_changed(self) -> None:
        """Hear that `leader_id` is another."""

    def snapshot(self) -> Iterable[Pair]:
        """Return what was committed up to now, summed up.

        It is read bit by bit, and must not change with what is committed meanwhile.
        """


class Raft:
    """One node's part in the quorum, as a voter or as an observer."""

    def __init__(  # noqa: PLR0913 - these are its holes to the world
        self,
        *,
        me: NodeId,
        disk: Disk,
        data_folder: str,
        bootstrap: Sequence[Voter],
        settings: ClusterSettings,
        timers: Timers,
        outbox: list[Effect],
        rng: Random,
        listener: RaftListener,
        ask: AskPeer,
    ) -> None:
        self.me = me
        self.settings = settings
        self.timers = timers
        self.outbox = outbox
        self.rng = rng
        self.listener = listener
        self.ask = ask
        self.cluster_id: str | None = settings.cluster_id
        """Requests of another cluster are refused, where both sides know theirs."""
        self.own_address = _own_address(me, settings, bootstrap)
        self.directory = b""
        self.state = QuorumState()
        self.high_watermark = 0
        self.lost_elections = 0
        """How often this node has stood since there was a leader, and not won."""
        folder = f"{data_folder}/{FOLDER}"
        lone = Voter(me, bytes(16), self.own_address or Address(settings.host, settings.port))
        history = VoterHistory(bootstrap or [lone])
        self.log = MetadataLog(disk, data_folder, me, outbox, history)
        self.log.on_flushed = self._flushed
        self.snapshots = Snapshots(disk, folder)
        self.role: Role = Halted(self)
        self._disk = disk
        self._folder = folder
        self._state_file = QuorumStateFile(disk, folder)
        self._learned: dict[NodeId, Address] = {}
        self._told_leader_id: NodeId | None = None
        self._missed: Leadership | None = None
        self._delivered = 0
        self._delivering = False
        self._summing = SummingUp(self)

    @property
    def key(self) -> ReplicaKey:
        """This node with its disk."""
        return ReplicaKey(self.me, self.directory)

    @property
    def epoch(self) -> int:
        """The latest epoch that this node has heard of."""
        return self.state.epoch

    @property
    def leader_id(self) -> NodeId | None:
        """Who leads this epoch, if that is known."""
        return self.state.leader_id

    @property
    def end_offset(self) -> int:
        """Where this node's log ends, committed or not."""
        return self.log.end_offset

    @property
    def is_leader(self) -> bool:
        """Whether this node leads."""
        return isinstance(self.role, Leader)

    @property
    def is_active(self) -> bool:
        """Whether this node leads and its epoch's first record is committed."""
        return isinstance(self.role, Leader) and self.role.active

    @property
    def voters(self) -> VoterSet:
        """Who votes, as far as this node's log tells."""
        return self.log.history.current

    @property
    def is_voter(self) -> bool:
        """Whether this node votes, as far as its log tells."""
        return self.voters.includes(self.key)

    @property
    def is_lone(self) -> bool:
        """Whether this node is all the majority there is."""
        return len(self.voters) == 1 and self.is_voter

    @property
    def log_end(self) -> LogEnd:
        """How up to date this node's log is."""
        return LogEnd(self.log.last_epoch, self.log.end_offset)

    @property
    def leadership(self) -> Leadership:
        """Who leads, as answers tell it."""
        if self.leader_id is None:
            return Leadership(self.epoch, None)
        own = self.leader_id == self.me
        address = self.own_address if own else self.address_of(self.leader_id)
        return Leadership(self.epoch, self.leader_id, address)

    @property
    def retry_ms(self) -> int:
        """How long to wait before something that failed is tried again."""
        return max(1, self.settings.election_timeout_ms // 20)

    def open(self) -> Recovered:
        """Read what was stored; raise `StorageError` where what was promised is damaged."""
        self._make_folder()
        stored = self._state_file.load()
        self.directory = load_directory_id(self._disk, self._folder, self.rng, new=stored is None)
        snapshot = self.snapshots.open()
        base = NO_SNAPSHOT if snapshot is None else snapshot.id
        recovered = self.log.open(base, None if snapshot is None else snapshot.voters)
        if stored is None and self.log.last_epoch > 0:
            raise StorageError(
                f"{self._state_file.path} is missing beside a log of epoch {self.log.last_epoch}: "
                f"what this node voted is not known; restore it"
            )
        self.state = stored or QuorumState(max(0, self.log.last_epoch))
        if snapshot is not None:
            self._load(snapshot)
        return recovered

    def start(self) -> None:
        """Take part. A lone voter leads at once, with all it has committed."""
        if self.leader_id == self.me:
            self.forget_leader()
        if self.is_lone:
            self.stand()
            self.commit_now()
        elif self.leader_id is not None and self.address_of(self.leader_id) is not None:
            self.become(Follower(self))
        else:
            self.forget_leader()
            # A pre-vote disturbs nobody, and a cluster that starts has waited long enough.
            soon_ms = self.rng.randint(1, max(1, self.settings.election_timeout_ms // 4))
            self.become(Unattached(self, soon_ms))

    def propose(self, records: Sequence[Pair], now_ms: int) -> int:
        """Append records as the active leader; they count once `high_watermark` reaches the result.

        Raises `NotLeaderError`, or `OSError` where the disk takes none: then nothing happened.
        """
        leader = self.role
        if not isinstance(leader, Leader) or not leader.active:
            raise NotLeaderError
        return leader.append(records, now_ms) if records else self.end_offset

    def commit_now(self) -> None:
        """Sync here and now, while nobody is served: what a lone voter proposed is committed."""
        self.log.flush_now()
        while isinstance(self.role, Leader) and self.is_lone:
            self.role.advance()
            if self.high_watermark == self.end_offset:
                break
            self.log.flush_now()  # committing may have led to more

    def applied_offsets(self) -> dict[NodeId, int]:
        """Return up to where other nodes know the log to be committed, as the leader hears."""
        if not isinstance(self.role, Leader):
            return {}
        return {replica.key.id: replica.high_watermark for replica in self.role.replicas}

    def resign(self) -> None:
        """Lead no more, and have the others elect another at once. A lone voter stays."""
        leader = self.role
        if not isinstance(leader, Leader) or self.is_lone:
            return
        successors = leader.successors()
        self.forget_leader()
        self.become(Resigned(self, successors))

    def close(self) -> None:
        """Stop taking part, and let go of the log."""
        if not isinstance(self.role, Halted):
            self.become(Halted(self))
        self._summing.abandon()
        self.log.close()

    def handle_vote(self, request: VoteRequest) -> VoteResponse:
        """Answer a candidate; what is answered is on disk by then."""
        return answering.vote(self, request)

    def handle_begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest
    ) -> BeginQuorumEpochResponse:
        """Hear from a leader that it leads."""
        return answering.begin_epoch(self, request)

    def handle_end_quorum_epoch(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        """Hear from a leader that it leads no more."""
        return answering.end_epoch(self, request)

    def handle_fetch(self, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
        """Serve a copy of the log."""
        return answering.fetch(self, request)

    def handle_fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Serve a piece of a snapshot."""
        return answering.fetch_snapshot(self, request)

    def handle_describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """Tell who votes, who leads, and how far everybody is."""
        del request  # there is one partition
        return describing.describe(self)

    def handle_add_voter(
        self, request: AddRaftVoterRequest
    ) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]:
        """Take an observer into the quorum."""
        return describing.add_voter(self, request)

    def handle_remove_voter(
        self, request: RemoveRaftVoterRequest
    ) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]:
        """Have a voter vote no more."""
        return describing.remove_voter(self, request)

    def handle_update_voter(
        self, request: UpdateRaftVoterRequest
    ) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]:
        """Note where a voter listens now."""
        return describing.update_voter(self, request)

    def other_voters(self) -> list[Voter]:
        """Return the voters but this node."""
        return [voter for voter in self.voters if voter.id != self.me]

    def address_of(self, node_id: NodeId, attempt: int = 0) -> Address | None:
        """Return where a node listens; later attempts try what is known from elsewhere."""
        bootstrap = self.log.history.bootstrap.find(node_id)
        voter = self.voters.find(node_id)
        known = [
            self._learned.get(node_id),
            None if voter is None else voter.address,
            None if bootstrap is None else bootstrap.address,
        ]
        places = list(dict.fromkeys(place for place in known if place is not None))
        return places[attempt % len(places)] if places else None

    def same_cluster(self, cluster_id: str | None) -> bool:
        """Whether a request is for this cluster, as far as both sides know theirs."""
        return None in (cluster_id, self.cluster_id) or cluster_id == self.cluster_id

    def election_wait_ms(self) -> int:
        """Draw how long to wait before the next election."""
        timeout_ms = self.settings.election_timeout_ms
        return self.rng.randint(timeout_ms, 2 * timeout_ms)

    def expects(self, role: Role) -> bool:
        """Whether answers to what was asked in a role are still wanted."""
        return role is self.role

    def become(self, role: Role) -> None:
        """Change the role; whoever waits in the old one is told."""
        old, self.role = self.role, role
        old.leave()
        if isinstance(old, Leader):
            self.listener.resigned()
        if self.leader_id is not None:
            self.lost_elections = 0
        if self._told_leader_id != self.leader_id:
            self._told_leader_id = self.leader_id
            self.listener.leader_changed()
        if self.role is role:
            role.enter()

    def save(self, state: QuorumState) -> None:
        """Remember a state for good; raises `OSError` where the disk does not take it."""
        if state != self.state:
            self._state_file.save(state)
            self.state = state

    def miss_leader(self) -> None:
        """Give the leader up, for a while also against what others say who do not miss it yet.

        Two voters would else take turns in believing in a leader that is gone.
        """
        self._missed = Leadership(self.epoch, self.leader_id)
        self.forget_leader()

    def forgive(self) -> None:
        """Believe others again."""
        self._missed = None

    def forget_leader(self) -> None:
        """Take it that nobody leads; what was voted stays on disk."""
        self.state = self.state._replace(leader_id=None)

    def learn(self, told: Leadership, teller: NodeId | None = None) -> bool:
        """Hear who leads an epoch; tell whether that changed what this node is."""
        if told.leader_id is not None and told.address is not None:
            self._learned[told.leader_id] = told.address
        leader = told.leader_id
        if leader == self.me or (leader is not None and self.address_of(leader) is None):
            leader = None
        if told.epoch > self.epoch:
            wait_ms = self.election_wait_left()
            self.save(QuorumState(told.epoch, leader))
            self.become(Unattached(self, wait_ms) if leader is None else Follower(self))
            return True
        if told.epoch < self.epoch or leader is None or self.leader_id is not None:
            return False
        if isinstance(self.role, Leader | Resigned | Halted):
            return False
        if teller != leader and self._missed == Leadership(self.epoch, leader):
            return False
        self.save(self.state._replace(leader_id=leader))
        self.become(Follower(self))
        return True

    def stand(self) -> None:
        """Begin an epoch, with this node's own vote on disk."""
        self.save(QuorumState(self.epoch + 1, None, self.key))
        self.become(Candidate(self))

    def lead(self, granted: Sequence[NodeId]) -> None:
        """Take up the leadership of this epoch."""
        self.save(self.state._replace(leader_id=self.me))
        self.become(Leader(self, granted))

    def end_leadership(self, wait_ms: int | None) -> None:
        """Hear that the leader gave up; stand after a while, or at once."""
        self.forget_leader()
        stands = wait_ms == 0 and self.is_voter
        self.become(Prospective(self) if stands else Unattached(self, wait_ms))

    def advance(self, high_watermark: int) -> None:
        """Take it that everything below an offset is committed, and tell the listener."""
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._deliver()
            self._sum_up()

    def install(self, snapshot: Snapshot, content: bytes) -> None:
        """Put a leader's snapshot in the place of everything."""
        self._summing.abandon()
        self.snapshots.store(snapshot.id, content)
        self.log.reset(snapshot.id, snapshot.voters)
        self._load(snapshot)
        self.remove_old_snapshots()

    def not_leader(self, error: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> FetchResponse:
        """Tell a copy who leads instead."""
        return fetch_response(FetchAnswer(self.leadership, error))

    def election_wait_left(self) -> int | None:
        """Return what is left of a wait: later epochs must not put it off for ever."""
        role = self.role
        if isinstance(role, Unattached):
            return max(1, role.deadline_ms - self.timers.now_ms)
        return None

    def _make_folder(self) -> None:
        """Have a folder; votes are kept in it, and none is safe in one that may vanish."""
        # An earlier version wrote long logs anew beside themselves, and may have died meanwhile.
        old = f"{self._folder}.old"
        if not self._disk.exists(self._folder) and self._disk.exists(old):
            self._disk.rename(old, self._folder)
        self._disk.make_folder(self._folder)
        self._disk.sync_folder(self._folder.rpartition("/")[0])

    def _flushed(self) -> None:
        self.role.flushed()

    def _load(self, snapshot: Snapshot) -> None:
        self.high_watermark = self._delivered = snapshot.id.end_offset
        self.listener.load_snapshot(snapshot.records)

    def _deliver(self) -> None:
        if self._delivering:
            return  # the listener caused it; the loop below goes on
        self._delivering = True
        try:
            while self._delivered < self.high_watermark:
                self._deliver_upto(self.high_watermark)
        finally:
            self._delivering = False

    def _deliver_upto(self, end: int) -> None:
        for header, batch in self.log.batches(self._delivered, end):
            pairs: list[Pair] = []
            if not header.is_control:
                pairs = [(r.key or b"", r.value or b"") for r in records(batch, header)]
            self._delivered = header.last_offset + 1
            self.listener.committed(pairs, self._delivered)

    def _sum_up(self) -> None:
        """Begin a snapshot once enough was committed since the last."""
        since = self._delivered - self.snapshots.newest.end_offset
        is_due = since >= self.settings.snapshot_after_records
        if is_due and self._summing.is_idle and not self._delivering:
            self._summing.start(self._delivered)

    def remove_old_snapshots(self) -> None:
        """Delete the snapshots that the newest has made superfluous."""
        older = self.snapshots.older()
        if older:
            self.outbox.append(Remove(older, REMOVE_AFTER_MS))


def _own_address(
    me: NodeId, settings: ClusterSettings, bootstrap: Sequence[Voter]
) -> Address | None:
    named = next((voter.address for voter in bootstrap if voter.id == me), None)
    if settings.port == 0:
        return named
    return Address(settings.advertised_host or settings.host, settings.port)
