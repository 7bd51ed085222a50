"""Queues, one for each partition, of batches whose records take long to check before an append.

Nearly every batch is checked and appended within its event. One with very many records is checked
in steps, and batches for the same partition wait behind it, so that they are appended in the order
in which they arrived: idempotent producers rely on that. The bytes that wait are copied, since the
next request overwrites the buffer in which the batch was received.

If the transaction of a batch ends while it waits, the batch is too late and is refused.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.effects import Effect, Notice, Scan
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.steps import Steps
from barnabas.node.partitions.batch_validation import check_shape, checking
from barnabas.protocol.records import BatchHeader

if TYPE_CHECKING:
    from barnabas.node.partitions.partition import Partition

LANE = "checks of batches"
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""The limit of bytes in all queues together. A single batch may always wait."""

Outcome = memoryview | ApiError
"""The batch to append, or why it is refused."""


class Waiting:
    """One batch in a queue."""

    __slots__ = ("ended", "header", "now_ms", "proceed", "records")

    def __init__(
        self,
        records: memoryview,
        header: BatchHeader,
        now_ms: int,
        proceed: Callable[[Outcome], None],
    ) -> None:
        self.records = records
        self.header = header
        self.now_ms = now_ms
        self.proceed = proceed
        self.ended = False
        """Whether its producer's transaction has ended since it came."""


class CheckQueue:
    """The batches that wait for one partition, beginning with the one that is being checked."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()

    def ended(self, producer_id: int) -> None:
        """Record that a producer's transaction has ended: its batches in the queue are too late."""
        for each in self.waiting:
            if each.header.is_transactional and each.header.producer_id == producer_id:
                each.ended = True


class Checks:
    """The checks that are in progress for one partition."""

    __slots__ = ("outbox", "queue", "stored")

    def __init__(self, outbox: list[Effect]) -> None:
        self.outbox = outbox
        self.queue: CheckQueue | None = None
        """The batches that wait to be checked, if there are any."""
        self.stored = False
        """Whether stored records are being checked, for fetches that wait (`log_reading.py`)."""

    def transaction_ended(self, producer_id: int) -> None:
        """Record that a producer's transaction has ended."""
        if self.queue is not None:
            self.queue.ended(producer_id)


class Checking:
    """The queues of all partitions."""

    def __init__(self, outbox: list[Effect]) -> None:
        self._outbox = outbox
        self.waiting_bytes = 0

    def has_room(self, size: int) -> bool:
        """Tell whether a batch may wait."""
        return not self.waiting_bytes or self.waiting_bytes + size <= WAITING_BYTES_MAX

    def enter(self, partition: "Partition", client: str, batch: Waiting) -> None:
        """Put a batch into its partition's queue; `proceed` gets the outcome in its turn."""
        self.waiting_bytes += len(batch.records)
        if partition.checks.queue is not None:
            partition.checks.queue.waiting.append(batch)
            return
        partition.checks.queue = CheckQueue()
        partition.checks.queue.waiting.append(batch)
        steps = self._work_off(partition, partition.checks.queue)
        self._outbox.append(Scan(LANE, client, steps))

    def _work_off(self, partition: "Partition", queue: CheckQueue) -> Steps[None]:
        waiting = queue.waiting
        while True:
            batch = waiting[0]
            outcome = yield from self._outcome(partition, batch)
            waiting.popleft()
            self.waiting_bytes -= len(batch.records)
            if not waiting:
                partition.checks.queue = None
            self._proceed(partition, batch, outcome)
            if not waiting:
                return
            yield None

    def _outcome(self, partition: "Partition", batch: Waiting) -> Steps[Outcome]:
        records, header, config = batch.records, batch.header, partition.config
        try:
            check_shape(records, header, config)
            if not _is_retry(
                partition, header
            ):  # else it is a retry, which need not be checked again
                records = yield from checking(records, header, config, batch.now_ms)
        except ApiError as error:
            return error
        except Exception as error:  # noqa: BLE001 - the batches behind it must not wait forever
            self._report(partition, error)
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if batch.ended:
            return ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended meanwhile")
        return records

    def _proceed(self, partition: "Partition", batch: Waiting, outcome: Outcome) -> None:
        try:
            batch.proceed(outcome)
        except Exception as error:  # noqa: BLE001 - as above
            self._report(partition, error)

    def _report(self, partition: "Partition", error: Exception) -> None:
        facts = {"partition": str(partition.name), "problem": repr(error)}
        self._outbox.append(Notice("error", "checking a batch failed", facts))


def _is_retry(partition: "Partition", header: BatchHeader) -> bool:
    """Tell whether a batch was appended before."""
    try:
        return header.producer_id >= 0 and partition.log.producers.check(header) is not None
    except ApiError:
        return False
