"""A result that may come later: the core's future, without an event loop."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeVar

from barnabas.model.errors import ApiError, ErrorCode

T = TypeVar("T")
R = TypeVar("R")


class _Absence(Enum):
    """Marks a missing result, since None can be a result."""

    ABSENT = 0


ABSENT: Final = _Absence.ABSENT


class Pending(Generic[T]):
    """A result that is completed once; its listener is called at once, or on completion.

    Making the result can raise an unexpected exception: then the listener of this result gets the
    failure, and the listeners of other results are not affected.

    Once done it drops its references to listeners: they refer to each other, and a cycle would be
    left for the garbage collector, which stops the event loop.
    """

    __slots__ = (
        "_error",
        "_listener",
        "_on_failure",
        "_refused",
        "_result",
        "done",
        "on_abandoned",
    )

    def __init__(self) -> None:
        self.done = False
        self._result: T | _Absence = ABSENT
        self._error: Exception | None = None
        self._listener: Callable[[T], None] | None = None
        self._on_failure: Callable[[Exception], None] | None = None
        self._refused: Callable[[ErrorCode], T] | None = None
        self.on_abandoned: Callable[[], None] | None = None
        """Called once when the answer is abandoned, so that waits for it can be cancelled."""

    @classmethod
    def of(cls, result: T) -> "Pending[T]":
        """Return a result that is complete."""
        answer = cls()
        answer.complete(result)
        return answer

    def complete(self, result: T) -> None:
        """Set the result; a second one is ignored, for example after a timeout."""
        if self.done:
            return
        self.done = True
        listener = self._take_listeners()[0]
        if listener is None:
            self._result = result
        else:
            listener(result)

    def fail(self, error: Exception) -> None:
        """Fail instead of giving a result."""
        if self.done:
            return
        if self._refused is not None and isinstance(error, ApiError):
            self.complete(self._refused(error.code))
            return
        self.done = True
        listener, on_failure = self._take_listeners()
        if listener is None:
            self._error = error
        elif on_failure is not None:
            on_failure(error)

    def or_refused(self, refused: Callable[[ErrorCode], T]) -> "Pending[T]":
        """Replace a failure with an `ApiError` by a result; return this."""
        error = self._error
        if isinstance(error, ApiError):
            self._result, self._error = refused(error.code), None
        elif not self.done:
            self._refused = refused
        return self

    def complete_with(self, make: Callable[[], T]) -> None:
        """Complete with what a function returns, or fail with what it raises."""
        if self.done:
            return
        try:
            result = make()
        except Exception as error:  # noqa: BLE001 - the listener gets it
            self.fail(error)
        else:
            self.complete(result)

    def when_done(
        self, listener: Callable[[T], None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Call a listener with the result, now or on completion."""
        assert self._listener is None
        if self._error is not None:
            if on_failure is not None:
                on_failure(self._error)
        elif self.done:
            if self._result is not ABSENT:  # else it was abandoned
                listener(self._result)
        else:
            self._listener, self._on_failure = listener, on_failure

    def map(self, function: Callable[[T], R]) -> "Pending[R]":
        """Return a pending result that is made from this one."""
        mapped: Pending[R] = Pending()
        mapped.on_abandoned = self.abandon
        self.when_done(lambda result: mapped.complete_with(lambda: function(result)), mapped.fail)
        return mapped

    def abandon(self) -> None:
        """Abandon the answer: no listener is called."""
        if self.done:
            return
        self.done = True
        on_abandoned = self.on_abandoned
        self._take_listeners()
        if on_abandoned is not None:
            on_abandoned()

    def _take_listeners(
        self,
    ) -> tuple[Callable[[T], None] | None, Callable[[Exception], None] | None]:
        taken = (self._listener, self._on_failure)
        self._listener = self._on_failure = self._refused = self.on_abandoned = None
        return taken
