"""InitProducerId (key 22), versions 0 to 5, for idempotent producers.

A producer that comes with the id it has gets the next epoch of it (KIP-360). Transactional ids
are refused until there are transactions.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.node.pending import Pending
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

EPOCH_MAX = 32_766


def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give out an id, or the next epoch of one."""
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if request.producer_id >= 0 and 0 <= request.producer_epoch < EPOCH_MAX:
        return InitProducerIdResponse(
            producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1
        )
    return node.next_producer_id(context.now_ms).map(
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    )
