"""ConsumerGroupDescribe (key 69), versions 0 and 1: `consumer` groups and their members (KIP-848).

A group of another type is GROUP_ID_NOT_FOUND; DescribeGroups describes those. From version 1 on
members have a type, which is always that of this protocol.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

GROUP_OPERATIONS = 3400
"""Everything is allowed, as bits, while there are no ACLs."""


def handle(
    node: Node, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> Pending[ConsumerGroupDescribeResponse]:
    """Describe groups, in the order they were asked for."""
    del context

    def answer(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return all_of([_describe(node, group_id) for group_id in request.group_ids]).map(answer)


def _describe(node: Node, group_id: str) -> DescribedGroup | Pending[DescribedGroup]:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        shard = node.coordinators.groups.shard_for(group_id)
        answer = shard.run(lambda: shard.machine.consumer.describe(group_id))
    except ApiError as error:
        return DescribedGroup(
            group_id=group_id, error_code=retriable(error.code), error_message=error.message
        )
    return answer.or_refused(lambda code: DescribedGroup(group_id=group_id, error_code=code))
