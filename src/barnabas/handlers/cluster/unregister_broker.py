"""UnregisterBroker (key 64), version 0: remove a broker that will not return."""

from barnabas.handlers.authorization import ALTER_CLUSTER, require
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

Response = UnregisterBrokerResponse


def handle(
    node: Node, request: UnregisterBrokerRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Remove its registration."""

    def unregister() -> Pending[Response]:
        require(node, context, ALTER_CLUSTER)
        done = node.controlling.unregister(request.broker_id)
        return done.map(lambda _: Response(error_message=None))

    return decided(
        unregister,
        lambda error: Response(error_code=error.code, error_message=error.message),
    )
