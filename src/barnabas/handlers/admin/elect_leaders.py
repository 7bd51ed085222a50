"""ElectLeaders (key 43), versions 0 to 2: preferred and unclean elections."""

from barnabas.handlers.authorization import ALTER_CLUSTER, require
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

WHOLE_ERROR_FROM = 1
"""In earlier versions each partition has an error, and the request has none."""


def handle(
    node: Node, request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse | Pending[ElectLeadersResponse]:
    """Hold elections."""

    def elect() -> Pending[ElectLeadersResponse]:
        require(node, context, ALTER_CLUSTER)
        return node.controlling.elect_leaders(request)

    return decided(elect, lambda error: _refused(request, error, context.version))


def _refused(request: ElectLeadersRequest, error: ApiError, version: int) -> ElectLeadersResponse:
    """Answer the request and every partition that it names with the same error."""
    return ElectLeadersResponse(
        error_code=error.code if version >= WHOLE_ERROR_FROM else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index, error_code=error.code, error_message=error.message
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )
