"""ListPartitionReassignments (key 46), version 0: what is being moved."""

from barnabas.controller.reassignment import list_reassignments
from barnabas.handlers.context import RequestContext
from barnabas.node.node import Node
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    node: Node, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """List replicas that come and go."""
    del context
    return list_reassignments(node.image, request)
