"""Transactional batches that asked to be let into a partition, until one of their producer is in.

A producer may have several batches on their way. Where the first is refused, because its partition
is not part of the transaction yet or the coordinator cannot be asked, the ones behind it must not
be written before it: once the second is in the log, the first can never follow it. So the lowest
sequence that asked is remembered, and what comes behind it is out of order until it came again
(KAFKA-14920). From transaction version 2 on every transaction has an epoch of its own, so the first
batch of a producer that is not known here has sequence 0 (KIP-890).

        asks      answer                       then
    0   v11       not in the transaction       written when it comes again
    1   v11       in it by now                 OUT_OF_ORDER_SEQUENCE_NUMBER, until 0 is written

This is no part of a partition's stored state: another leader begins without it, as in Kafka.
"""

from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.records import BatchHeader
from barnabas.storage.producers import SEQUENCE_MASK, ProducerStates

PRODUCERS_MAX = 10_000
"""How many producers a partition remembers; the one that asked first is forgotten first."""


class Verification(NamedTuple):
    """What is known of a producer that asked to be let in."""

    epoch: int
    lowest_sequence: int
    starts_at_zero: bool
    """Whether it is of a transaction version in which every transaction has a new epoch."""
    since_ms: int


class Verifications:
    """Who asked to be let into one partition."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[int, Verification] = {}

    def note(
        self, header: BatchHeader, states: ProducerStates, now_ms: int, *, starts_at_zero: bool
    ) -> None:
        """Remember a batch that asks, unless it is in the log or comes too late for it."""
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
        """Hear that a batch of a producer was written, or the end of its transaction."""
        self.by_id.pop(producer_id, None)

    def expire(self, before_ms: int) -> None:
        """Forget who asked before a time and did not come again."""
        silent = [each for each, asked in self.by_id.items() if asked.since_ms < before_ms]
        for producer_id in silent:
            del self.by_id[producer_id]


def _follows(header: BatchHeader, sequence: int) -> bool:
    """Tell whether a batch comes after a sequence, which begins at 0 again after the highest."""
    return 0 < (header.base_sequence - sequence) & SEQUENCE_MASK <= SEQUENCE_MASK // 2


def _is_behind(header: BatchHeader, states: ProducerStates) -> bool:
    """Tell whether the log has a batch already, or a later one of its producer."""
    producer = states.by_id.get(header.producer_id)
    if producer is None or not producer.batches or producer.epoch != header.producer_epoch:
        return False
    return not _follows(header, producer.last_sequence)
