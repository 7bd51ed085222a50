"""Heartbeat (key 12), versions 0 to 4: a member of a classic group reports that it is alive.

Static members from version 3 (KIP-345).

Members learn of a rebalance from the response to a heartbeat, and send one every few seconds. So
the response is delayed for a while: a rebalance that begins meanwhile reaches all members at once.
Responses leave a connection in order, so the member's next request ends the delay.
"""

from functools import partial

from barnabas.handlers.authorization import READ_GROUP, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    node: Node, request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    """Tell a member whether it is still one, and whether it has to join again."""
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answer = ask_group(
        node,
        request.group_id,
        lambda machine: machine.classic.heartbeat(request, waits=True),
        _refused,
    )
    if isinstance(answer, Pending) and not answer.done:
        context.asked_wait_ms = node.settings.groups.heartbeat_wait_ms
        context.overtaken = partial(_hasten, node, request)
    return answer


def _hasten(node: Node, request: HeartbeatRequest) -> None:
    ask_group(
        node, request.group_id, lambda machine: machine.classic.hasten(request), lambda _: None
    )


def _refused(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
