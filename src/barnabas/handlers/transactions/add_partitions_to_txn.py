"""AddPartitionsToTxn (key 24), versions 0 to 5.

Up to version 3 a producer adds partitions to its own transaction. From version 4 on other brokers
ask, for several transactions at once, to add partitions or only to verify that they are part of
one (KIP-890). If one partition does not exist, all partitions of its transaction fail.

The response to a producer waits up to a second for a transaction that is being completed. Kafka
answers CONCURRENT_TRANSACTIONS, and clients retry. Brokers are answered at once: many other
requests wait behind theirs.
"""

from collections.abc import Iterable

from barnabas.handlers.answers import all_of, within
from barnabas.handlers.authorization import (
    CLUSTER_ACTION,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    denied_among,
    is_denied,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.coordination import Outcome, ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.transactions.transaction_machine import TransactionMachine, Verified

SEVERAL_FROM = 4
KNOWS_FENCED_FROM = 2
PATIENCE_MS = 1000
OLD_CLIENTS, NEW_CLIENTS = 0, 2
"""Transaction versions: brokers ask to add partitions only for clients of version 2."""


def handle(
    node: Node, request: AddPartitionsToTxnRequest, context: RequestContext
) -> Pending[AddPartitionsToTxnResponse]:
    """Add or verify partitions, transaction by transaction."""
    if context.version >= SEVERAL_FROM:
        if is_denied(node, context, CLUSTER_ACTION):
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return Pending.of(AddPartitionsToTxnResponse(error_code=code))
        answers: list[AddPartitionsToTxnResult | Pending[AddPartitionsToTxnResult]] = [
            _answer_soon(node, transaction, context) for transaction in request.transactions
        ]
        return all_of(answers).map(
            lambda results: AddPartitionsToTxnResponse(results_by_transaction=results)
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    denied = _denied(node, only, context)
    answer = _answer(node, only, context) if denied is None else Pending.of(denied)
    return answer.map(
        lambda result: AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=result.topic_results
        )
    )


def _denied(
    node: Node, transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> AddPartitionsToTxnResult | None:
    """Return the answer to a producer that lacks a right; if one topic is denied, all fail."""
    name, partitions = transaction.transactional_id, _partitions(transaction)
    if is_denied(node, context, WRITE_TRANSACTIONAL_ID, name):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _result(name, dict.fromkeys(partitions, code))
    topics = (topic.name for topic in transaction.topics)
    denied = denied_among(node, context, WRITE_TOPIC, topics)
    if not denied:
        return None
    codes = {}
    for partition in partitions:
        if partition.topic in denied:
            codes[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif _exists(node, partition):
            codes[partition] = ErrorCode.OPERATION_NOT_ATTEMPTED
        else:
            codes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _result(name, codes)


def _answer_soon(
    node: Node, transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> Pending[AddPartitionsToTxnResult]:
    """Answer even if the coordinator's records take long to replicate."""

    def late() -> AddPartitionsToTxnResult:
        codes = dict.fromkeys(_partitions(transaction), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return _result(transaction.transactional_id, codes)

    return within(_answer(node, transaction, context), node.timers, PATIENCE_MS, late)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    ]


def _answer(
    node: Node, transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> Pending[AddPartitionsToTxnResult]:
    transactional_id = transaction.transactional_id
    partitions = _partitions(transaction)

    def respond(result: Verified | ErrorCode) -> AddPartitionsToTxnResult:
        if not isinstance(result, ErrorCode):
            return _result(transactional_id, result)
        if result is ErrorCode.PRODUCER_FENCED and context.version < KNOWS_FENCED_FROM:
            result = ErrorCode.INVALID_PRODUCER_EPOCH
        return _result(transactional_id, dict.fromkeys(partitions, result))

    return _ask(node, transaction, partitions, context).map(respond)


def _ask(
    node: Node,
    transaction: AddPartitionsToTxnTransaction,
    partitions: list[TopicPartition],
    context: RequestContext,
) -> Pending[Verified | ErrorCode]:
    transactional_id = transaction.transactional_id
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    version = NEW_CLIENTS if context.version >= SEVERAL_FROM else OLD_CLIENTS

    def operation(machine: TransactionMachine, _: int | None) -> Outcome[Verified]:
        if transaction.verify_only:
            return machine.verify(transactional_id, producer, partitions)
        return machine.add(transactional_id, producer, partitions, version)

    refused: Pending[Verified | ErrorCode] = Pending()
    absent = {partition for partition in partitions if not _exists(node, partition)}
    if absent:
        codes = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        refused.complete({partition: codes[partition in absent] for partition in partitions})
        return refused
    if not transactional_id:
        refused.complete(ErrorCode.INVALID_REQUEST)
        return refused
    waits = context.version < SEVERAL_FROM
    return node.transactions.ask(transactional_id, operation, waits=waits)


def _exists(node: Node, partition: TopicPartition) -> bool:
    topic = node.image.topics.get(partition.topic)
    return topic is not None and 0 <= partition.partition < len(topic.partitions)


def _result(transactional_id: str, codes: Verified) -> AddPartitionsToTxnResult:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        by_topic.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        )
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=_topic_results(by_topic.items())
    )


def _topic_results(
    by_topic: Iterable[tuple[str, list[AddPartitionsToTxnPartitionResult]]],
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in by_topic
    ]
