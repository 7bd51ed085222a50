"""AlterPartitionReassignments (key 45), versions 0 to 1: start or cancel moves of replicas."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


def handle(
    node: Node, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse | Pending[AlterPartitionReassignmentsResponse]:
    """Start or cancel moves."""
    del context
    return decided(
        lambda: node.controlling.reassign(request),
        lambda error: AlterPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message
        ),
    )
