"""BrokerHeartbeat (key 63), versions 0 to 2: a broker tells the controller that it is alive."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


def handle(
    node: Node, request: BrokerHeartbeatRequest, context: RequestContext
) -> BrokerHeartbeatResponse | Pending[BrokerHeartbeatResponse]:
    """Renew the lease; unfence the broker, or let it shut down."""
    del context
    return decided(
        lambda: node.controlling.heartbeat(request),
        lambda error: BrokerHeartbeatResponse(error_code=error.code),
    )
