"""ElectLeaders (key 43), versions 0 to 2: preferred and unclean elections."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


def handle(
    node: Node, request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse | Pending[ElectLeadersResponse]:
    """Hold elections."""
    del context
    return decided(
        lambda: node.controlling.elect_leaders(request),
        lambda error: ElectLeadersResponse(error_code=error.code),
    )
