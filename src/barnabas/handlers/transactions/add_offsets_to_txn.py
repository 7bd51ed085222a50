"""AddOffsetsToTxn (key 25), versions 0 to 4.

Makes the partition that holds a group's offsets part of a producer's transaction, so that it gets
a marker. Producers of transaction version 2 do not call it: TxnOffsetCommit adds the partition.
"""

from barnabas.handlers.authorization import READ_GROUP, WRITE_TRANSACTIONAL_ID, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.transactions.transaction_machine import Verified

KNOWS_FENCED_FROM = 2
TRANSACTION_VERSION = 0


def handle(
    node: Node, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Pending[AddOffsetsToTxnResponse]:
    """Add the group's partition."""
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    if is_denied(node, context, WRITE_TRANSACTIONAL_ID, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return AddOffsetsToTxnResponse(error_code=code)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = node.coordinators.groups
    partition = TopicPartition(groups.topic, groups.partition_for(request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    answer = node.transactions.ask(
        request.transactional_id,
        lambda machine, _: machine.add(
            request.transactional_id, producer, [partition], TRANSACTION_VERSION
        ),
    )

    def respond(result: Verified | ErrorCode) -> AddOffsetsToTxnResponse:
        if not isinstance(result, ErrorCode):
            return AddOffsetsToTxnResponse()
        if result is ErrorCode.PRODUCER_FENCED and context.version < KNOWS_FENCED_FROM:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
        return AddOffsetsToTxnResponse(error_code=result)

    return answer.map(respond)
