"""Runs one coordinator's state machine on the partition that holds its state.

An operation's records are appended as one batch and replayed; its response goes once they are
below the high watermark. Operations that only read wait for what was replayed before them:
nobody is shown what a power cut could take back.

A shard lives as long as one leader epoch of its partition. It begins with what was stored, read
piece by piece if that is much, and refuses with COORDINATOR_LOAD_IN_PROGRESS until all is there.
It ends when another broker leads, or this one in another epoch: whoever waits is told
NOT_COORDINATOR, and the machine goes, with whatever it replayed that was never committed.

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
from barnabas.node import loading
from barnabas.node.partition import Partition
from barnabas.protocol.records import TRANSACTIONAL, build_own, seal_own

T = TypeVar("T")
M = TypeVar("M", bound=Machine)

ANSWERS_KEPT_MIN = 64
PATIENCE_MS = 5000
"""How long other brokers may take to copy a coordinator's records, as in Kafka."""
LATE = "late"

OF_A_COORDINATOR = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""What a partition's refusals mean to those who ask its coordinator."""


class Unsafe(NamedTuple):
    """Whoever waits until an offset is safe, and how long that may take."""

    deadline_ms: int
    offset: int
    answer: Pending[Any]


class Shard(Generic[M]):
    """One partition's coordinator. It is the machine's `Scheduler`, too."""

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
        """The only one in which this shard may act."""
        self._timers = timers
        self._outbox = outbox
        self._scheduled: dict[str, Timer] = {}
        self._answers: list[Pending[Any]] = []
        self._answers_kept = ANSWERS_KEPT_MIN
        self._unsafe: deque[Unsafe] = deque()
        self._put_off: list[Callable[[], Outcome[None]]] = []
        self._refusal: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self.machine = make(self)
        self._unread: Iterator[int] = loading.load(partition, self.machine, outbox)
        if load:
            self.load(None)

    @property
    def now_ms(self) -> int:
        """A clock that never jumps."""
        return self._timers.now_ms

    @property
    def wall_ms(self) -> int:
        """What the calendar says."""
        return self._timers.wall_ms

    @property
    def is_open(self) -> bool:
        """Whether everything was read, and somebody may ask."""
        return self._refusal is None

    @property
    def is_closed(self) -> bool:
        """Whether somebody else coordinates."""
        return self._refusal is ErrorCode.NOT_COORDINATOR

    def load(self, limit_bytes: int | None) -> bool:
        """Read back what was stored, up to a limit; return whether there is nothing left to read.

        Raises `StorageError` or `OSError` where that cannot be read.
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
        """Raise the `ApiError` for those who ask while nothing can be done here."""
        if self._refusal is not None:
            raise ApiError(self._refusal)
        partition = self.partition
        if partition.leader_epoch != self.leader_epoch or partition.retired:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def run(self, operation: Callable[[], Outcome[T]]) -> Pending[T]:
        """Carry out an operation; the answer comes once its records are committed.

        Raises the `ApiError` with which the machine or the disk refuses. The answer fails with
        NOT_COORDINATOR where somebody else takes over before, and with COORDINATOR_NOT_AVAILABLE
        where the records are not safe for long.
        """
        self.check()
        outcome = operation()
        if outcome.records:
            try:
                self._append(outcome)
            except ApiError as error:
                error.code = OF_A_COORDINATOR.get(error.code, error.code)
                if outcome.refused is not None:
                    outcome.refused(error)
                raise
        answer: Pending[T] = Pending()
        offset = self.partition.log.end_offset
        self.partition.when_safe(
            offset,
            lambda: None if self.is_closed else _let_go(outcome, answer),
            lambda: _lose(answer),
        )
        self._watch(answer, offset)
        return answer

    def append_prepared(self, body: bytes, count: int, replay: Callable[[], None]) -> int:
        """Write records whose bytes are there already, and have them replayed.

        Return what must be safe before anybody is told; raise `ApiError` where the disk refuses.
        """
        self.check()
        self.partition.append_own(seal_own(body, count, self._timers.wall_ms))
        replay()
        return self.partition.log.end_offset

    def safe(self, offset: int, result: T) -> Pending[T]:
        """Give a result once everything below an offset is committed; fail as `run` does."""
        answer: Pending[T] = Pending()
        self.partition.when_safe(offset, lambda: answer.complete(result), lambda: _lose(answer))
        self._watch(answer, offset)
        return answer

    def run_quietly(self, operation: Callable[[], Outcome[None]]) -> None:
        """Carry out an operation that nobody waits for; where the disk refuses, say so."""
        if self._refusal is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._put_off.append(operation)
            return
        try:
            self.run(operation)
        except ApiError as error:
            if error.code is ErrorCode.NOT_COORDINATOR:
                return  # whoever coordinates now will do it
            facts = {"partition": str(self.partition.name), "problem": error.message}
            self._outbox.append(Notice("error", "a coordinator could not store a change", facts))

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Run an operation later; an earlier one under the same name is forgotten."""
        self.cancel(name)
        if self.is_closed:
            return

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
        """Never write again: somebody else coordinates from here on. Tell whoever waits."""
        self._refusal = ErrorCode.NOT_COORDINATOR
        for name in list(self._scheduled):
            self.cancel(name)
        self._put_off.clear()
        self._unsafe.clear()
        self._unread = iter(())
        answers, self._answers = self._answers, []
        for answer in answers:
            _lose(answer)

    def _begin(self) -> None:
        if self._refusal is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        self._refusal = None
        self.machine.loaded()
        put_off, self._put_off = self._put_off, []
        for operation in put_off:
            self.run_quietly(operation)

    def _watch(self, answer: Pending[Any], offset: int) -> None:
        """Remember who waits; those that were answered are swept out now and then."""
        if answer.done:
            return
        if len(self._answers) >= self._answers_kept:
            self._answers = [waiting for waiting in self._answers if not waiting.done]
            self._answers_kept = max(ANSWERS_KEPT_MIN, 2 * len(self._answers))
        self._answers.append(answer)
        if self.partition.high_watermark < offset and len(self.partition.replicas) > 1:
            self._unsafe.append(Unsafe(self.now_ms + PATIENCE_MS, offset, answer))
            self._look_again()

    def _look_again(self) -> None:
        """Have a look once the first who waits to be safe has waited for too long."""
        unsafe, safe_offset = self._unsafe, self.partition.high_watermark
        while unsafe and unsafe[0].offset <= safe_offset:
            unsafe.popleft()
        if unsafe and LATE not in self._scheduled:
            delay_ms = unsafe[0].deadline_ms - self.now_ms
            self._scheduled[LATE] = self._timers.after(delay_ms, self._give_up)

    def _give_up(self) -> None:
        """Answer those who waited for too long: what they asked for may yet come true."""
        del self._scheduled[LATE]
        while self._unsafe and self._unsafe[0].deadline_ms <= self.now_ms:
            late = self._unsafe.popleft()
            if self.partition.high_watermark < late.offset:
                late.answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._look_again()

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


def _let_go(outcome: Outcome[T], answer: Pending[T]) -> None:
    if outcome.committed is not None:
        outcome.committed()
    response = outcome.response
    if isinstance(response, Pending):
        response.when_done(answer.complete, answer.fail)
    else:
        answer.complete(response)


def _lose(answer: Pending[Any]) -> None:
    answer.fail(ApiError(ErrorCode.NOT_COORDINATOR))
