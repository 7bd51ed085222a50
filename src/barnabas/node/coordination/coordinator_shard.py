"""Runs one coordinator's state machine on the partition that holds its state.

The shard appends the records of an operation as one batch and replays them; it sends the response
once they are below the high watermark. Operations that only read wait for everything that was
replayed before them, so that no client sees what a power cut could undo.

A shard lasts for one leader epoch of its partition. It first reads the stored state, in pieces, and
refuses requests with COORDINATOR_LOAD_IN_PROGRESS until it has read everything. It ends when
another broker leads the partition, or this one in another epoch: waiting requests fail with
NOT_COORDINATOR, and the machine is discarded, with everything it replayed that was not committed.

    loading --- load ---> open --- close ---> closed
       `---------------- close --------------^
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.effects import Effect, Notice
from barnabas.model.coordination import Machine, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer, Timers
from barnabas.node.coordination import coordinator_loading as loading
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.records import TRANSACTIONAL, build_own, seal_own

T = TypeVar("T")
M = TypeVar("M", bound=Machine)

ANSWERS_KEPT_MIN = 64
PATIENCE_MS = 5000
"""How long followers may take to replicate a coordinator's records, as in Kafka."""
LATE = "late"

COORDINATOR_CODES = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The coordinator's error code for an error code of its partition."""


class Uncommitted(NamedTuple):
    """A response that waits until an offset is committed, and its deadline."""

    deadline_ms: int
    offset: int
    answer: Pending[Any]


class Shard(Generic[M]):
    """One partition's coordinator. It is also the machine's `Scheduler`."""

    def __init__(
        self,
        partition: Partition,
        timers: Timers,
        outbox: list[Effect],
        make: Callable[["Shard[M]"], M],
        *,
        load: bool = True,
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        """The only leader epoch in which this shard may act."""
        self._timers = timers
        self._outbox = outbox
        self._scheduled: dict[str, Timer] = {}
        self._answers: list[Pending[Any]] = []
        self._answers_kept = ANSWERS_KEPT_MIN
        self._uncommitted: deque[Uncommitted] = deque()
        self._postponed: list[Callable[[], Outcome[None]]] = []
        self._refusal: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self.machine = make(self)
        self._unread: Iterator[int] = loading.load(partition, self.machine, outbox)
        if load:
            self.load(None)

    @property
    def now_ms(self) -> int:
        """The monotonic clock."""
        return self._timers.now_ms

    @property
    def wall_ms(self) -> int:
        """The wall clock."""
        return self._timers.wall_ms

    @property
    def is_open(self) -> bool:
        """Whether all state was read, so that the shard serves requests."""
        return self._refusal is None

    @property
    def is_closed(self) -> bool:
        """Whether the leadership of this shard is over."""
        return self._refusal is ErrorCode.NOT_COORDINATOR

    def load(self, limit_bytes: int | None) -> bool:
        """Read the stored state, up to a limit; return whether there is nothing left to read.

        Raises `StorageError` or `OSError` if the log cannot be read.
        """
        left = limit_bytes
        while not self.is_closed and (left is None or left > 0):
            size = next(self._unread, None)
            if size is None:
                self._begin()
                return True
            if left is not None:
                left -= size
        return self.is_closed

    def check(self) -> None:
        """Raise the `ApiError` for a request if the shard does not serve requests now."""
        if self._refusal is not None:
            raise ApiError(self._refusal)
        partition = self.partition
        if partition.leader_epoch != self.leader_epoch or partition.retired:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def run(self, operation: Callable[[], Outcome[T]]) -> Pending[T]:
        """Carry out an operation; the answer comes once its records are committed.

        Raises the `ApiError` with which the machine or the disk refuses. The answer fails with
        NOT_COORDINATOR if the leadership ends before, and with COORDINATOR_NOT_AVAILABLE if the
        records are not committed in time.
        """
        self.check()
        outcome = operation()
        if outcome.records:
            try:
                self._append(outcome)
            except ApiError as error:
                error.code = COORDINATOR_CODES.get(error.code, error.code)
                if outcome.refused is not None:
                    outcome.refused(error)
                raise
        answer: Pending[T] = Pending()
        offset = self.partition.log.end_offset
        self.partition.when_safe(
            offset,
            lambda: None if self.is_closed else _respond(outcome, answer),
            lambda: _fail_closed(answer),
        )
        self._watch(answer, offset)
        return answer

    def append_prepared(self, body: bytes, count: int, replay: Callable[[], None]) -> int:
        """Append records that are encoded already, and replay them.

        Return the offset that must be committed before the response; raise `ApiError` if the disk
        refuses the records.
        """
        self.check()
        self.partition.leader.append_own(seal_own(body, count, self._timers.wall_ms))
        replay()
        return self.partition.log.end_offset

    def safe(self, offset: int, result: T) -> Pending[T]:
        """Give a result once everything below an offset is committed; fail as `run` does."""
        answer: Pending[T] = Pending()
        self.partition.when_safe(
            offset, lambda: answer.complete(result), lambda: _fail_closed(answer)
        )
        self._watch(answer, offset)
        return answer

    def run_quietly(self, operation: Callable[[], Outcome[None]]) -> None:
        """Carry out an operation that no client waits for; log a notice if the disk refuses it."""
        if self._refusal is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._postponed.append(operation)
            return
        try:
            self.run(operation)
        except ApiError as error:
            if error.code is ErrorCode.NOT_COORDINATOR:
                return  # the new coordinator does it
            facts = {"partition": str(self.partition.name), "problem": error.message}
            self._outbox.append(Notice("error", "a coordinator cannot store a change", facts))

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Run an operation later; cancel an earlier one under the same name."""
        self.cancel(name)
        if self.is_closed:
            return

        def due() -> None:
            del self._scheduled[name]
            self.run_quietly(operation)

        self._scheduled[name] = self._timers.after(delay_ms, due)

    def cancel(self, name: str) -> None:
        """Cancel an operation."""
        timer = self._scheduled.pop(name, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """End the shard: never write again, and fail the requests that wait."""
        self._refusal = ErrorCode.NOT_COORDINATOR
        for name in list(self._scheduled):
            self.cancel(name)
        self._postponed.clear()
        self._uncommitted.clear()
        self._unread = iter(())
        answers, self._answers = self._answers, []
        for answer in answers:
            _fail_closed(answer)

    def _begin(self) -> None:
        if self._refusal is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        self._refusal = None
        self.machine.loaded()
        postponed, self._postponed = self._postponed, []
        for operation in postponed:
            self.run_quietly(operation)

    def _watch(self, answer: Pending[Any], offset: int) -> None:
        """Remember a response that waits; responses that were sent are removed now and then."""
        if answer.done:
            return
        if len(self._answers) >= self._answers_kept:
            self._answers = [waiting for waiting in self._answers if not waiting.done]
            self._answers_kept = max(ANSWERS_KEPT_MIN, 2 * len(self._answers))
        self._answers.append(answer)
        if self.partition.high_watermark < offset and len(self.partition.replicas) > 1:
            self._uncommitted.append(Uncommitted(self.now_ms + PATIENCE_MS, offset, answer))
            self._watch_deadline()

    def _watch_deadline(self) -> None:
        """Set a timer for the first response whose records are not committed in time."""
        waiting, committed_offset = self._uncommitted, self.partition.high_watermark
        while waiting and waiting[0].offset <= committed_offset:
            waiting.popleft()
        if waiting and LATE not in self._scheduled:
            delay_ms = waiting[0].deadline_ms - self.now_ms
            self._scheduled[LATE] = self._timers.after(delay_ms, self._fail_late)

    def _fail_late(self) -> None:
        """Fail responses that are late; their records may still be committed."""
        del self._scheduled[LATE]
        while self._uncommitted and self._uncommitted[0].deadline_ms <= self.now_ms:
            late = self._uncommitted.popleft()
            if self.partition.high_watermark < late.offset:
                late.answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._watch_deadline()

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
        self.partition.leader.append_own(batch)
        for record in outcome.records:
            self.machine.replay(record, producer)


def _respond(outcome: Outcome[T], answer: Pending[T]) -> None:
    if outcome.committed is not None:
        outcome.committed()
    response = outcome.response
    if isinstance(response, Pending):
        response.when_done(answer.complete, answer.fail)
    else:
        answer.complete(response)


def _fail_closed(answer: Pending[Any]) -> None:
    answer.fail(ApiError(ErrorCode.NOT_COORDINATOR))
