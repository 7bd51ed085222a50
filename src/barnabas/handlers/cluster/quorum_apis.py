"""The requests of the metadata quorum: Vote (key 52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), UpdateRaftVoter (82) between nodes; DescribeQuorum (55), AddRaftVoter (80) and
RemoveRaftVoter (81) for clients, too. Raft answers all of them.
"""

from collections.abc import Iterator

from barnabas.handlers.authorization import ALTER_CLUSTER, DESCRIBE_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from barnabas.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
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
from barnabas.raft.messages import METADATA_TOPIC
from barnabas.raft.voters import NO_DIRECTORY

DIRECTORIES_FROM = 2
METADATA_PARTITION = 0


def handle_vote(node: Node, request: VoteRequest, _: RequestContext) -> VoteResponse:
    """Grant or refuse a vote."""
    return node.quorum.raft.handle_vote(request)


def handle_begin_quorum_epoch(
    node: Node, request: BeginQuorumEpochRequest, _: RequestContext
) -> BeginQuorumEpochResponse:
    """Accept the leader of an epoch."""
    return node.quorum.raft.handle_begin_quorum_epoch(request)


def handle_end_quorum_epoch(
    node: Node, request: EndQuorumEpochRequest, _: RequestContext
) -> EndQuorumEpochResponse:
    """Accept that a leader steps down."""
    return node.quorum.raft.handle_end_quorum_epoch(request)


def handle_fetch_snapshot(
    node: Node, request: FetchSnapshotRequest, _: RequestContext
) -> FetchSnapshotResponse:
    """Return a part of a snapshot."""
    return node.quorum.raft.handle_fetch_snapshot(request)


def handle_describe_quorum(
    node: Node, request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    """Return the voters and their progress; older versions have no addresses or directories.

    Only the partition of the metadata log has a quorum. As in Kafka, a request that asks for
    anything else, or for more, receives an error for each partition that it names.
    """
    if is_denied(node, context, DESCRIBE_CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeQuorumResponse(error_code=code, error_message=code.name)
    asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
    if asked != [(METADATA_TOPIC, METADATA_PARTITION)]:
        return _no_quorum(request)
    response = node.quorum.raft.handle_describe_quorum(request)
    if context.version < DIRECTORIES_FROM:
        response.nodes = []
        for replica in _replicas(response):
            replica.replica_directory_id = NO_DIRECTORY
    return response


def _no_quorum(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    message = f"only partition {METADATA_PARTITION} of {METADATA_TOPIC} has a quorum; ask for it"
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _replicas(response: DescribeQuorumResponse) -> Iterator[ReplicaState]:
    for topic in response.topics:
        for partition in topic.partitions:
            yield from partition.current_voters
            yield from partition.observers


def handle_add_voter(
    node: Node, request: AddRaftVoterRequest, context: RequestContext
) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]:
    """Add a voter."""
    if is_denied(node, context, ALTER_CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return AddRaftVoterResponse(error_code=code, error_message=code.name)
    return node.quorum.raft.handle_add_voter(request)


def handle_remove_voter(
    node: Node, request: RemoveRaftVoterRequest, context: RequestContext
) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]:
    """Remove a voter."""
    if is_denied(node, context, ALTER_CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return RemoveRaftVoterResponse(error_code=code, error_message=code.name)
    return node.quorum.raft.handle_remove_voter(request)


def handle_update_voter(
    node: Node, request: UpdateRaftVoterRequest, _: RequestContext
) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]:
    """Record the address of a voter."""
    return node.quorum.raft.handle_update_voter(request)
