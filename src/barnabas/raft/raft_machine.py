"""The metadata quorum's member on this node: the entry point for requests and proposals.

    Raft                 this file: wires the parts together, and passes requests to them
      elections          epochs, votes, the leader, and the node's role (`raft_elections.py`)
        role             `raft_roles.py`: `electing.py`, `raft_following.py`, `leading.py`
      log                the metadata log (`metadata_log.py`) and its `snapshots`
      committed          the high watermark, and delivery to the listener (`committed_records.py`)
      known_voters       the voter set and its addresses (`known_voters.py`);
                         a leader changes the set (`raft_voter_changes.py`)

Raft does not interpret the records. A `RaftListener` gets the committed ones, once and in order,
and proposes more while this node is the active leader. Requests of other nodes arrive at
`handle_*`, responses to own requests through `ask`, time through `timers`, and the end of a sync
through the `Flush` effect. The vote and the epoch are a few bytes, so they are synced before the
response is returned; the log is synced off the event loop.
"""

from collections.abc import Sequence
from random import Random

from barnabas.effects import Address, Effect
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import ClusterSettings
from barnabas.model.timers import Timers
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
from barnabas.raft import answering, quorum_description
from barnabas.raft.commit_listener import RaftListener
from barnabas.raft.committed_records import CommittedRecords
from barnabas.raft.environment import AskPeer, Environment, Timeouts
from barnabas.raft.identity import Identity
from barnabas.raft.known_voters import KnownVoters
from barnabas.raft.metadata_log import FOLDER, MetadataLog
from barnabas.raft.metadata_snapshots import NO_SNAPSHOT, Pair, Snapshots
from barnabas.raft.quorum_state import EpochState, QuorumStateFile, load_directory_id
from barnabas.raft.raft_elections import Elections
from barnabas.raft.raft_roles import Halted
from barnabas.raft.snapshot_writing import SnapshotWriter
from barnabas.raft.voters import NO_DIRECTORY, Voter, VoterHistory, VoterSet
from barnabas.storage.recovery import Recovered


class NotLeaderError(ApiError):
    """Only the active leader of the quorum accepts records, and this node is not it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


class Raft:
    """One node's part in the quorum, as a voter or as an observer."""

    def __init__(  # noqa: PLR0913 - these are its interface to the process
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
        folder = f"{data_folder}/{FOLDER}"
        address = _own_address(me, settings, bootstrap)
        alone = Voter(me, NO_DIRECTORY, address or Address(settings.host, settings.port))
        history = VoterHistory(bootstrap or [alone])
        environment = Environment(timers, Timeouts(settings, rng), ask, outbox)
        self.identity = Identity(me, address, settings.cluster_id)
        self.known_voters = KnownVoters(self.identity, history)
        self.log = MetadataLog(disk, data_folder, me, outbox, history)
        self.snapshots = Snapshots(disk, folder)
        writer = SnapshotWriter(
            self.log, self.snapshots, listener, environment, settings.snapshot_after_records
        )
        self.committed = CommittedRecords(self.log, self.snapshots, writer, listener)
        self._state_file = QuorumStateFile(disk, folder)
        self.elections = Elections(
            identity=self.identity,
            voters=self.known_voters,
            state=EpochState(self._state_file),
            log=self.log,
            committed=self.committed,
            environment=environment,
            listener=listener,
        )
        self.log.on_flushed = self.elections.log_flushed
        self._disk = disk
        self._folder = folder
        self._rng = rng

    @property
    def leader_id(self) -> NodeId | None:
        """The leader of this epoch, if this node knows it."""
        return self.elections.leader_id

    @property
    def high_watermark(self) -> int:
        """Everything below this offset is committed, as far as this node knows."""
        return self.committed.high_watermark

    @property
    def end_offset(self) -> int:
        """The end of this node's log, committed or not."""
        return self.log.end_offset

    @property
    def voters(self) -> VoterSet:
        """The voter set in effect, according to this node's log."""
        return self.known_voters.current

    def open(self) -> Recovered:
        """Read what is stored; raise `StorageError` if data that others rely on is damaged."""
        _make_folder(self._disk, self._folder)
        stored = self._state_file.load()
        self.identity.directory = load_directory_id(
            self._disk, self._folder, self._rng, new=stored is None
        )
        snapshot = self.snapshots.open()
        base = NO_SNAPSHOT if snapshot is None else snapshot.id
        recovered = self.log.open(base, None if snapshot is None else snapshot.voters)
        self.elections.state.open(stored, self.log.last_epoch)
        if snapshot is not None:
            self.committed.load(snapshot)
        return recovered

    def start(self) -> None:
        """Take part in the quorum. A node that is the only voter commits its whole log first."""
        self.elections.start()
        if self.known_voters.are_this_node_alone:
            self.commit_now()

    def propose(self, records: Sequence[Pair], now_ms: int) -> int:
        """Append records as the active leader; return the offset after them.

        The records are committed when `high_watermark` reaches that offset. Raises
        `NotLeaderError`, or `OSError` if the disk refuses the records; then nothing is appended.
        """
        leader = self.elections.leader
        if leader is None or not leader.active:
            raise NotLeaderError
        return leader.append(records, now_ms) if records else self.end_offset

    def commit_now(self) -> None:
        """Sync at once, before clients are served. The only voter thereby commits its proposals."""
        self.log.flush_now()
        while self.known_voters.are_this_node_alone and self.elections.leader is not None:
            self.elections.leader.advance()
            if self.high_watermark == self.end_offset:
                break
            self.log.flush_now()  # the listener may have proposed more on a commit

    def applied_offsets(self) -> dict[NodeId, int]:
        """Return the high watermark that each other node has reported to this leader."""
        leader = self.elections.leader
        if leader is None:
            return {}
        return {replica.key.id: replica.high_watermark for replica in leader.replicas}

    def resign(self) -> None:
        """Give up leadership, if this node leads and another voter can take over."""
        self.elections.resign()

    def close(self) -> None:
        """Stop taking part, and close the log."""
        if not isinstance(self.elections.role, Halted):
            self.elections.become(Halted(self.elections))
        self.committed.close()
        self.log.close()

    def handle_vote(self, request: VoteRequest) -> VoteResponse:
        """Answer a candidate. The vote is on disk before this returns."""
        return answering.vote(self.elections, request)

    def handle_begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest
    ) -> BeginQuorumEpochResponse:
        """Follow the leader that announces itself."""
        return answering.begin_epoch(self.elections, request)

    def handle_end_quorum_epoch(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        """Elect another leader: the current one resigns."""
        return answering.end_epoch(self.elections, request)

    def handle_fetch(self, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
        """Serve a follower or observer from the log."""
        return answering.fetch(self.elections, request)

    def handle_fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Serve a piece of a snapshot."""
        return answering.fetch_snapshot(self.elections, request)

    def handle_describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """Describe the leader, the voters, the observers and their offsets."""
        del request  # there is one partition
        return quorum_description.describe(self.elections)

    def handle_add_voter(
        self, request: AddRaftVoterRequest
    ) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]:
        """Make an observer a voter."""
        return quorum_description.add_voter(self.elections, request)

    def handle_remove_voter(
        self, request: RemoveRaftVoterRequest
    ) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]:
        """Remove a voter from the set."""
        return quorum_description.remove_voter(self.elections, request)

    def handle_update_voter(
        self, request: UpdateRaftVoterRequest
    ) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]:
        """Change a voter's address."""
        return quorum_description.update_voter(self.elections, request)


def _own_address(
    me: NodeId, settings: ClusterSettings, bootstrap: Sequence[Voter]
) -> Address | None:
    named = next((voter.address for voter in bootstrap if voter.id == me), None)
    if settings.port == 0:
        return named
    return Address(settings.advertised_host or settings.host, settings.port)


def _make_folder(disk: Disk, folder: str) -> None:
    """Create the metadata folder durably: votes in it must survive a power cut."""
    # An earlier version rewrote long logs in a second folder, and may have crashed between renames.
    old = f"{folder}.old"
    if not disk.exists(folder) and disk.exists(old):
        disk.rename(old, folder)
    disk.make_folder(folder)
    disk.sync_folder(folder.rpartition("/")[0])
