"""OffsetDelete (key 47), version 0 (KIP-496): never flexible.

Offsets of topics that a member subscribes to stay. Groups of other protocol types must be empty.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def handle(
    node: Node, request: OffsetDeleteRequest, _: RequestContext
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    """Forget some offsets of a group."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    return ask_group(
        node,
        request.group_id,
        lambda machine: machine.offsets.delete(request),
        lambda code: OffsetDeleteResponse(error_code=code),
    )
