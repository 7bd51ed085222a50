"""Work that is done in steps, so that no event of the loop takes long.

Steps are a generator. If it yields None, the event has lasted long enough, and the generator is
resumed in a later one. If it yields a call, that call takes long and uses only its arguments
(decompressing a batch, for example): it is made on another thread, and the generator is resumed
with its result or its exception. Between two steps anything may have changed.
"""

from collections.abc import Callable, Generator
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.model.pending import Pending

T = TypeVar("T")

Call = Callable[[], Any]
Steps = Generator[Call | None, Any, T]

EVENT_UNITS = 2_000
"""How much work one event does. A unit is about half a microsecond."""


class Work:
    """Counts what was done in the current event."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = EVENT_UNITS

    def spend(self, units: int) -> bool:
        """Count some work; tell whether the event has lasted long enough and a new one begins."""
        self._left -= units
        if self._left > 0:
            return False
        self._left = EVENT_UNITS
        return True


class Rest(NamedTuple, Generic[T]):
    """Steps that were begun, and what they yielded first."""

    steps: Steps[T]
    call: Call | None


def begin(steps: Steps[T]) -> T | Rest[T]:
    """Make the first step in this event; return the result if that was all."""
    try:
        return Rest(steps, next(steps))
    except StopIteration as end:
        result: T = end.value
        return result


def resume(steps: Steps[T], call: Call | None) -> Call | None:
    """Make a call here, and the step after it; raise `StopIteration` with the result at the end."""
    if call is None:
        return steps.send(None)
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - it belongs to the steps, which asked for the call
        return steps.throw(error)
    return steps.send(result)


def finish(steps: Steps[T], call: Call | None = None) -> T:
    """Run all steps now."""
    try:
        while True:
            call = resume(steps, call)
    except StopIteration as end:
        result: T = end.value
        return result


def for_answer(rest: Rest[T], pending: Pending[T]) -> Steps[None]:
    """Do the rest of the work for an answer, unless the client that asked is gone."""
    steps, call = rest
    while not pending.done:
        try:
            sent = yield call
        except Exception as error:  # noqa: BLE001 - as above
            failure: Exception | None = error
        else:
            failure = None
        try:
            call = steps.send(sent) if failure is None else steps.throw(failure)
        except StopIteration as end:
            pending.complete(end.value)
        except Exception as error:  # noqa: BLE001 - the answer fails with it
            pending.fail(error)
