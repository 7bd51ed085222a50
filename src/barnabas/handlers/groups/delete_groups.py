"""DeleteGroups (key 42), versions 0 to 2: deletes groups without members, and their offsets.

Each group is deleted on its own: a failure does not affect the others.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import DELETE_GROUP, denied_among
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(
    node: Node, request: DeleteGroupsRequest, context: RequestContext
) -> Pending[DeleteGroupsResponse]:
    """Delete groups, in any partition of the topic."""
    groups = list(dict.fromkeys(request.groups_names))
    denied = denied_among(node, context, DELETE_GROUP, groups)
    codes = all_of(
        [
            ErrorCode.GROUP_AUTHORIZATION_FAILED if group_id in denied else _delete(node, group_id)
            for group_id in groups
        ]
    )
    return codes.map(
        lambda codes: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=code)
                for group_id, code in zip(groups, codes, strict=True)
            ]
        )
    )


def _delete(node: Node, group_id: str) -> ErrorCode | Pending[ErrorCode]:
    return ask_group(
        node, group_id, lambda machine: machine.delete_group(group_id), lambda code: code
    )
