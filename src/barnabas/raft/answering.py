"""Answers to the requests of other quorum members: Vote, Begin- and EndQuorumEpoch, Fetch.

A request of an older epoch is refused, and the response names the newer one. A request of a later
epoch is accepted. A node grants one vote an epoch, to a candidate whose log is at least as up to
date as its own, and the vote is on disk before the response leaves. A request that names a
directory is for that directory alone: a node that lost its disk is no longer the same voter.
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
from barnabas.raft.metadata_snapshots import SnapshotId
from barnabas.raft.quorum_state import QuorumState
from barnabas.raft.raft_following import Follower
from barnabas.raft.raft_roles import Halted
from barnabas.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from barnabas.raft.raft_elections import Elections


def vote(elections: "Elections", request: VoteRequest) -> VoteResponse:
    """Grant or refuse a vote or a pre-vote."""
    _must_serve(elections)
    if not elections.identity.is_in_cluster(request.cluster_id):
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    data = request.topics[0].partitions[0] if request.topics else None
    if data is None or request.topics[0].topic_name != METADATA_TOPIC:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not is_addressed(elections, request.voter_id, data.voter_directory_id):
        return vote_response(elections.leadership, error=ErrorCode.INVALID_VOTER_KEY)
    facts = vote_facts(data)
    if facts.epoch < elections.epoch:
        return vote_response(elections.leadership, error=ErrorCode.FENCED_LEADER_EPOCH)
    granted = _decide(elections, facts)
    return vote_response(elections.leadership, granted=granted)


def is_addressed(elections: "Elections", node_id: int, directory: bytes) -> bool:
    """Whether a request is for this node and its directory."""
    identity = elections.identity
    return node_id in (-1, identity.node_id) and same_disk(directory, identity.directory)


def _decide(elections: "Elections", facts: VoteFacts) -> bool:
    later = facts.epoch > elections.epoch
    state = QuorumState(facts.epoch) if later else elections.state.current
    up_to_date = facts.log_end >= elections.log_end
    if facts.pre_vote:
        granted = up_to_date and (later or not elections.role.refuses_pre_votes())
    elif state.voted is not None or state.leader_id is not None:
        granted = state.voted == facts.candidate and state.leader_id is None
    else:
        granted = up_to_date
        if granted:
            state = state._replace(voted=facts.candidate)
    if state != elections.state.current:
        wait_ms = None if granted and not facts.pre_vote else elections.election_wait_left()
        elections.state.save(state)
        elections.become(Unattached(elections, wait_ms))
    return granted


def begin_epoch(
    elections: "Elections", request: begin_quorum_epoch.BeginQuorumEpochRequest
) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    """Follow the leader that announces itself."""
    _must_serve(elections)
    if not elections.identity.is_in_cluster(request.cluster_id):
        return begin_quorum_epoch.BeginQuorumEpochResponse(
            error_code=ErrorCode.INCONSISTENT_CLUSTER_ID
        )
    if not request.topics or not request.topics[0].partitions:
        return begin_quorum_epoch.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    data = request.topics[0].partitions[0]
    if not is_addressed(elections, request.voter_id, data.voter_directory_id):
        return begin_response(elections.leadership, ErrorCode.INVALID_VOTER_KEY)
    if data.leader_epoch < elections.epoch:
        return begin_response(elections.leadership, ErrorCode.FENCED_LEADER_EPOCH)
    place = next((Address(one.host, one.port) for one in request.leader_endpoints), None)
    leader = NodeId(data.leader_id)
    elections.learn(Leadership(data.leader_epoch, leader, place), sender=leader)
    return begin_response(elections.leadership)


def end_epoch(
    elections: "Elections", request: end_quorum_epoch.EndQuorumEpochRequest
) -> end_quorum_epoch.EndQuorumEpochResponse:
    """Start an election after the leader resigned; preferred candidates start it in their order."""
    _must_serve(elections)
    if not elections.identity.is_in_cluster(request.cluster_id):
        return end_quorum_epoch.EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics or not request.topics[0].partitions:
        return end_quorum_epoch.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    data = request.topics[0].partitions[0]
    if data.leader_epoch < elections.epoch:
        return end_response(elections.leadership, ErrorCode.FENCED_LEADER_EPOCH)
    if data.leader_epoch > elections.epoch:
        elections.state.save(QuorumState(data.leader_epoch))
        elections.become(Unattached(elections, 1))  # the epoch is known now; go on below
    if isinstance(elections.role, Follower | Unattached):
        candidates = [
            ReplicaKey(NodeId(one.candidate_id), one.candidate_directory_id)
            for one in data.preferred_candidates
        ]
        own, wait_ms = elections.identity.key, None
        if own in candidates:
            wait_ms = candidates.index(own) * 2 * elections.environment.timeouts.retry_ms
        elections.leader_resigned(wait_ms)
    return end_response(elections.leadership)


def fetch(elections: "Elections", request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
    """Answer a fetch, if this node leads the epoch that the request names."""
    _must_serve(elections)
    if not elections.identity.is_in_cluster(request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    facts = fetch_facts(request)
    if facts is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _wrong_epoch(elections, facts.epoch)
    if error is not None or not isinstance(elections.role, Leader):
        answer = FetchAnswer(elections.leadership, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return fetch_response(answer)
    return elections.role.fetch(facts)


def fetch_snapshot(
    elections: "Elections", request: fetch_snapshot_messages.FetchSnapshotRequest
) -> fetch_snapshot_messages.FetchSnapshotResponse:
    """Serve a piece of a snapshot."""
    _must_serve(elections)
    response = fetch_snapshot_messages.FetchSnapshotResponse
    if not elections.identity.is_in_cluster(request.cluster_id):
        return response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics or not request.topics[0].partitions:
        return response(error_code=ErrorCode.INVALID_REQUEST)
    data, leader = request.topics[0].partitions[0], elections.leadership
    asked = SnapshotId(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    error = _wrong_epoch(elections, data.current_leader_epoch)
    if error is not None or not isinstance(elections.role, Leader):
        error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
        return snapshot_response(leader, Piece(asked), error)
    elections.role.contacted(ReplicaKey(NodeId(request.replica_id), data.replica_directory_id))
    length = max(1, min(request.max_bytes, SNAPSHOT_PIECE_BYTES))
    found = elections.committed.snapshots.read(asked, max(0, data.position), length)
    if found is None:
        return snapshot_response(leader, Piece(asked), ErrorCode.SNAPSHOT_NOT_FOUND)
    content, size = found
    if not 0 <= data.position < size:
        return snapshot_response(leader, Piece(asked), ErrorCode.POSITION_OUT_OF_RANGE)
    return snapshot_response(leader, Piece(asked, data.position, size, content))


def _wrong_epoch(elections: "Elections", epoch: int) -> ErrorCode | None:
    if epoch < elections.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > elections.epoch else None


def _must_serve(elections: "Elections") -> None:
    if isinstance(elections.role, Halted):
        raise StorageError(
            "this node takes no part in the quorum: it has halted or stopped; see its log"
        )
