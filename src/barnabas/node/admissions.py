"""Batches that wait to be let into a transaction, each producer's in order.

A producer may send the next batch for a partition before the first was admitted. It is not asked
for again then: it waits behind the first, shares its answer, and is written after it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending

Decided = Callable[[ErrorCode], None]
"""What to do with a batch once it is known whether it may enter; 0 is yes."""


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


class Admissions:
    """Every batch that waits."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._queues: dict[Entrance, list[Decided]] = {}

    def enter(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        batches: Sequence[tuple[TopicPartition, Decided]],
        *,
        adds: bool,
    ) -> None:
        """Have actions called, in order, once it is known whether their batches may enter."""
        asked: list[TopicPartition] = []
        for partition, decided in batches:
            entrance = Entrance(transactional_id, producer, adds, partition)
            queue = self._queues.setdefault(entrance, [])
            if not queue:
                asked.append(partition)
            queue.append(decided)
        if not asked:
            return

        def tell(codes: dict[TopicPartition, ErrorCode]) -> None:
            for partition in asked:
                entrance = Entrance(transactional_id, producer, adds, partition)
                for decided in self._queues.pop(entrance):
                    decided(codes[partition])

        def fail(_: Exception) -> None:
            tell(dict.fromkeys(asked, ErrorCode.UNKNOWN_SERVER_ERROR))

        self._admit(transactional_id, producer, asked, adds=adds).when_done(tell, fail)
