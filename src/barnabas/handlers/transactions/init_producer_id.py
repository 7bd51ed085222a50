"""InitProducerId (key 22), versions 0 to 5.

Without a transactional id every call gets a new id at epoch 0, as in Kafka, whatever the
producer had before. With one, older instances of the producer are fenced: the epoch is raised, and
a transaction that is open is aborted first. From version 3 on a producer that continues after an
error sends its id and epoch (KIP-360). Version 6 (two-phase commit) is not served.

The response waits up to a second for a transaction that is being completed. Kafka answers
CONCURRENT_TRANSACTIONS, and clients retry.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_PRODUCER_ID
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_EPOCH = -1
KNOWS_FENCED_FROM = 4

Answer = InitProducerIdResponse | Pending[InitProducerIdResponse]


def handle(node: Node, request: InitProducerIdRequest, context: RequestContext) -> Answer:
    """Assign a producer id, or the next epoch of a transactional id."""
    named = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if (named.producer_id == NO_PRODUCER_ID) != (named.producer_epoch == NO_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _fresh(node, context)
    if not request.transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    expected = None if named.producer_id == NO_PRODUCER_ID else named
    return _initialize(node, request.transactional_id, request, expected, context)


def _fresh(node: Node, context: RequestContext) -> Answer:
    try:
        fresh = node.next_producer_id(context.now_ms)
    except ApiError as error:
        return _refused(error.code)
    answer = fresh.map(
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    )
    return answer.or_refused(_refused)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_EPOCH)


def _initialize(
    node: Node,
    transactional_id: str,
    request: InitProducerIdRequest,
    expected: ProducerIdAndEpoch | None,
    context: RequestContext,
) -> Answer:
    answer = node.transactions.ask(
        transactional_id,
        lambda machine, spare_id: machine.initialize(
            transactional_id, request.transaction_timeout_ms, expected, spare_id
        ),
    )

    def respond(result: ProducerIdAndEpoch | ErrorCode) -> InitProducerIdResponse:
        if not isinstance(result, ErrorCode):
            producer_id, producer_epoch = result
            return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)
        if result is ErrorCode.PRODUCER_FENCED and context.version < KNOWS_FENCED_FROM:
            return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        return _refused(result)

    return answer.map(respond).or_refused(_refused)
