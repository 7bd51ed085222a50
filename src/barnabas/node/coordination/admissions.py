"""Batches that wait until the coordinator admits them to a transaction, in each producer's order.

A producer may send the next batch for a partition before the first one was admitted. The broker
does not ask the coordinator again: the batch waits behind the first, shares its answer, and is
written after it. If the transaction has ended since, the batch belongs to the next transaction, and
the broker asks for it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.endings import Endings, Watch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending

Decided = Callable[[ErrorCode], None]
"""Called with the coordinator's answer for a batch: NONE admits it."""

Writer = tuple[TopicPartition, int]
"""A partition, and the id of a producer that writes to it."""


class Admit(Protocol):
    """Asks the coordinator (see `Transactions.admit`)."""

    def __call__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[dict[TopicPartition, ErrorCode]]:
        """Answer for each partition whether it is part of the transaction."""


class Entrance(NamedTuple):
    """A producer's request to write to a partition; `adds` adds it to the transaction."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    adds: bool
    partition: TopicPartition


class Queue:
    """The batches that wait for the same answer."""

    __slots__ = ("entrance", "waiting", "watch")

    def __init__(self, entrance: Entrance, watch: Watch[Writer]) -> None:
        self.entrance = entrance
        self.watch = watch
        self.waiting: list[Decided] = []


class Admissions:
    """All batches that wait."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._queues: dict[Entrance, Queue] = {}
        self._endings: Endings[Writer] = Endings()

    def enter(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        batches: Sequence[tuple[TopicPartition, Decided]],
        *,
        adds: bool,
    ) -> None:
        """Call the actions, in order, once the coordinator has decided about their batches."""
        asked: dict[TopicPartition, Queue] = {}
        for partition, decided in batches:
            entrance = Entrance(transactional_id, producer, adds, partition)
            queue = self._queues.get(entrance)
            if queue is None or queue.watch.ended:
                queue = asked[partition] = self._open(entrance)
            queue.waiting.append(decided)
        if not asked:
            return

        def tell(codes: dict[TopicPartition, ErrorCode]) -> None:
            for partition, queue in asked.items():
                self._decide(queue, codes[partition])

        def fail(_: Exception) -> None:
            tell(dict.fromkeys(asked, ErrorCode.UNKNOWN_SERVER_ERROR))

        self._admit(transactional_id, producer, list(asked), adds=adds).when_done(tell, fail)

    def ended(self, partition: TopicPartition, last: ProducerIdAndEpoch) -> None:
        """Record a marker: a batch that was admitted before it comes too late."""
        self._endings.ended((partition, last.producer_id), last.producer_epoch)

    def _open(self, entrance: Entrance) -> Queue:
        producer_id, epoch = entrance.producer
        watch = self._endings.watch((entrance.partition, producer_id), epoch)
        queue = self._queues[entrance] = Queue(entrance, watch)
        return queue

    def _decide(self, queue: Queue, code: ErrorCode) -> None:
        if self._queues.get(queue.entrance) is queue:
            del self._queues[queue.entrance]
        self._endings.release(queue.watch)
        if code is ErrorCode.NONE and queue.watch.ended:
            code = ErrorCode.INVALID_TXN_STATE
        for decided in queue.waiting:
            decided(code)
