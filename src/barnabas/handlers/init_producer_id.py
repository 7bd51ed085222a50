"""InitProducerId (key 22), versions 0 to 5, for idempotent producers.

Without a transactional id every call gets an id of its own at epoch 0, as in Kafka, whatever the
producer had before. Transactional ids are refused until there are transactions.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give out an id that was never given out before."""
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        fresh = node.next_producer_id(context.now_ms)
    except ApiError as error:
        return InitProducerIdResponse(error_code=error.code)
    return fresh.map(
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    )
