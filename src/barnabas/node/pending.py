"""An answer that is not there yet."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """Completed once, by whoever finds out; whoever asked is told at once or when it is."""

    __slots__ = ("_listener", "_result", "done")

    def __init__(self) -> None:
        self.done = False
        self._result: T | None = None
        self._listener: Callable[[T], None] | None = None

    def complete(self, result: T) -> None:
        """Give the answer; a second one is ignored, as when a timeout has won."""
        if self.done:
            return
        self.done = True
        self._result = result
        if self._listener is not None:
            self._listener(result)

    def when_done(self, listener: Callable[[T], None]) -> None:
        """Have a listener called with the answer."""
        if self.done:
            assert self._result is not None
            listener(self._result)
            return
        assert self._listener is None
        self._listener = listener

    def map(self, function: "Callable[[T], R]") -> "Pending[R]":
        """Return a pending answer made from this one."""
        mapped: Pending[R] = Pending()
        self.when_done(lambda result: mapped.complete(function(result)))
        return mapped


R = TypeVar("R")
