"""ShareGroupDescribe (key 77), version 1: share groups and their members (KIP-932).

A group of another type is GROUP_ID_NOT_FOUND. The caller must be allowed to describe all topics
that are assigned to the members; otherwise the group is TOPIC_AUTHORIZATION_FAILED, without its
members.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    denied_among,
    is_denied,
    operations,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.permissions import ResourceType
from barnabas.node.node import Node
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle(
    node: Node, request: ShareGroupDescribeRequest, context: RequestContext
) -> Pending[ShareGroupDescribeResponse]:
    """Describe groups, in the order of the request."""
    denied = denied_among(node, context, DESCRIBE_GROUP, request.group_ids)

    def answer(groups: list[DescribedGroup]) -> ShareGroupDescribeResponse:
        for place, group in enumerate(groups):
            if _has_hidden_topic(node, context, group):
                groups[place] = DescribedGroup(
                    group_id=group.group_id,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    error_message="The group has topics that you are not allowed to describe",
                )
            elif request.include_authorized_operations and not group.error_code:
                told = operations(node, context, ResourceType.GROUP, group.group_id)
                group.authorized_operations = told
        return ShareGroupDescribeResponse(groups=groups)

    found = [
        DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if group_id in denied
        else _describe(node, group_id)
        for group_id in request.group_ids
    ]
    return all_of(found).map(answer)


def _has_hidden_topic(node: Node, context: RequestContext, group: DescribedGroup) -> bool:
    """Tell whether members have topics that the caller may not describe."""
    if node.authorizer is None:
        return False
    names = {
        topic.topic_name for member in group.members for topic in member.assignment.topic_partitions
    }
    return any(is_denied(node, context, DESCRIBE_TOPIC, name) for name in sorted(names))


def _describe(node: Node, group_id: str) -> DescribedGroup | Pending[DescribedGroup]:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        shard = node.coordinators.groups.shard_for(group_id)
        answer = shard.run(lambda: shard.machine.share.describe(group_id))
    except ApiError as error:
        return DescribedGroup(
            group_id=group_id, error_code=retriable(error.code), error_message=error.message
        )
    return answer.or_refused(lambda code: DescribedGroup(group_id=group_id, error_code=code))
