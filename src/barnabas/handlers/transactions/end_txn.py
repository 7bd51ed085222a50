"""EndTxn (key 26), versions 0 to 5.

The response is sent once the outcome is committed; the markers follow. Version 5 is transaction
version 2 (KIP-890): each end raises the epoch, or assigns a new producer id if the epochs are used
up, and the response has what the producer must use from then on.

A repeated request waits up to a second for the markers. Kafka answers CONCURRENT_TRANSACTIONS, and
clients retry.
"""

from barnabas.handlers.authorization import WRITE_TRANSACTIONAL_ID, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

KNOWS_FENCED_FROM = 2
RAISES_EPOCH_FROM = 5
OLD_CLIENTS, NEW_CLIENTS = 0, 2
"""Transaction versions."""


def handle(
    node: Node, request: EndTxnRequest, context: RequestContext
) -> EndTxnResponse | Pending[EndTxnResponse]:
    """Commit or abort."""
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    if is_denied(node, context, WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    raises_epoch = context.version >= RAISES_EPOCH_FROM
    answer = node.transactions.ask(
        request.transactional_id,
        lambda machine, spare_id: machine.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
            version=NEW_CLIENTS if raises_epoch else OLD_CLIENTS,
            spare_id=spare_id,
        ),
    )

    def respond(result: ProducerIdAndEpoch | ErrorCode) -> EndTxnResponse:
        if not isinstance(result, ErrorCode):
            producer_id, producer_epoch = result
            return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)
        if result is ErrorCode.PRODUCER_FENCED and context.version < KNOWS_FENCED_FROM:
            return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
        return EndTxnResponse(error_code=result)

    return answer.map(respond)
