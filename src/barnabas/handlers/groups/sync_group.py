"""SyncGroup (key 14), versions 0 to 5: a member of a classic group fetches its assignment.

Static members from version 3 (KIP-345); protocol type and name, which must be there, from 5
(KIP-559).

Deviation: a second SyncGroup of a member whose first one is pending completes the first with
REBALANCE_IN_PROGRESS, which Kafka drops.
"""

from barnabas.groups.classic.answers import sync_refused
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_FROM = 5


def handle(
    node: Node, request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    """Give a member its assignment, once it is stored."""
    if context.version >= PROTOCOL_FROM and None in {request.protocol_type, request.protocol_name}:
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return sync_refused(ErrorCode.INVALID_GROUP_ID)
    return ask_group(
        node, request.group_id, lambda machine: machine.classic.sync(request), sync_refused
    )
