"""AllocateProducerIds (key 67), version 0: a broker reserves producer ids at the controller."""

from barnabas.controller.isr_decisions import sender_is_current
from barnabas.handlers.context import RequestContext
from barnabas.handlers.controlled import decided
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

Response = AllocateProducerIdsResponse


def handle(
    node: Node, request: AllocateProducerIdsRequest, context: RequestContext
) -> Response | Pending[Response]:
    """Reserve a block of ids."""

    def reserve() -> Pending[Response]:
        sender_is_current(node.draft, request.broker_id, request.broker_epoch)
        block = node.controlling.reserve_producer_ids(context.now_ms)
        return block.map(
            lambda ids: Response(producer_id_start=ids.start, producer_id_len=len(ids))
        )

    return decided(reserve, lambda error: Response(error_code=error.code))
