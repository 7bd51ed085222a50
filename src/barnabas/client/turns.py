"""One thread at a time in a consumer: a second one is told, and only `close` waits for its turn.

A consumer belongs to the thread that polls it. Two threads that poll would count each other's
messages as done, and a crash could then lose some. So the second one gets an error.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from barnabas.client.errors import UsageError


class Turn:
    """A lock that raises where another thread has it, in the place of waiting."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._require_open = require_open

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._require_open()  # the other thread may be closing it
            raise UsageError(
                "another thread is using this consumer; make one consumer for each thread"
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Wait until the other thread has left."""
        with self._lock:
            yield
