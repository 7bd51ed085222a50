"""DescribeTransactions (key 65), version 0.

Topics that the caller may not describe are left out.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import (
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    denied_among,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from barnabas.transactions.state import Transaction


def handle(
    node: Node, request: DescribeTransactionsRequest, context: RequestContext
) -> Pending[DescribeTransactionsResponse]:
    """Return the state of transactional ids."""
    names = list(dict.fromkeys(request.transactional_ids))
    denied = denied_among(node, context, DESCRIBE_TRANSACTIONAL_ID, names)
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    answers = [
        TransactionState(error_code=code, transactional_id=name)
        if name in denied
        else _describe(node, name)
        for name in names
    ]

    def answer(found: list[TransactionState]) -> DescribeTransactionsResponse:
        for state in found:
            state.topics = [
                t for t in state.topics if not is_hidden(node, context, DESCRIBE_TOPIC, t.topic)
            ]
        return DescribeTransactionsResponse(transaction_states=found)

    return all_of(answers).map(answer)


def _describe(node: Node, transactional_id: str) -> TransactionState | Pending[TransactionState]:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    answer = node.transactions.ask(
        transactional_id, lambda machine, _: machine.describe(transactional_id)
    )
    return answer.map(lambda result: _described(transactional_id, result))


def _described(transactional_id: str, result: Transaction | ErrorCode) -> TransactionState:
    if isinstance(result, ErrorCode):
        return TransactionState(error_code=result, transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=result.state.label,
        transaction_timeout_ms=result.timeout_ms,
        transaction_start_time_ms=result.started_ms,
        producer_id=result.producer_id,
        producer_epoch=result.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=partitions)
            for topic, partitions in result.by_topic.items()
        ],
    )
