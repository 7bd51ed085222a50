"""The producer state of a partition: last batches for deduplication, and open transactions.

For each producer id: its epoch and its last five batches. A batch that repeats one of those is
answered with the offset it got the first time; one that does not follow the last is refused
(KIP-98). A transactional batch opens a transaction if the producer has none, and a marker ends it.
A marker of transaction version 2 raises the producer's epoch by one (KIP-890), so that late batches
from before the marker are refused.

      begins here           others' records            ends here
    [ batch of 7 ] [ batch of 8 ] [ ... ] [ batch of 7 ] [ marker of 7 ]
    |
    unstable from here on, until the marker is below the high watermark

The state is a function of the log: a snapshot at an offset plus the batches after it. Unlike
Kafka's, our snapshots keep all five batches, so that a retry after a restart finds its first offset
for any of the five.
"""

from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ports import Buffer
from barnabas.protocol.markers import ABORT, COMMIT, EndMarker, parse_marker
from barnabas.protocol.records import CONTROL, IN_TRANSACTION, TRANSACTIONAL, BatchHeader
from barnabas.storage.aborted import Aborted

WINDOW = 5
SEQUENCE_MASK = 0x7FFFFFFF
RAISES_EPOCH_FROM = 2
"""The transaction version whose markers have a raised epoch."""
NONE = -1
NOTHING_UNSTABLE = (1 << 63) - 1


class SentBatch(NamedTuple):
    """A batch in the log: its sequences and its offsets."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int


class Ended(NamedTuple):
    """A transaction whose marker may not be committed yet."""

    first_offset: int
    last_offset: int


class Producer:
    """One producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "transaction_began_ms",
        "transaction_start",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[SentBatch] = []
        self.last_timestamp = NONE
        self.transaction_start = NONE
        self.transaction_began_ms = NONE
        """The time of the first batch of its transaction, where this process has seen that."""
        self.coordinator_epoch = NONE
        """The epoch of the coordinator that wrote the last marker."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record in this epoch, if there is any."""
        return self.batches[-1].last_sequence if self.batches else NONE


class ProducerStates:
    """Every producer a partition knows."""

    def __init__(self, by_id: dict[int, Producer] | None = None) -> None:
        self.by_id: dict[int, Producer] = by_id or {}
        began = sorted((p.transaction_start, i) for i, p in self.by_id.items())
        # The first offsets of open transactions by producer, ascending.
        self._open = {producer_id: start for start, producer_id in began if start >= 0}
        self.first_unstable = self._first_open(NOTHING_UNSTABLE)
        """Where the first transaction begins that is open, or ended by an uncommitted marker."""
        self.ended: list[Ended] = []
        """Transactions that ended, until their markers are below the high watermark."""

    def check(self, header: BatchHeader) -> SentBatch | None:
        """Return the earlier batch that this one repeats; raise if its sequence does not follow."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return None  # no batch is remembered: any sequence is accepted
        if header.producer_epoch != producer.epoch:
            _check_new_epoch(producer, header)
        else:
            first, last = header.base_sequence, header.last_sequence
            batches = producer.batches
            for sent in batches:
                if sent.first_sequence == first and sent.last_sequence == last:
                    return sent
            if first != ((batches[-1].last_sequence + 1) & SEQUENCE_MASK if batches else 0):
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} sent sequence {first} after "
                    f"{producer.last_sequence}",
                )
        if producer.transaction_start >= 0 and not header.attributes & TRANSACTIONAL:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} is in a transaction, and this batch is not",
            )
        return None

    def is_early(self, header: BatchHeader) -> bool:
        """Whether a batch arrives before one that it follows, and is not a repeated or late one."""
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return False
        ahead = (header.base_sequence - producer.last_sequence) & SEQUENCE_MASK
        return 1 < ahead <= SEQUENCE_MASK // 2

    def check_epoch(self, header: BatchHeader) -> None:
        """Refuse a batch that a producer sent before its epoch was raised."""
        producer = self.by_id.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            raise _outdated(producer, header)

    def check_marker(self, header: BatchHeader, marker: EndMarker, version: int) -> None:
        """Refuse a late marker, or one from a former coordinator.

        A marker of version 2 never ends a transaction of its own epoch. If no transaction is open
        it may be written again, since its coordinator cannot know that it was written
        (KAFKA-19999).
        """
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return
        self.check_epoch(header)
        in_transaction = producer.transaction_start >= 0
        same_epoch = header.producer_epoch == producer.epoch
        if version >= RAISES_EPOCH_FROM and same_epoch and in_transaction:
            raise _outdated(producer, header)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {producer.coordinator_epoch} has written since, "
                f"not {marker.coordinator_epoch}",
            )

    def record(self, header: BatchHeader, first_offset: int) -> None:
        """Record a batch outside of transactions that was appended to the log."""
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._enter(header)
        last_offset = first_offset + header.last_offset_delta
        batches = producer.batches
        batches.append(
            SentBatch(header.base_sequence, header.last_sequence, first_offset, last_offset)
        )
        if len(batches) > WINDOW:
            del batches[0]
        producer.last_timestamp = header.max_timestamp

    def follow(self, header: BatchHeader, offset: int, batch: Buffer) -> Aborted | None:
        """Record any batch that was appended; return the transaction that it aborts.

        The whole batch is read only if it is a marker.
        """
        if not header.attributes & IN_TRANSACTION:
            self.record(header, offset)
        elif header.attributes & CONTROL:
            return self._end(header, offset, parse_marker(batch, header))
        else:
            self._record_in_transaction(header, offset)
        return None

    def settle(self, high_watermark: int) -> None:
        """Forget ended transactions whose markers are committed now."""
        self.ended = [ended for ended in self.ended if ended.last_offset >= high_watermark]
        starts = [ended.first_offset for ended in self.ended]
        self.first_unstable = min([self._first_open(NOTHING_UNSTABLE), *starts])

    def open_transaction(self, producer_id: int) -> int | None:
        """Return the first offset of a producer's open transaction, if it has one here."""
        producer = self.by_id.get(producer_id)
        if producer is None or producer.transaction_start < 0:
            return None
        return producer.transaction_start

    def epoch_of(self, producer_id: int) -> int | None:
        """Return the last known epoch of a producer, if it is remembered."""
        producer = self.by_id.get(producer_id)
        return None if producer is None else producer.epoch

    def open_transactions(self) -> dict[int, int]:
        """Return where each open transaction began, by producer."""
        return dict(self._open)

    def oldest_open_ms(self) -> int | None:
        """Return the time of the first batch of the oldest open transaction; None without one.

        After a restart that is not known, and the time of its last batch stands for it.
        """
        oldest = next(iter(self._open), None)
        if oldest is None:
            return None
        producer = self.by_id[oldest]
        known_ms = producer.transaction_began_ms
        return known_ms if known_ms >= 0 else producer.last_timestamp

    def forget_transaction(self, producer_id: int) -> None:
        """Forget an open transaction: it was not open."""
        self.by_id[producer_id].transaction_start = NONE
        del self._open[producer_id]

    def expire(self, before_ms: int) -> None:
        """Forget producers without an open transaction that last wrote before a time."""
        silent = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.last_timestamp < before_ms and producer.transaction_start < 0
        ]
        for producer_id in silent:
            del self.by_id[producer_id]

    def _enter(self, header: BatchHeader) -> Producer:
        """Return the producer with the epoch of a batch, without batches if the epoch is new."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches = []
        return producer

    def _record_in_transaction(self, header: BatchHeader, offset: int) -> None:
        if header.base_sequence >= 0:
            self.record(header, offset)
        producer = self._enter(header)  # coordinators write without sequences
        producer.last_timestamp = header.max_timestamp
        if producer.transaction_start < 0:
            producer.transaction_start = self._open[header.producer_id] = offset
            producer.transaction_began_ms = header.max_timestamp
            self.first_unstable = min(self.first_unstable, offset)

    def _end(self, header: BatchHeader, offset: int, marker: EndMarker) -> Aborted | None:
        if marker.kind not in (ABORT, COMMIT):
            return None
        producer = self._enter(header)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.transaction_start = NONE
        first_offset = self._open.pop(header.producer_id, None)
        if first_offset is None:
            return None
        self.ended.append(Ended(first_offset, offset))
        if marker.kind == COMMIT:
            return None
        return Aborted(header.producer_id, first_offset, offset, self._first_open(offset + 1))

    def _first_open(self, otherwise: int) -> int:
        return next(iter(self._open.values()), otherwise)


def _check_new_epoch(producer: Producer, header: BatchHeader) -> None:
    if header.producer_epoch < producer.epoch:
        raise _outdated(producer, header)
    if header.base_sequence != 0:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"epoch {header.producer_epoch} of producer {header.producer_id} must start "
            f"at sequence 0, not {header.base_sequence}",
        )


def _outdated(producer: Producer, header: BatchHeader) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} has epoch {producer.epoch} by now, "
        f"not {header.producer_epoch}",
    )
