"""Heartbeat (key 12), versions 0 to 4: a member of a classic group is alive.

Static members from version 3 (KIP-345).
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    node: Node, request: HeartbeatRequest, _: RequestContext
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    """Tell a member whether it is still one, and whether it has to join again."""
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    return ask_group(
        node, request.group_id, lambda machine: machine.classic.heartbeat(request), _refused
    )


def _refused(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
