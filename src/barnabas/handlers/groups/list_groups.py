"""ListGroups (key 16), versions 0 to 5: every group that is coordinated here.

Version 4 filters by state (KIP-518), version 5 by type (KIP-848); letter case does not matter, and
an unknown state or type matches nothing. Before the coordinators' topic exists there are no groups.
"""

from functools import partial
from itertools import chain

from barnabas.handlers.answers import all_of
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(
    node: Node, request: ListGroupsRequest, _: RequestContext
) -> ListGroupsResponse | Pending[ListGroupsResponse]:
    """Name the groups of all coordinators that are here; clients ask every broker."""
    try:
        found = all_of(_ask_all(node, request))
    except ApiError as error:
        return ListGroupsResponse(error_code=retriable(error.code))
    return found.map(lambda lists: ListGroupsResponse(groups=list(chain.from_iterable(lists))))


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
