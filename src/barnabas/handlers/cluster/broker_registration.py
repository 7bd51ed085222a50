"""BrokerRegistration (key 62), versions 0 to 4: a broker process registers."""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)


def handle(
    node: Node, request: BrokerRegistrationRequest, context: RequestContext
) -> BrokerRegistrationResponse | Pending[BrokerRegistrationResponse]:
    """Register the broker."""
    del context
    return decided(
        lambda: node.controlling.register(request),
        lambda error: BrokerRegistrationResponse(error_code=error.code),
    )
