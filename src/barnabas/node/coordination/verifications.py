"""Keeps the order of transactional batches whose verification failed, until they are sent again.

A producer may have several batches on their way. If the first is refused, because its partition is
not part of the transaction yet or the coordinator does not answer, the batches after it must not be
written before it: once the second is in the log, the first can never follow it. So a partition
remembers the lowest sequence that it tried to verify, and refuses later sequences as out of order
until that one is written (KAFKA-14920). From transaction version 2 on every transaction has its own
epoch, so the first batch of a producer that the partition does not know has sequence 0 (KIP-890).

        verified  answer                       then
    0   v11       not in the transaction       written when the producer sends it again
    1   v11       in the transaction           OUT_OF_ORDER_SEQUENCE_NUMBER, until 0 is written

This is not part of a partition's stored state: a new leader starts without it, as in Kafka.
"""

from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.records import BatchHeader
from barnabas.storage.producers import SEQUENCE_MASK, ProducerStates

PRODUCERS_MAX = 10_000
"""How many producers a partition remembers; the oldest entry is dropped first."""


class Verification(NamedTuple):
    """What a partition remembers of a producer whose batch it verifies."""

    epoch: int
    lowest_sequence: int
    starts_at_zero: bool
    """Whether every transaction of the producer has a new epoch (transaction version 2)."""
    since_ms: int


class Verifications:
    """The producers whose batches one partition verifies."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[int, Verification] = {}

    def note(
        self, header: BatchHeader, states: ProducerStates, now_ms: int, *, starts_at_zero: bool
    ) -> None:
        """Remember a batch that is to be verified, unless it is in the log or comes too late."""
        if header.producer_id < 0 or _is_behind(header, states):
            return
        producer_id, epoch = header.producer_id, header.producer_epoch
        asked = Verification(epoch, header.base_sequence, starts_at_zero, now_ms)
        known = self.by_id.get(producer_id)
        if known is not None and (
            known.epoch > epoch
            or (known.epoch == epoch and _follows(header, known.lowest_sequence))
        ):
            return
        if known is None and len(self.by_id) >= PRODUCERS_MAX:
            del self.by_id[next(iter(self.by_id))]
        self.by_id[producer_id] = asked

    def check(self, header: BatchHeader, states: ProducerStates) -> None:
        """Refuse a batch that would be written before one that it follows."""
        known = self.by_id.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            return
        sequence, lowest = header.base_sequence, known.lowest_sequence
        if known.starts_at_zero and sequence != 0 and header.producer_id not in states.by_id:
            lowest = 0
        elif not _follows(header, lowest):
            return
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {sequence}, and {lowest} comes first",
        )

    def forget(self, producer_id: int) -> None:
        """Drop a producer: its batch was written, or its transaction ended."""
        self.by_id.pop(producer_id, None)

    def expire(self, before_ms: int) -> None:
        """Drop producers that were remembered before a time and did not send the batch again."""
        silent = [each for each, asked in self.by_id.items() if asked.since_ms < before_ms]
        for producer_id in silent:
            del self.by_id[producer_id]


def _follows(header: BatchHeader, sequence: int) -> bool:
    """Tell whether a batch comes after a sequence; sequences wrap around to 0."""
    return 0 < (header.base_sequence - sequence) & SEQUENCE_MASK <= SEQUENCE_MASK // 2


def _is_behind(header: BatchHeader, states: ProducerStates) -> bool:
    """Tell whether the log already has a batch, or a later one of its producer."""
    producer = states.by_id.get(header.producer_id)
    if producer is None or not producer.batches or producer.epoch != header.producer_epoch:
        return False
    return not _follows(header, producer.last_sequence)
