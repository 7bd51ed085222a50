"""AlterPartition (key 56), versions 2 to 3: a leader proposes its in-sync replicas."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle(
    node: Node, request: AlterPartitionRequest, context: RequestContext
) -> AlterPartitionResponse | Pending[AlterPartitionResponse]:
    """Decide on each partition."""
    del context
    return decided(
        lambda: node.controlling.alter_partition(request),
        lambda error: AlterPartitionResponse(error_code=error.code),
    )
