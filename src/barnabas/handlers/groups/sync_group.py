"""SyncGroup (key 14), versions 0 to 5: a member of a classic group fetches its assignment.

Static members from version 3 (KIP-345); protocol type and name, which must be there, from 5
(KIP-559).

Deviation: a second SyncGroup of a member whose first one is pending completes the first with
REBALANCE_IN_PROGRESS; Kafka never answers the first.
"""

from barnabas.groups.classic.classic_answers import sync_refused
from barnabas.handlers.authorization import READ_GROUP, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_FROM = 5


def handle(
    node: Node, request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    """Give a member its assignment, once it is stored."""
    context.asked_wait_ms = node.settings.groups.max_session_timeout_ms
    if context.version >= PROTOCOL_FROM and None in {request.protocol_type, request.protocol_name}:
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return sync_refused(ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return sync_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return ask_group(
        node, request.group_id, lambda machine: machine.classic.sync(request), sync_refused
    )
