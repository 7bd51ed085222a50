"""One thread that runs a producer's delivery callbacks, so that the program need not call `poll`.

The thread sleeps inside librdkafka until an event arrives, and looks up every
`WAKE_INTERVAL_S` to see whether it should stop. It knows the librdkafka handle and not the
producer: a producer that is dropped without `close()` is still collected, and flushed on the way.

Every record gets a delivery report, also one that is given up: `shut` purges what a flush left
over, and librdkafka reports each purged record as not delivered. Without that report the future
of the record would never end.

A flush runs callbacks as well, on the thread that flushes. A callback must not wait for a report:
its own is not over before it returns. `in_callback` tells.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Producer

from barnabas.client.apart import run_apart
from barnabas.client.errors import UsageError
from barnabas.logs import get

WAKE_INTERVAL_S = 0.1
LAST_FLUSH_S = 10.0
PURGE_S = 5.0
"""How long librdkafka may take to report what was purged; it takes milliseconds."""

log = get("barnabas.client")
T = TypeVar("T")


class Pump:
    """Serves the delivery reports of one confluent-kafka producer."""

    def __init__(self, kafka: Producer) -> None:
        self._kafka = kafka
        self._stop = threading.Event()
        self._shutting = threading.Lock()
        self._ends_itself = False
        self._serving: set[int] = set()
        self._room = threading.Condition()
        self._wait_for_room = 0
        self._thread = threading.Thread(target=self._run, name="barnabas-producer", daemon=True)
        self._thread.start()

    def in_callback(self) -> bool:
        """Tell whether the caller is a delivery callback."""
        return threading.get_ident() in self._serving

    def require_no_callback(self) -> None:
        """Raise where the caller is a delivery callback, and wants to wait for others."""
        if self.in_callback():
            raise UsageError(
                "a delivery callback cannot wait for other records; use send_async in it"
            )

    def flush(self, timeout_s: float | None) -> int:
        """Wait until every record has its report; return how many have none when time is over."""
        self.require_no_callback()
        return run_apart(lambda hurry: self._wait(timeout_s, hurry))

    def wait_for_room(self) -> None:
        """Wait until some reports have been served, but not for long."""
        if self.in_callback():
            self._serve(self._kafka.poll, WAKE_INTERVAL_S)
            return
        with self._room:
            self._wait_for_room += 1
            try:
                self._room.wait(WAKE_INTERVAL_S)
            finally:
                self._wait_for_room -= 1

    def shut(self, timeout_s: float | None = LAST_FLUSH_S) -> int:
        """Flush, give up what is left, stop the thread; return how many records were given up.

        On return every record has had its delivery report. A second call waits for the first, and
        gives up what was queued since. A callback that calls this gets 0 at once: its own report
        is under way, so that the pump's thread makes the flush afterwards.
        """
        if self.in_callback() or threading.current_thread() is self._thread:
            if not self._stop.is_set():
                self._ends_itself = True
                self._stop.set()
            return 0
        return run_apart(lambda hurry: self._end(timeout_s, hurry))

    def give_up_late(self) -> None:
        """Give up a record that was queued after the flush of `shut`, where that is over."""
        if self.in_callback():
            return  # there still is a flush to come
        with self._shutting:
            if self._stop.is_set():
                self._flush(0.0, self._stop)

    def _end(self, timeout_s: float | None, hurry: threading.Event) -> int:
        with self._shutting:
            if self._stop.is_set():
                left = 0
            else:
                self._stop.set()
                left = self._flush(timeout_s, hurry)
            self._thread.join()
            return left + self._flush(0.0, hurry)

    def _flush(self, timeout_s: float | None, hurry: threading.Event) -> int:
        """Wait for reports; give up every record that has none by then, and return how many."""
        left = self._wait(timeout_s, hurry)
        if left:
            self._kafka.purge()
            self._serve(self._kafka.flush, PURGE_S)
        return left

    def _wait(self, timeout_s: float | None, hurry: threading.Event) -> int:
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = WAKE_INTERVAL_S if deadline_s is None else deadline_s - time.monotonic()
            slice_s = max(0.0, min(WAKE_INTERVAL_S, left_s))
            left = int(self._serve(self._kafka.flush, slice_s))
            if not left or left_s <= 0 or hurry.is_set():
                return left

    def _serve(self, call: Callable[[float], T], timeout_s: float) -> T:
        """Make a call that runs callbacks, on this thread."""
        me, nested = threading.get_ident(), self.in_callback()
        self._serving.add(me)
        try:
            return call(timeout_s)
        finally:
            if not nested:
                self._serving.discard(me)

    def _run(self) -> None:
        me = threading.get_ident()
        self._serving.add(me)
        while not self._stop.is_set():
            try:
                self._kafka.poll(WAKE_INTERVAL_S)
            except BaseException:
                # Without this thread no other future would end.
                log.exception("a delivery callback failed")
            if self._wait_for_room:
                with self._room:
                    self._room.notify_all()
        self._serving.discard(me)
        if self._ends_itself:
            self._flush(LAST_FLUSH_S, threading.Event())
