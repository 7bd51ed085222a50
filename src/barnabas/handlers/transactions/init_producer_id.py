"""InitProducerId (key 22), versions 0 to 5.

Without a transactional id every call gets a new id at epoch 0, as in Kafka, even if the producer
sends an id. With one, older instances of the producer are fenced: an open transaction is aborted,
and the epoch is raised. From version 3 on a producer that continues after an error sends its id and
epoch (KIP-360). Version 6 (two-phase commit) is not served.

The response waits up to a second for a transaction that is being completed. Kafka answers
CONCURRENT_TRANSACTIONS, and clients retry.
"""

from barnabas.handlers.authorization import (
    IDEMPOTENT_WRITE_CLUSTER,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    is_denied,
    is_hidden,
    note_denial,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_PRODUCER_ID
from barnabas.model.pending import Pending
from barnabas.model.permissions import CLUSTER_NAME
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
    denied = _denied(node, request, context)
    if denied is not None:
        return _refused(denied)
    named = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if (named.producer_id == NO_PRODUCER_ID) != (named.producer_epoch == NO_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _fresh(node, context)
    if not request.transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    expected = None if named.producer_id == NO_PRODUCER_ID else named
    return _initialize(node, request.transactional_id, request, expected, context)


def _denied(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> ErrorCode | None:
    """Return the error for a producer without any of the sufficient rights (KIP-679)."""
    if request.transactional_id is not None:
        if is_denied(node, context, WRITE_TRANSACTIONAL_ID, request.transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return None
    authorizer = node.authorizer
    if authorizer is None or not is_hidden(node, context, IDEMPOTENT_WRITE_CLUSTER):
        return None
    if authorizer.allows_on_any(context.caller, WRITE_TOPIC):
        return None
    note_denial(node, context, IDEMPOTENT_WRITE_CLUSTER, CLUSTER_NAME)
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


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
