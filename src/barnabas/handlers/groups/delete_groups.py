"""DeleteGroups (key 42), versions 0 to 2: groups without members go, and their offsets with them.

Each group is deleted by itself: one that cannot be does not keep the others.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(
    node: Node, request: DeleteGroupsRequest, _: RequestContext
) -> Pending[DeleteGroupsResponse]:
    """Delete groups, wherever in the topic they live."""
    groups = list(dict.fromkeys(request.groups_names))
    codes = all_of([_delete(node, group_id) for group_id in groups])
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
