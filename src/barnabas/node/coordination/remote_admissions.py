"""Asks transaction coordinators on other brokers, about several transactions in one request.

One request at a time is on its way to a coordinator; questions that come meanwhile go together in
the next one (KIP-890's batched AddPartitionsToTxn). All answers share a connection, so a
coordinator never delays one: this broker asks again about a transaction that is ending, and when a
coordinator moves. Adding and verifying are idempotent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.coordination.admissions import Admit
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

Codes = dict[TopicPartition, ErrorCode]

LANE = "coordination"
RETRY_MS = 5
RETRY_MAX_MS = 100
PATIENCE_MS = 1000

ASKED_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass(slots=True)
class Question:
    """Whether a producer may write to partitions in its transaction."""

    transaction: AddPartitionsToTxnTransaction
    partitions: Sequence[TopicPartition]
    deadline_ms: int
    answer: Pending[Codes] = field(default_factory=Pending)
    delay_ms: int = RETRY_MS
    """How long to wait before it is asked again."""


class RemoteAdmissions:
    """The questions to other brokers."""

    def __init__(
        self,
        me: NodeId,
        broker_for: Callable[[str], NodeId],
        admit: Admit,
        peers: BrokerRequests,
        timers: Timers,
    ) -> None:
        self._me = me
        self._broker_for = broker_for
        self._admit = admit
        self._peers = peers
        self._timers = timers
        self._queues: dict[NodeId, list[Question]] = {}
        """The questions of the next request, for each broker that has not answered the last one."""

    def ask(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[Codes]:
        """Answer an error code, 0 for none, for each partition."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=not adds,
            topics=_by_topic(partitions),
        )
        deadline_ms = self._timers.now_ms + PATIENCE_MS
        question = Question(transaction, partitions, deadline_ms)
        self._ask(question)
        return question.answer

    def _ask(self, question: Question) -> None:
        try:
            broker = self._broker_for(question.transaction.transactional_id)
        except ApiError as error:
            self._take(question, dict.fromkeys(question.partitions, error.code))
            return
        queue = self._queues.get(broker)
        if broker == self._me:
            self._ask_here(question)
        elif queue is None:
            self._queues[broker] = []
            self._send(broker, [question])
        else:
            queue.append(question)

    def _ask_here(self, question: Question) -> None:
        """Ask a coordinator that has moved to this broker."""
        asked = question.transaction
        producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
        self._admit(
            asked.transactional_id, producer, question.partitions, adds=not asked.verify_only
        ).when_done(question.answer.complete, question.answer.fail)

    def _send(self, broker: NodeId, questions: list[Question]) -> None:
        def received(response: AddPartitionsToTxnResponse) -> None:
            for question, result in zip(questions, response.results_by_transaction, strict=False):
                self._take(question, _codes(question, result))
            answered = len(response.results_by_transaction)
            self._fail(questions[answered:])
            self._send_next(broker)

        def lost(_: Exception) -> None:
            self._fail(questions)
            self._send_next(broker)

        request = AddPartitionsToTxnRequest(transactions=[q.transaction for q in questions])
        self._peers.ask(broker, request, lane=LANE).when_done(received, lost)

    def _send_next(self, broker: NodeId) -> None:
        waiting = self._queues.pop(broker, [])
        if waiting:
            self._queues[broker] = []
            self._send(broker, waiting)

    def _fail(self, questions: Sequence[Question]) -> None:
        for question in questions:
            codes = dict.fromkeys(question.partitions, ErrorCode.NETWORK_EXCEPTION)
            self._take(question, codes)

    def _take(self, question: Question, codes: Codes) -> None:
        """Answer, or ask again if the error may pass before the deadline."""
        timers = self._timers
        trouble = any(code in ASKED_AGAIN for code in codes.values())
        if trouble and timers.now_ms + question.delay_ms <= question.deadline_ms:
            timers.after(question.delay_ms, lambda: self._ask(question))
            question.delay_ms = min(2 * question.delay_ms, RETRY_MAX_MS)
        else:
            question.answer.complete(codes)


def _by_topic(partitions: Sequence[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, number in partitions:
        topic = topics.setdefault(name, AddPartitionsToTxnTopic(name=name))
        topic.partitions.append(number)
    return list(topics.values())


def _codes(question: Question, result: AddPartitionsToTxnResult) -> Codes:
    """Return the coordinator's error code for each partition."""
    answered = {
        TopicPartition(topic.name, part.partition_index): ErrorCode(part.partition_error_code)
        for topic in result.topic_results
        for part in topic.results_by_partition
    }
    # The coordinator does not know another partition yet; this one is worth asking for again.
    not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
    codes = {place: answered.get(place, not_tried) for place in question.partitions}
    return {
        place: ErrorCode.COORDINATOR_NOT_AVAILABLE if code is not_tried else code
        for place, code in codes.items()
    }
