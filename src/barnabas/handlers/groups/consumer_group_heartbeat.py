"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: the one request of `consumer` group members.

KIP-848; from version 1 on members generate their ids (KIP-1082) and may subscribe by a regular
expression. Deviations from Kafka: see `groups/consumer/protocol.py` (nothing is put off),
`model/name_pattern.py` (RE2), and: expressions never match the broker's own topics,
a classic group is taken over only while it has no members, whatever its members speak; and a static
member that is fenced may join again at once (`groups/consumer/consumer_membership.py`).
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import caller_of, retriable
from barnabas.model.errors import ApiError
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
    caller = caller_of(context)
    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        answer = shard.run(lambda: shard.machine.consumer.heartbeat(request, caller))
    except ApiError as error:
        return ConsumerGroupHeartbeatResponse(
            error_code=retriable(error.code), error_message=error.message
        )
    return answer.or_refused(lambda code: ConsumerGroupHeartbeatResponse(error_code=code))
