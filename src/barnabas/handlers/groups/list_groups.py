"""ListGroups (key 16), versions 0 to 5: every group that is coordinated here.

Version 4 filters by state (KIP-518), version 5 by type (KIP-848); letter case does not matter, and
an unknown state or type matches nothing. Before the coordinators' topic exists there are no groups.
A caller that may not describe the cluster sees the groups that it may describe.
"""

from functools import partial
from itertools import chain

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import DESCRIBE_CLUSTER, DESCRIBE_GROUP, is_hidden
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(
    node: Node, request: ListGroupsRequest, context: RequestContext
) -> ListGroupsResponse | Pending[ListGroupsResponse]:
    """Name the groups of all coordinators that are here; clients ask every broker."""
    try:
        found = all_of(_ask_all(node, request))
    except ApiError as error:
        return ListGroupsResponse(error_code=retriable(error.code))

    def answer(lists: list[list[ListedGroup]]) -> ListGroupsResponse:
        groups = list(chain.from_iterable(lists))
        if is_hidden(node, context, DESCRIBE_CLUSTER):
            groups = [
                group
                for group in groups
                if not is_hidden(node, context, DESCRIBE_GROUP, group.group_id)
            ]
        return ListGroupsResponse(groups=groups)

    return found.map(answer)


def _ask_all(
    node: Node, request: ListGroupsRequest
) -> list[list[ListedGroup] | Pending[list[ListedGroup]]]:
    states, types = request.states_filter, request.types_filter
    return [
        shard.run(partial(shard.machine.list_groups, states, types)).or_refused(_elsewhere)
        for shard in node.coordinators.groups.all_shards()
    ]


def _elsewhere(_: ErrorCode) -> list[ListedGroup]:
    """Return no groups of a coordinator that moved: its new broker lists them."""
    return []
