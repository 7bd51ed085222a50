"""ShareGroupHeartbeat (key 76), version 1: the request by which members of share groups join,
learn their assignment, show that they are alive, and leave (KIP-932).

Members generate their ids. A member must be allowed to describe all topics that it names.
Deviations from Kafka: see `groups/share/share_protocol.py` (assignments are computed at once, and
the heartbeat interval is short while partitions are being initialized).
"""

from barnabas.handlers.authorization import (
    DESCRIBE_TOPIC,
    READ_GROUP,
    denied_among,
    is_denied,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import caller_of, retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def handle(
    node: Node, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse | Pending[ShareGroupHeartbeatResponse]:
    """Have the coordinator handle a heartbeat; clients show its error messages to their users."""
    if is_denied(node, context, READ_GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if denied_among(node, context, DESCRIBE_TOPIC, request.subscribed_topic_names or ()):
        return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = caller_of(context)
    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        answer = shard.run(lambda: shard.machine.share.heartbeat(request, caller))
    except ApiError as error:
        return ShareGroupHeartbeatResponse(
            error_code=retriable(error.code), error_message=error.message
        )
    return answer.or_refused(_refused)


def _refused(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code)
