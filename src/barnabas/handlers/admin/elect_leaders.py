"""ElectLeaders (key 43), versions 0 to 2: preferred and unclean elections."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def handle(
    node: Node, request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse | Pending[ElectLeadersResponse]:
    """Hold elections."""
    del context
    return decided(
        lambda: node.controlling.elect_leaders(request),
        lambda error: _refused(request, error),
    )


def _refused(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """Answer the request and every partition that it names with the same error."""
    return ElectLeadersResponse(
        error_code=error.code,
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
