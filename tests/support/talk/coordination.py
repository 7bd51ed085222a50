"""Runs a coordinator's state machine alone: the test controls time and the log.

    runner = MachineRunner(lambda scheduler: GroupMachine(settings, scheduler, image, Random(0)))
    answer = runner.run(lambda machine: machine.classic.join(request, runner.caller()))
    runner.pass_time(100)
    assert answer.done

It does what `node/coordination/coordinator_shard.py` does on a real partition. Records are
committed at once unless `hold_commits` is set; writes fail while `refusal` is set; `crash` keeps
committed records only.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from barnabas.model.coordination import (
    Caller,
    CoordinatorRecord,
    Machine,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending

T = TypeVar("T")
M = TypeVar("M", bound=Machine)

START_MS = 1_700_000_000_000
NEWEST = 99


class Entry(NamedTuple):
    """An entry of the log: records, or the end of a transaction."""

    records: tuple[CoordinatorRecord, ...]
    producer: ProducerIdAndEpoch | None = None
    is_marker: bool = False
    committed: bool = True
    """The content of a marker."""


class Timer(NamedTuple):
    """A scheduled operation."""

    deadline_ms: int
    number: int
    name: str
    operation: Callable[[], Outcome[None]]


class MachineRunner(Generic[M]):
    """A state machine, its clock and its log; also the machine's `Scheduler`."""

    def __init__(self, make: Callable[[Scheduler], M]) -> None:
        self._make = make
        self._now_ms = 0
        self._wall_ms = START_MS
        self._alarms: dict[str, Timer] = {}
        self._alarms_set = 0
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self.log: list[Entry] = []
        self.committed = 0
        """How many entries of the log are committed."""
        self.hold_commits = False
        self.refusal: ApiError | None = None
        """The error of every write, if set."""
        self.failures: list[ApiError] = []
        """The errors of operations without a caller."""
        self.machine = make(self)
        self.machine.loaded()

    @property
    def now_ms(self) -> int:
        """The monotonic clock."""
        return self._now_ms

    def set_clock(self, by_ms: int) -> None:
        """Let the wall clock jump."""
        self._wall_ms += by_ms

    @property
    def wall_ms(self) -> int:
        """The wall clock."""
        return self._wall_ms

    @property
    def timers(self) -> set[str]:
        """The names of all scheduled operations."""
        return set(self._alarms)

    @property
    def timers_set(self) -> int:
        """How many operations were scheduled so far."""
        return self._alarms_set

    @property
    def records(self) -> list[CoordinatorRecord]:
        """Every record in the log."""
        return [record for entry in self.log for record in entry.records]

    def caller(self, version: int = NEWEST, client_id: str = "client") -> Caller:
        """Return a caller at the current time."""
        return Caller(client_id, "/test", version, self._wall_ms)

    def run(self, operation: Callable[[M], Outcome[T]]) -> Pending[T]:
        """Run an operation; raises its `ApiError` if it fails."""
        return self._run(lambda: operation(self.machine))

    def end_transaction(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Append a marker to the log."""
        self.log.append(Entry((), producer, is_marker=True, committed=committed))
        self.machine.replay_marker(producer, committed=committed)
        self._maybe_commit()

    def commit(self, count: int | None = None) -> None:
        """Commit a number of entries, or all; send the responses that waited for them."""
        missing = len(self.log) - self.committed
        self.committed += missing if count is None else min(count, missing)
        while self._waiting and self._waiting[0][0] <= self.committed:
            self._waiting.pop(0)[1]()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass; each timer fires at its own time."""
        end_ms = self._now_ms + duration_ms
        while True:
            due = min(self._alarms.values(), default=None)
            if due is None or due.deadline_ms > end_ms:
                break
            self._move_to(due.deadline_ms)
            del self._alarms[due.name]
            self._run_quietly(due.operation)
        self._move_to(end_ms)

    def crash(self) -> None:
        """Restart from the committed records; pending operations get no response."""
        del self.log[self.committed :]
        self._alarms.clear()
        self._waiting.clear()
        self.machine = self._make(self)
        for entry in self.log:
            if entry.is_marker:
                assert entry.producer is not None
                self.machine.replay_marker(entry.producer, committed=entry.committed)
            for record in entry.records:
                self.machine.replay(record, entry.producer)
        self.machine.loaded()

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Schedule an operation; it replaces one with the same name."""
        self._alarms_set += 1
        deadline_ms = self._now_ms + max(1, delay_ms)
        self._alarms[name] = Timer(deadline_ms, self._alarms_set, name, operation)

    def cancel(self, name: str) -> None:
        """Cancel an operation."""
        self._alarms.pop(name, None)

    def _run(self, operation: Callable[[], Outcome[T]]) -> Pending[T]:
        outcome = operation()
        if outcome.records:
            if self.refusal is not None:
                if outcome.refused is not None:
                    outcome.refused(self.refusal)
                raise self.refusal
            self.log.append(Entry(tuple(outcome.records), outcome.producer))
            for record in outcome.records:
                self.machine.replay(record, outcome.producer)
        answer: Pending[T] = Pending()
        self._waiting.append((len(self.log), lambda: _complete_until(outcome, answer)))
        self._maybe_commit()
        return answer

    def _run_quietly(self, operation: Callable[[], Outcome[None]]) -> None:
        try:
            self._run(operation)
        except ApiError as error:
            self.failures.append(error)

    def _maybe_commit(self) -> None:
        self.commit(0 if self.hold_commits else None)

    def _move_to(self, now_ms: int) -> None:
        self._wall_ms += now_ms - self._now_ms
        self._now_ms = now_ms


def _complete_until(outcome: Outcome[T], answer: Pending[T]) -> None:
    if outcome.committed is not None:
        outcome.committed()
    response = outcome.response
    if isinstance(response, Pending):
        response.when_done(answer.complete, answer.fail)
    else:
        answer.complete(response)
