"""DescribeGroups (key 15), versions 0 to 6: classic groups and their members.

Members have a subscription only while the group is stable. A group that does not exist, or
is a `consumer` group (KIP-848), is Dead; from version 6 on it is GROUP_ID_NOT_FOUND as well
(KIP-1043).

Deviation: the response has the groups in the order of the request, not partition by partition.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import DESCRIBE_GROUP, denied_among, operations
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.permissions import ResourceType
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(
    node: Node, request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse | Pending[DescribeGroupsResponse]:
    """Describe groups, in the order of the request."""

    def answer(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                told = operations(node, context, ResourceType.GROUP, group.group_id)
                group.authorized_operations = told
        return DescribeGroupsResponse(groups=groups)

    denied = denied_among(node, context, DESCRIBE_GROUP, request.groups)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    found = [
        DescribedGroup(group_id=group_id, error_code=code)
        if group_id in denied
        else _describe(node, group_id, context.version)
        for group_id in request.groups
    ]
    return all_of(found).map(answer)


def _describe(node: Node, group_id: str, version: int) -> DescribedGroup | Pending[DescribedGroup]:
    def refused(code: ErrorCode) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=code)

    return ask_group(
        node, group_id, lambda machine: machine.classic.describe(group_id, version), refused
    )
