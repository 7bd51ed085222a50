"""A simulated idempotent producer: several batches in flight, each retried until it is
acknowledged.

Like the Java producer, it never changes the sequence of a batch. After an error or a lost
connection it sends all unacknowledged batches again, in the same order. It sends the first batch of
a producer id alone: the broker knows no sequence before it, and accepts any.
"""

from collections import deque
from typing import NamedTuple

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.sim.checks.ledger import Ledger, Sent
from barnabas.sim.clients.actor import Asking, Receive, Sleep, Talk
from barnabas.sim.clients.client_requests import BY_NAME, batch_of, produce_to
from barnabas.sim.clients.coordinated import CoordinatedClient
from barnabas.sim.host import START_MS
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError, World

RECORDS_MAX = 3
NO_TRANSACTION = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)


class Batch(NamedTuple):
    """The records of one batch."""

    sequence: int
    content: bytes
    records: list[Sent]


class IdempotentProducer(CoordinatedClient):
    """Writes to one partition."""

    def __init__(
        self, world: World, cluster: Cluster, name: str, ledger: Ledger, partition: TopicPartition
    ) -> None:
        super().__init__(world, cluster, name)
        self.ledger = ledger
        self.partition = partition
        self.answered = 0
        """How many batches were acknowledged."""
        self._depth = self.rng.choice((1, 2, 5))
        self.gap_ms = self.rng.choice((100, 300, 900))
        self._unanswered: deque[Batch] = deque()
        self._made = 0

    def life(self) -> Talk:
        """Write until the run ends, and then until all batches are acknowledged."""
        self._unanswered.clear()
        self._made = 0
        producer = yield from self._initialize()
        sequence = 0
        while not self.closing or self._unanswered:
            depth = self._depth if self.answered_in_life else 1
            while len(self._unanswered) < depth and not self.closing:
                batch = self._make(producer, sequence)
                sequence += len(batch.records)
                self._unanswered.append(batch)
            yield from self._deliver()
            yield Sleep(self.rng.randint(0, self.gap_ms))

    @property
    def answered_in_life(self) -> bool:
        """Whether any batch of this producer id was acknowledged."""
        return self._made > len(self._unanswered)

    def _initialize(self) -> Asking:
        while True:
            answer = yield from self.ask(NO_TRANSACTION)
            if answer is not None and answer.error_code == 0:
                return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
            yield from self.pause_before_retry()

    def _make(self, producer: ProducerIdAndEpoch, sequence: int) -> Batch:
        self._made += 1
        records = [
            self.ledger.send(self.life_name, sequence + n, self.partition)
            for n in range(self.rng.randint(1, RECORDS_MAX))
        ]
        values = [record.value for record in records]
        now_ms = START_MS + self.world.now_ms
        content = batch_of(values, producer, sequence, transactional=False, now_ms=now_ms)
        return Batch(sequence, content, records)

    def _deliver(self) -> Asking:
        """Send every unacknowledged batch, and handle the responses."""
        sending = list(self._unanswered)
        requests = [produce_to(self.partition, batch.content) for batch in sending]
        host = (yield from self.find_host(requests[0])) if requests else None
        sent = 0
        for request in requests:
            if host is None or not self.send(host, request, BY_NAME):
                break
            sent += 1
        failed = sent < len(sending)
        for number in range(sent):
            answer = yield Receive()
            self.routes.learn(requests[number], answer)
            if answer is None:
                failed = True
                break
            (result,) = answer.responses[0].partition_responses
            failed = self._take(sending[number], number, result, failed=failed)
        if failed:
            yield from self.pause_before_retry()

    def _take(self, batch: Batch, number: int, result: object, *, failed: bool) -> bool:
        """Handle one response; return whether any has failed so far."""
        code, offset = ErrorCode(result.error_code), result.base_offset  # type: ignore[attr-defined]
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER) and not failed:
            assert self._unanswered[0] is batch
            self._unanswered.popleft()
            self._acknowledge(batch, offset if code is ErrorCode.NONE else -1)
            return False
        if code is ErrorCode.NONE:
            return True  # the batch is sent again, and the broker must recognize the duplicate
        follows = failed or number > 0
        if self.is_retriable(code) or (follows and code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            return True
        raise InvariantError(
            f"{self.name} sent the next batch, sequence {batch.sequence}, and got {code.name}"
        )

    def _acknowledge(self, batch: Batch, offset: int) -> None:
        self.answered += 1
        for delta, record in enumerate(batch.records):
            record.acknowledged = True
            record.offset = offset + delta if offset >= 0 else -1
        self.world.note(self.name, f"has {batch.records[0].value} acknowledged at {offset}")
