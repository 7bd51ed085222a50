"""Runs one coordinator's state machine on the partition that holds its state.

An operation's records are appended as one batch and replayed; its response goes once they are
below the high watermark. Operations that only read wait for what was replayed before them:
nobody is shown what a power cut could take back.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from barnabas.effects import Effect, Notice
from barnabas.model.coordination import (
    CoordinatorRecord,
    Machine,
    Outcome,
    ProducerIdAndEpoch,
)
from barnabas.model.errors import ApiError, CorruptBatchError, StorageError
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer, Timers
from barnabas.node.partition import Partition
from barnabas.protocol.records import (
    TRANSACTIONAL,
    BatchHeader,
    batches,
    build_own,
    control_type,
    records,
    seal_own,
)
from barnabas.storage.log import Log

T = TypeVar("T")
M = TypeVar("M", bound=Machine)

READ_BYTES = 1 << 20
COMMIT = 1


class Shard(Generic[M]):
    """One partition's coordinator. It is the machine's `Scheduler`, too."""

    def __init__(
        self,
        partition: Partition,
        timers: Timers,
        outbox: list[Effect],
        make: Callable[["Shard[M]"], M],
    ) -> None:
        self.partition = partition
        self._timers = timers
        self._outbox = outbox
        self._scheduled: dict[str, Timer] = {}
        self.machine = make(self)
        self._load()

    @property
    def now_ms(self) -> int:
        """A clock that never jumps."""
        return self._timers.now_ms

    @property
    def wall_ms(self) -> int:
        """What the calendar says."""
        return self._timers.wall_ms

    def run(self, operation: Callable[[], Outcome[T]]) -> Pending[T]:
        """Carry out an operation; the answer comes once its records are committed.

        Raises the `ApiError` with which the machine or the disk refuses.
        """
        outcome = operation()
        if outcome.records:
            try:
                self._append(outcome)
            except ApiError as error:
                if outcome.refused is not None:
                    outcome.refused(error)
                raise
        answer: Pending[T] = Pending()
        self.partition.when_safe(self.partition.log.end_offset, lambda: _let_go(outcome, answer))
        return answer

    def append_prepared(self, body: bytes, count: int, replay: Callable[[], None]) -> int:
        """Write records whose bytes are there already, and have them replayed.

        Return what must be safe before anybody is told; raise `ApiError` where the disk refuses.
        """
        self.partition.append_own(seal_own(body, count, self._timers.wall_ms))
        replay()
        return self.partition.log.end_offset

    def run_quietly(self, operation: Callable[[], Outcome[None]]) -> None:
        """Carry out an operation that nobody waits for; where the disk refuses, say so."""
        try:
            self.run(operation)
        except ApiError as error:
            facts = {"partition": str(self.partition.name), "problem": error.message}
            self._outbox.append(Notice("error", "a coordinator could not store a change", facts))

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Run an operation later; an earlier one under the same name is forgotten."""
        self.cancel(name)

        def due() -> None:
            del self._scheduled[name]
            self.run_quietly(operation)

        self._scheduled[name] = self._timers.after(delay_ms, due)

    def cancel(self, name: str) -> None:
        """Forget an operation."""
        timer = self._scheduled.pop(name, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Forget everything that was to be done later: somebody else coordinates from here on."""
        for name in list(self._scheduled):
            self.cancel(name)

    def _append(self, outcome: Outcome[T]) -> None:
        producer = outcome.producer
        wall_ms = self._timers.wall_ms
        if producer is None:
            batch = build_own(outcome.records, wall_ms)
        else:
            batch = build_own(
                outcome.records,
                wall_ms,
                attributes=TRANSACTIONAL,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
            )
        self.partition.append_own(batch)
        for record in outcome.records:
            self.machine.replay(record, producer)

    def _load(self) -> None:
        for header, batch in _stored(self.partition.log):
            producer = None
            if header.is_transactional:
                producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
            if header.is_control:
                assert producer is not None
                committed = control_type(batch, header) == COMMIT
                self.machine.replay_marker(producer, committed=committed)
                continue
            for record in records(batch, header):
                stored = CoordinatorRecord(record.key or b"", record.value)
                try:
                    self.machine.replay(stored, producer)
                except CorruptBatchError as error:
                    facts = {"partition": str(self.partition.name), "offset": record.offset}
                    facts["problem"] = str(error)
                    event = "passed over a coordinator's record"
                    self._outbox.append(Notice("error", event, facts))
        self.machine.loaded()


def _let_go(outcome: Outcome[T], answer: Pending[T]) -> None:
    if outcome.committed is not None:
        outcome.committed()
    response = outcome.response
    if isinstance(response, Pending):
        response.when_done(answer.complete, answer.fail)
    else:
        answer.complete(response)


def _stored(log: Log) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield everything in a log, batch by batch."""
    offset = log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, READ_BYTES, log.end_offset, at_least_one=True)
        if found is None:
            raise StorageError(f"{log.folder} has no batch at offset {offset}")
        for header, batch in batches(found.file.read(found.position, found.length)):
            yield header, batch
            offset = header.last_offset + 1
