"""Answers to DescribeQuorum and to the requests that change the voters (KIP-595, KIP-853)."""

from typing import TYPE_CHECKING

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.messages import (
    add_raft_voter,
    describe_quorum,
    remove_raft_voter,
    update_raft_voter,
)
from barnabas.raft.leading import Leader
from barnabas.raft.messages import METADATA_TOPIC
from barnabas.raft.raft_voter_changes import Outcome, voter_of
from barnabas.raft.replicas import Replica
from barnabas.raft.voters import LISTENER, ReplicaKey, Voter

if TYPE_CHECKING:
    from barnabas.raft.raft_elections import Elections

NOT_LEADER: Outcome = (ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum")
WRONG_CLUSTER: Outcome = (ErrorCode.INCONSISTENT_CLUSTER_ID, "the request is for another cluster")
NO_VOTER_ID: Outcome = (ErrorCode.INVALID_REQUEST, "the voter id must be 0 or more")


def describe(elections: "Elections") -> describe_quorum.DescribeQuorumResponse:
    """Describe the voters and observers as the leader knows them."""
    data = describe_quorum.DescribeQuorumResponsePartitionData(
        leader_id=elections.leadership.wire_id,
        leader_epoch=elections.epoch,
        high_watermark=elections.committed.high_watermark,
        error_message=None,
    )
    nodes: list[describe_quorum.Node] = []
    leader = elections.leader
    if leader is not None:
        voters = elections.voters.current
        data.current_voters = [_voter_state(leader, voter) for voter in voters]
        observers = leader.replicas.observers(voters, leader.timers.now_ms)
        data.observers = [_state(replica) for replica in observers]
        nodes = [_node(voter) for voter in voters]
    else:
        data.error_code, data.error_message = NOT_LEADER
    topic = describe_quorum.DescribeQuorumResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[data]
    )
    return describe_quorum.DescribeQuorumResponse(error_message=None, topics=[topic], nodes=nodes)


def add_voter(
    elections: "Elections", request: add_raft_voter.AddRaftVoterRequest
) -> add_raft_voter.AddRaftVoterResponse | Pending[add_raft_voter.AddRaftVoterResponse]:
    """Answer AddRaftVoter."""
    leader = elections.leader
    if not elections.identity.is_in_cluster(request.cluster_id):
        return _added(WRONG_CLUSTER)
    if leader is None:
        return _added(NOT_LEADER)
    if request.voter_id < 0:
        return _added(NO_VOTER_ID)
    try:
        listeners = [(one.host, one.port) for one in request.listeners]
        voter = voter_of(request.voter_id, request.voter_directory_id, listeners)
    except ApiError as error:
        return _added((error.code, error.message))
    outcome = leader.voter_changes.add(
        voter, request.timeout_ms, wait_for_commit=request.ack_when_committed
    )
    return outcome.map(_added) if isinstance(outcome, Pending) else _added(outcome)


def remove_voter(
    elections: "Elections", request: remove_raft_voter.RemoveRaftVoterRequest
) -> remove_raft_voter.RemoveRaftVoterResponse | Pending[remove_raft_voter.RemoveRaftVoterResponse]:
    """Answer RemoveRaftVoter."""
    leader = elections.leader
    if not elections.identity.is_in_cluster(request.cluster_id):
        return _removed(WRONG_CLUSTER)
    if leader is None:
        return _removed(NOT_LEADER)
    if request.voter_id < 0:
        return _removed(NO_VOTER_ID)
    key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
    outcome = leader.voter_changes.remove(key)
    return outcome.map(_removed) if isinstance(outcome, Pending) else _removed(outcome)


def update_voter(
    elections: "Elections", request: update_raft_voter.UpdateRaftVoterRequest
) -> update_raft_voter.UpdateRaftVoterResponse | Pending[update_raft_voter.UpdateRaftVoterResponse]:
    """Answer UpdateRaftVoter."""

    def updated(outcome: Outcome) -> update_raft_voter.UpdateRaftVoterResponse:
        response = update_raft_voter.UpdateRaftVoterResponse(error_code=outcome[0])
        leader, address = elections.leadership, elections.leadership.address
        if leader.leader_id is not None and address is not None:
            response.current_leader = update_raft_voter.CurrentLeader(
                leader_id=leader.leader_id,
                leader_epoch=leader.epoch,
                host=address.host,
                port=address.port,
            )
        return response

    leader = elections.leader
    if not elections.identity.is_in_cluster(request.cluster_id):
        return updated(WRONG_CLUSTER)
    if leader is None:
        return updated(NOT_LEADER)
    if request.current_leader_epoch != elections.epoch:
        older = request.current_leader_epoch < elections.epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return updated((code, ""))
    try:
        listeners = [(one.host, one.port) for one in request.listeners]
        voter = voter_of(request.voter_id, request.voter_directory_id, listeners)
    except ApiError as error:
        return updated((error.code, error.message))
    outcome = leader.voter_changes.update_address(voter.key, voter.address)
    return outcome.map(updated) if isinstance(outcome, Pending) else updated(outcome)


def _added(outcome: Outcome) -> add_raft_voter.AddRaftVoterResponse:
    return add_raft_voter.AddRaftVoterResponse(
        error_code=outcome[0], error_message=outcome[1] or None
    )


def _removed(outcome: Outcome) -> remove_raft_voter.RemoveRaftVoterResponse:
    return remove_raft_voter.RemoveRaftVoterResponse(
        error_code=outcome[0], error_message=outcome[1] or None
    )


def _voter_state(leader: Leader, voter: Voter) -> describe_quorum.ReplicaState:
    if voter.id == leader.identity.node_id:
        own = Replica(leader.identity.key, leader.log.end_offset)
        own.fetched_wall_ms = own.caught_up_wall_ms = leader.timers.wall_ms
        return _state(own)
    return _state(leader.replicas.of(voter) or Replica(voter.key))


def _state(replica: Replica) -> describe_quorum.ReplicaState:
    return describe_quorum.ReplicaState(
        replica_id=replica.key.id,
        replica_directory_id=replica.key.directory,
        log_end_offset=replica.end_offset,
        last_fetch_timestamp=replica.fetched_wall_ms,
        last_caught_up_timestamp=replica.caught_up_wall_ms,
    )


def _node(voter: Voter) -> describe_quorum.Node:
    listener = describe_quorum.Listener(
        name=LISTENER, host=voter.address.host, port=voter.address.port
    )
    return describe_quorum.Node(node_id=voter.id, listeners=[listener])
