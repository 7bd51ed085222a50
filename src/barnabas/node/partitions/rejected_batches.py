"""Batches that a partition refused for now, and the batches that follow them.

An idempotent producer has several requests in flight. If one is refused because the disk is full or
too few replicas are in sync, the sequences of those behind it do not follow the log. On
OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka raises its epoch and sends everything again under the new
one, including batches that were written and not acknowledged yet, which are then in the log twice.
So a batch behind a refused one is refused with the same error until the refused one comes again, or
for a while, since the producer may have dropped it. A new leader does not know what the previous
one refused, and assumes for a while that it refused something: librdkafka may send the new leader
the second of two refused batches first.
"""

from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.records import BatchHeader
from barnabas.storage.producers import SEQUENCE_MASK

REMEMBERED_MS = 30_000


class Refusal(NamedTuple):
    """The first batch of a producer that was refused."""

    epoch: int
    sequence: int
    code: ErrorCode
    until_ms: int


class Refusals:
    """What one partition refused, by producer."""

    __slots__ = ("_leads_since_ms", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[int, Refusal] = {}
        self._leads_since_ms = -REMEMBERED_MS

    def took_lead(self, now_ms: int) -> None:
        """Assume for a while that the previous leader refused the batches that are missing."""
        self._leads_since_ms = now_ms

    def note(self, header: BatchHeader, code: ErrorCode, now_ms: int) -> None:
        """Remember a refused batch, unless it follows one."""
        if header.producer_id < 0:
            return
        known = self.by_id.get(header.producer_id)
        if known is None or not self._behind(header, known, now_ms):
            self.by_id[header.producer_id] = Refusal(
                header.producer_epoch, header.base_sequence, code, now_ms + REMEMBERED_MS
            )

    def written(self, header: BatchHeader) -> None:
        """Forget the refused batch of a producer, unless the one that was written came before it.

        That one may have waited in line when the other was refused.
        """
        known = self.by_id.get(header.producer_id)
        if known is None:
            return
        ahead = (known.sequence - header.base_sequence) & SEQUENCE_MASK
        if known.epoch != header.producer_epoch or not 0 < ahead <= SEQUENCE_MASK // 2:
            del self.by_id[header.producer_id]

    def reason(self, header: BatchHeader, now_ms: int) -> ErrorCode | None:
        """Return the error of the refused batch that explains a gap in sequences, if any."""
        known = self.by_id.get(header.producer_id)
        if known is not None and self._behind(header, known, now_ms):
            return known.code
        if 0 <= now_ms - self._leads_since_ms < REMEMBERED_MS:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return None

    @staticmethod
    def _behind(header: BatchHeader, known: Refusal, now_ms: int) -> bool:
        same = header.producer_epoch == known.epoch and header.base_sequence != known.sequence
        return same and now_ms < known.until_ms
