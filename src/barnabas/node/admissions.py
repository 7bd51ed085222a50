"""Batches that wait to be let into a transaction, each producer's in order.

A producer may send the next batch for a partition before the first was admitted. It is not asked
for again then: it waits behind the first, shares its answer, and is written after it. Unless the
transaction has ended since: then it belongs to the next one, for which nobody has asked yet.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.endings import Endings, Watch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending

Decided = Callable[[ErrorCode], None]
"""What to do with a batch once it is known whether it may enter; 0 is yes."""

Writer = tuple[TopicPartition, int]
"""A producer's id, and where it writes."""


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
    """Who wants to write where; with `adds`, the partition becomes part of the transaction."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    adds: bool
    partition: TopicPartition


class Queue:
    """Those who wait for the same answer."""

    __slots__ = ("entrance", "waiting", "watch")

    def __init__(self, entrance: Entrance, watch: Watch[Writer]) -> None:
        self.entrance = entrance
        self.watch = watch
        self.waiting: list[Decided] = []


class Admissions:
    """Every batch that waits."""

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
        """Have actions called, in order, once it is known whether their batches may enter."""
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
        """Hear that a marker was written: who was let in before it comes too late."""
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
