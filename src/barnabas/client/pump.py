"""A thread that runs a producer's delivery callbacks, so that the program need not call `poll`.

The thread sleeps inside librdkafka until an event arrives, and checks every `WAKE_INTERVAL_S`
whether it should stop. It references the librdkafka handle but not the producer, so a producer
without `close()` can still be garbage-collected, and is flushed then.

Every record gets a delivery report, also a dropped one: `shut` purges what a flush left in the
queue, and librdkafka reports each purged record as not delivered. Without that report the future of
the record would never complete.

A flush also runs callbacks, on the thread that flushes. A callback must not wait for a report,
because its own ends only when it returns. `in_callback` detects this.
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
"""How long librdkafka may take to report purged records; it takes milliseconds."""

log = get("barnabas.client")
T = TypeVar("T")


class Pump:
    """Handles the delivery reports of one confluent-kafka producer."""

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
        """Return whether the caller is a delivery callback."""
        return threading.get_ident() in self._serving

    def require_no_callback(self) -> None:
        """Raise if the caller is a delivery callback, which must not wait for other records."""
        if self.in_callback():
            raise UsageError(
                "a delivery callback cannot wait for other records; use send_async in it"
            )

    def flush(self, timeout_s: float | None) -> int:
        """Wait until every record has its report; return how many have none after the timeout."""
        self.require_no_callback()
        return run_apart(lambda hurry: self._wait(timeout_s, hurry))

    def wait_for_room(self) -> None:
        """Wait a short time for some reports."""
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
        """Flush, drop the remaining records, stop the thread; return how many records were dropped.

        On return every record has its delivery report. A second call waits for the first, and
        drops records that were queued since. A callback gets 0 immediately: its own report is not
        complete, so the pump's thread flushes afterwards.
        """
        if self.in_callback() or threading.current_thread() is self._thread:
            if not self._stop.is_set():
                self._ends_itself = True
                self._stop.set()
            return 0
        return run_apart(lambda hurry: self._end(timeout_s, hurry))

    def give_up_late(self) -> None:
        """Drop a record that was queued after the flush of `shut`, if that has ended."""
        if self.in_callback():
            return  # a flush will follow
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
        """Wait for reports; drop every record without one, and return how many."""
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
        """Run a call that executes callbacks, on this thread."""
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
                # Without this thread no other future would complete.
                log.exception("a delivery callback failed")
            if self._wait_for_room:
                with self._room:
                    self._room.notify_all()
        self._serving.discard(me)
        if self._ends_itself:
            self._flush(LAST_FLUSH_S, threading.Event())
