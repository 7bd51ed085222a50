"""An answer that is not there yet."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeVar

from barnabas.model.errors import ApiError, ErrorCode

T = TypeVar("T")
R = TypeVar("R")


class _Absence(Enum):
    """Stands for a result that is not there: None may be one."""

    ABSENT = 0


ABSENT: Final = _Absence.ABSENT


class Pending(Generic[T]):
    """Completed once, by whoever finds out; whoever asked is told at once or when it is.

    Making the answer can fail, by a fault of ours: then whoever asked is told that instead, and
    whoever else waits for the same event is not disturbed.

    Once it is done it lets go of everyone: they refer to each other, and a circle would be left
    for the garbage collector, which stops the loop.
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
        """Called once where nobody wants the answer any more, so that nothing waits for it."""

    @classmethod
    def of(cls, result: T) -> "Pending[T]":
        """Return an answer that is there already."""
        answer = cls()
        answer.complete(result)
        return answer

    def complete(self, result: T) -> None:
        """Give the answer; a second one is ignored, as when a timeout has won."""
        if self.done:
            return
        self.done = True
        listener = self._let_go()[0]
        if listener is None:
            self._result = result
        else:
            listener(result)

    def fail(self, error: Exception) -> None:
        """Say that there will be no answer."""
        if self.done:
            return
        if self._refused is not None and isinstance(error, ApiError):
            self.complete(self._refused(error.code))
            return
        self.done = True
        listener, on_failure = self._let_go()
        if listener is None:
            self._error = error
        elif on_failure is not None:
            on_failure(error)

    def or_refused(self, refused: Callable[[ErrorCode], T]) -> "Pending[T]":
        """Have an `ApiError` that comes instead of the answer become one; return this."""
        error = self._error
        if isinstance(error, ApiError):
            self._result, self._error = refused(error.code), None
        elif not self.done:
            self._refused = refused
        return self

    def complete_with(self, make: Callable[[], T]) -> None:
        """Give the answer that a function makes, or its failure."""
        if self.done:
            return
        try:
            result = make()
        except Exception as error:  # noqa: BLE001 - told to the one whom it concerns
            self.fail(error)
        else:
            self.complete(result)

    def when_done(
        self, listener: Callable[[T], None], on_failure: Callable[[Exception], None] | None = None
    ) -> None:
        """Have a listener called with the answer."""
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
        """Return a pending answer made from this one."""
        mapped: Pending[R] = Pending()
        mapped.on_abandoned = self.abandon
        self.when_done(lambda result: mapped.complete_with(lambda: function(result)), mapped.fail)
        return mapped

    def abandon(self) -> None:
        """Say that nobody wants the answer any more."""
        if self.done:
            return
        self.done = True
        on_abandoned = self.on_abandoned
        self._let_go()
        if on_abandoned is not None:
            on_abandoned()

    def _let_go(
        self,
    ) -> tuple[Callable[[T], None] | None, Callable[[Exception], None] | None]:
        told = (self._listener, self._on_failure)
        self._listener = self._on_failure = self._refused = self.on_abandoned = None
        return told
