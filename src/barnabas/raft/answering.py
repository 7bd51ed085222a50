"""What other members of the quorum ask, and what they are told.

A request of an older epoch is refused with the newer one; one of a later epoch is believed, since
nobody invents epochs. A vote is given once an epoch, to a candidate whose log is no worse, and is
on disk before it is given. Requests that name a directory are for that disk alone: a node that
lost its own is not the voter that others take it for.
"""

from typing import TYPE_CHECKING

from barnabas.effects import Address
from barnabas.model.errors import ErrorCode, StorageError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
)
from barnabas.protocol.messages import (
    fetch_snapshot as fetch_snapshot_messages,
)
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse
from barnabas.raft.electing import Unattached
from barnabas.raft.following import Follower
from barnabas.raft.leading import Leader
from barnabas.raft.messages import (
    METADATA_TOPIC,
    SNAPSHOT_PIECE_BYTES,
    FetchAnswer,
    Leadership,
    Piece,
    VoteFacts,
    begin_response,
    end_response,
    fetch_facts,
    fetch_response,
    same_disk,
    snapshot_response,
    vote_facts,
    vote_response,
)
from barnabas.raft.quorum_state import QuorumState
from barnabas.raft.roles import Halted
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from barnabas.raft.machine import Raft


def vote(raft: "Raft", request: VoteRequest) -> VoteResponse:
    """Give or refuse a vote, or say whether it would be given."""
    _must_serve(raft)
    if not raft.same_cluster(request.cluster_id):
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    data = request.topics[0].partitions[0] if request.topics else None
    if data is None or request.topics[0].topic_name != METADATA_TOPIC:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not is_addressed(raft, request.voter_id, data.voter_directory_id):
        return vote_response(raft.leadership, error=ErrorCode.INVALID_VOTER_KEY)
    facts = vote_facts(data)
    if facts.epoch < raft.epoch:
        return vote_response(raft.leadership, error=ErrorCode.FENCED_LEADER_EPOCH)
    granted = _decide(raft, facts)
    return vote_response(raft.leadership, granted=granted)


def is_addressed(raft: "Raft", node_id: int, directory: bytes) -> bool:
    """Whether a request is for this node with this disk."""
    return node_id in (-1, raft.me) and same_disk(directory, raft.directory)


def _decide(raft: "Raft", facts: VoteFacts) -> bool:
    later = facts.epoch > raft.epoch
    state = QuorumState(facts.epoch) if later else raft.state
    up_to_date = facts.log_end >= raft.log_end
    if facts.pre_vote:
        granted = up_to_date and (later or not raft.role.refuses_pre_votes())
    elif state.voted is not None or state.leader_id is not None:
        granted = state.voted == facts.candidate and state.leader_id is None
    else:
        granted = up_to_date
        if granted:
            state = state._replace(voted=facts.candidate)
    if state != raft.state:
        wait_ms = None if granted and not facts.pre_vote else raft.election_wait_left()
        raft.save(state)
        raft.become(Unattached(raft, wait_ms))
    return granted


def begin_epoch(
    raft: "Raft", request: begin_quorum_epoch.BeginQuorumEpochRequest
) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    """Follow whoever leads."""
    _must_serve(raft)
    if not raft.same_cluster(request.cluster_id):
        return begin_quorum_epoch.BeginQuorumEpochResponse(
            error_code=ErrorCode.INCONSISTENT_CLUSTER_ID
        )
    if not request.topics or not request.topics[0].partitions:
        return begin_quorum_epoch.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    data = request.topics[0].partitions[0]
    if not is_addressed(raft, request.voter_id, data.voter_directory_id):
        return begin_response(raft.leadership, ErrorCode.INVALID_VOTER_KEY)
    if data.leader_epoch < raft.epoch:
        return begin_response(raft.leadership, ErrorCode.FENCED_LEADER_EPOCH)
    place = next((Address(one.host, one.port) for one in request.leader_endpoints), None)
    leader = NodeId(data.leader_id)
    raft.learn(Leadership(data.leader_epoch, leader, place), teller=leader)
    return begin_response(raft.leadership)


def end_epoch(
    raft: "Raft", request: end_quorum_epoch.EndQuorumEpochRequest
) -> end_quorum_epoch.EndQuorumEpochResponse:
    """Elect another; the preferred ones stand first, each a little after the one before it."""
    _must_serve(raft)
    if not raft.same_cluster(request.cluster_id):
        return end_quorum_epoch.EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics or not request.topics[0].partitions:
        return end_quorum_epoch.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    data = request.topics[0].partitions[0]
    if data.leader_epoch < raft.epoch:
        return end_response(raft.leadership, ErrorCode.FENCED_LEADER_EPOCH)
    if data.leader_epoch > raft.epoch:
        raft.save(QuorumState(data.leader_epoch))
        raft.become(Unattached(raft, 1))  # and on below, as one that knows of the epoch
    if isinstance(raft.role, Follower | Unattached):
        candidates = [
            ReplicaKey(NodeId(one.candidate_id), one.candidate_directory_id)
            for one in data.preferred_candidates
        ]
        wait_ms = None
        if raft.key in candidates:
            wait_ms = candidates.index(raft.key) * 2 * raft.retry_ms
        raft.end_leadership(wait_ms)
    return end_response(raft.leadership)


def fetch(raft: "Raft", request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
    """Serve a copy of the log, where this node leads the epoch that the copy takes it to lead."""
    _must_serve(raft)
    if not raft.same_cluster(request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    facts = fetch_facts(request)
    if facts is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _wrong_epoch(raft, facts.epoch)
    if error is not None or not isinstance(raft.role, Leader):
        answer = FetchAnswer(raft.leadership, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return fetch_response(answer)
    return raft.role.fetch(facts)


def fetch_snapshot(
    raft: "Raft", request: fetch_snapshot_messages.FetchSnapshotRequest
) -> fetch_snapshot_messages.FetchSnapshotResponse:
    """Serve a piece of a snapshot."""
    _must_serve(raft)
    response = fetch_snapshot_messages.FetchSnapshotResponse
    if not raft.same_cluster(request.cluster_id):
        return response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics or not request.topics[0].partitions:
        return response(error_code=ErrorCode.INVALID_REQUEST)
    data = request.topics[0].partitions[0]
    asked = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    error = _wrong_epoch(raft, data.current_leader_epoch)
    if error is not None or not isinstance(raft.role, Leader):
        error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        return snapshot_response(raft.leadership, Piece(asked), error)
    raft.role.contacted(ReplicaKey(NodeId(request.replica_id), data.replica_directory_id))
    length = max(1, min(request.max_bytes, SNAPSHOT_PIECE_BYTES))
    found = raft.snapshots.read(asked, max(0, data.position), length)
    if found is None:
        return snapshot_response(raft.leadership, Piece(asked), ErrorCode.SNAPSHOT_NOT_FOUND)
    content, size = found
    if not 0 <= data.position < size:
        return snapshot_response(raft.leadership, Piece(asked), ErrorCode.POSITION_OUT_OF_RANGE)
    return snapshot_response(raft.leadership, Piece(asked, data.position, size, content))


def _wrong_epoch(raft: "Raft", epoch: int) -> ErrorCode | None:
    if epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > raft.epoch else None


def _must_serve(raft: "Raft") -> None:
    if isinstance(raft.role, Halted):
        raise StorageError("this node takes no part in the quorum any more")
