"""AlterPartitionReassignments (key 45), versions 0 to 1: start or cancel moves of replicas."""

from barnabas.handlers.authorization import ALTER_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    node: Node, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse | Pending[AlterPartitionReassignmentsResponse]:
    """Start or cancel moves."""
    if is_denied(node, context, ALTER_CLUSTER):
        return _denied(request)
    return decided(
        lambda: node.controlling.reassign(request),
        lambda error: AlterPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message
        ),
    )


def _denied(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """Answer the request and every partition that it names with the same error, as Kafka does."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.name,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=code.name,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
