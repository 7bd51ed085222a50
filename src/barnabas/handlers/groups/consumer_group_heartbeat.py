"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: the one request of `consumer` group members.

A member must be allowed to describe all topics that it names. Topics that its regular expression
matches and that it may not describe are omitted.

KIP-848; from version 1 on members generate their ids (KIP-1082) and may subscribe by a regular
expression. Deviations from Kafka: see `groups/consumer/consumer_protocol.py` (assignments are
computed at once) and `model/name_pattern.py` (RE2). Expressions never match internal topics. A
classic group becomes a `consumer` group only while it has no members. A static member that is
fenced may join again at once (`groups/consumer/consumer_membership.py`).
"""

from barnabas.handlers.authorization import (
    DESCRIBE_TOPIC,
    READ_GROUP,
    denied_among,
    is_denied,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import caller_of, retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    node: Node, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    """Have the coordinator handle a heartbeat; clients show its error messages to their users."""
    if is_denied(node, context, READ_GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if denied_among(node, context, DESCRIBE_TOPIC, request.subscribed_topic_names or ()):
        return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = caller_of(context)
    if node.authorizer is not None:
        caller = caller._replace(
            describes=lambda name: not is_hidden(node, context, DESCRIBE_TOPIC, name)
        )
    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        answer = shard.run(lambda: shard.machine.consumer.heartbeat(request, caller))
    except ApiError as error:
        return ConsumerGroupHeartbeatResponse(
            error_code=retriable(error.code), error_message=error.message
        )
    return answer.or_refused(_refused)


def _refused(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)
