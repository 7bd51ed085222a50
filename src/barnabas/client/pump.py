"""One thread that runs a producer's callbacks, so that nobody has to call `poll`.

The thread sleeps inside librdkafka until an event arrives, and looks up every
`WAKE_INTERVAL_S` to see whether it should stop. It holds the librdkafka handle and nothing
else: a producer that is dropped without `close()` is still collected, and flushed on the way.
"""

import threading

from confluent_kafka import Producer

WAKE_INTERVAL_S = 0.1
LAST_FLUSH_S = 10.0


class Pump:
    """Serves the delivery reports of one confluent-kafka producer."""

    def __init__(self, kafka: Producer) -> None:
        self._kafka = kafka
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_run, args=(kafka, self._stop), name="barnabas-producer", daemon=True
        )
        self._thread.start()

    def shut(self) -> int:
        """Flush, stop the thread, and return how many records are still out."""
        if self._stop.is_set():
            return 0
        left = int(self._kafka.flush(LAST_FLUSH_S))
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        return left


def _run(kafka: Producer, stop: threading.Event) -> None:
    while not stop.is_set():
        kafka.poll(WAKE_INTERVAL_S)
