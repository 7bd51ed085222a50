"""Allow one thread at a time in a consumer: a second one gets an error; only `close` waits.

A consumer belongs to the thread that polls it. If two threads polled, each would mark the other's
messages as processed, and a crash could lose some. So the second one gets an error.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from barnabas.client.errors import UsageError


class Turn:
    """A lock that raises instead of waiting if another thread has it."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._require_open = require_open

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._require_open()  # the other thread may be closing it
            raise UsageError(
                "another thread is using this consumer; create one consumer per thread"
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
        """Wait until the other thread releases the consumer."""
        with self._lock:
            yield
