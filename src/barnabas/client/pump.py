"""One thread that runs a producer's delivery callbacks, so that the program need not call `poll`.

The thread sleeps inside librdkafka until an event arrives, and looks up every
`WAKE_INTERVAL_S` to see whether it should stop. It knows the librdkafka handle and not the
producer: a producer that is dropped without `close()` is still collected, and flushed on the way.

Every record gets a delivery report, also one that is given up: `shut` purges what a flush left
over, and librdkafka reports each purged record as not delivered. Without that report the future
of the record would never end.
"""

import threading

from confluent_kafka import Producer

from barnabas.logs import get

WAKE_INTERVAL_S = 0.1
LAST_FLUSH_S = 10.0
PURGE_S = 5.0
"""How long librdkafka may take to report what was purged; it takes milliseconds."""

log = get("barnabas.client")


class Pump:
    """Serves the delivery reports of one confluent-kafka producer."""

    def __init__(self, kafka: Producer) -> None:
        self._kafka = kafka
        self._stop = threading.Event()
        self._shutting = threading.Lock()
        self._shut_by: threading.Thread | None = None
        self._ends_itself = False
        self._thread = threading.Thread(target=self._run, name="barnabas-producer", daemon=True)
        self._thread.start()

    def shut(self, timeout_s: float = LAST_FLUSH_S) -> int:
        """Flush, give up what is left, stop the thread; return how many records were given up.

        On return every record has had its delivery report. A second call waits for the first, and
        gives up what was queued since. A callback that calls this gets 0 at once: its own report
        is under way, so that the flush comes after it.
        """
        caller = threading.current_thread()
        if caller is self._thread:
            self._ends_itself = not self._stop.is_set()
            self._stop.set()
            return 0
        if caller is self._shut_by:
            return 0
        with self._shutting:
            self._shut_by = caller
            try:
                return self._end(timeout_s)
            finally:
                self._shut_by = None

    def give_up_late(self) -> None:
        """Give up a record that was queued after the flush of `shut`, where that is over."""
        if threading.current_thread() in (self._thread, self._shut_by):
            return  # this thread still has a flush to make
        with self._shutting:
            if self._stop.is_set():
                self._flush(0.0)

    def _end(self, timeout_s: float) -> int:
        if self._stop.is_set():
            left = 0
        else:
            self._stop.set()
            left = self._flush(timeout_s)
        self._thread.join()
        return left + self._flush(0.0)

    def _flush(self, timeout_s: float) -> int:
        """Wait for reports; give up every record that has none by then, and return how many."""
        left = 1
        try:
            left = int(self._kafka.flush(timeout_s))
        finally:  # also where a callback raises, or the program is interrupted
            if left:
                self._kafka.purge()
                self._kafka.flush(PURGE_S)
        return left

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._kafka.poll(WAKE_INTERVAL_S)
            except BaseException:
                # A callback raised. Without this thread no other future would end.
                log.exception("a delivery callback failed")
        if self._ends_itself:
            self._flush(LAST_FLUSH_S)
