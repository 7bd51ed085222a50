"""ListPartitionReassignments (key 46), version 0: moves in progress."""

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
    """List the replicas that are added and removed."""
    del context
    return list_reassignments(node.image, request)
