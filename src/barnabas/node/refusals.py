"""Batches that a partition could not take at the moment, and what came on their heels.

An idempotent producer has several requests on their way. Where one is refused because the disk is
full or too few copies are in sync, those behind it do not follow on what the log has. Told so
(OUT_OF_ORDER_SEQUENCE_NUMBER), librdkafka takes its producer id for spent: it raises its epoch and
sends everything again under the new one, with what was written and not acknowledged yet, which
then is there twice. So what comes behind a refused batch is refused for the same reason, until that
batch comes again; or for a while, since a producer may have given it up. A new leader does not
know what the last one refused, and takes it for a while that there was something: librdkafka was
seen to send it the second of two batches first that the other had refused.
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
        """Hear that from now on others' refusals may be the reason."""
        self._leads_since_ms = now_ms

    def note(self, header: BatchHeader, code: ErrorCode, now_ms: int) -> None:
        """Remember a refused batch, unless it comes behind one."""
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
        """Return why a batch that does not follow was bound not to."""
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
