"""ListPartitionReassignments (key 46), version 0: moves in progress."""

from barnabas.controller.reassignment import list_reassignments
from barnabas.handlers.authorization import DESCRIBE_CLUSTER, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    node: Node, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """List the replicas that are added and removed."""
    if is_denied(node, context, DESCRIBE_CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return ListPartitionReassignmentsResponse(error_code=code, error_message=code.name)
    return list_reassignments(node.image, request)
