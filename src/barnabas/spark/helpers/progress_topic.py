"""Sends reports of progress to their topic, on a thread of its own.

A report waits in a mailbox that has one place for each query: a newer report replaces an older one,
because only the last one counts in a compacted topic. So the mailbox is bounded, and a slow broker
never holds up a query. What was not delivered is counted and logged, once a minute at most.
"""

import time
from collections.abc import Callable, Mapping
from threading import Condition, Thread
from typing import TYPE_CHECKING

from barnabas.client.errors import ClientError
from barnabas.logs import get
from barnabas.monitor.stream_progress import StreamProgress

if TYPE_CHECKING:
    from concurrent.futures import Future

    from barnabas.client import Producer, Record, SendResult

BOOTSTRAP = "bootstrap.servers"
QUERIES_MAX = 1_000
"""Reports that wait; beyond, the oldest is dropped."""
PACE_S = 1.0
"""Reports of one query are at least this far apart, but for the last ones."""
DELIVERY_TIMEOUT_MS = 10_000
RETRY_S = 10.0
"""After a failure to open the topic."""
COMPLAIN_EVERY_S = 60.0
CLOSE_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 10.0

log = get("barnabas.spark")


class Mailbox:
    """The last report of each query that has not been sent."""

    def __init__(self, queries_max: int = QUERIES_MAX) -> None:
        self._queries_max = queries_max
        self._changed = Condition()
        self._waiting: dict[str, StreamProgress] = {}
        self._is_closed = False
        self.dropped = 0
        """Reports for which there was no place."""

    def put(self, row: StreamProgress) -> None:
        """Leave a report; it never waits."""
        with self._changed:
            self._waiting.pop(row.name, None)
            if len(self._waiting) >= self._queries_max:
                self._waiting.pop(next(iter(self._waiting)))
                self.dropped += 1
            self._waiting[row.name] = row
            self._changed.notify()

    def put_back(self, rows: list[StreamProgress]) -> None:
        """Return reports that could not be sent, unless newer ones have come meanwhile."""
        with self._changed:
            for row in rows:
                if len(self._waiting) < self._queries_max:
                    self._waiting.setdefault(row.name, row)
                else:
                    self.dropped += 1

    def take(self) -> list[StreamProgress]:
        """Wait for reports and return all of them; none once the mailbox is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            found, self._waiting = list(self._waiting.values()), {}
            return found

    def pause(self, timeout_s: float) -> bool:
        """Wait until the mailbox is closed, or for the time-out; return whether it is closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed, timeout_s)

    def close(self) -> None:
        """Have the reader take the rest and end."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()


class ProgressTopic:
    """The topic of reports, from its thread's start to its end."""

    def __init__(
        self,
        client: Mapping[str, str],
        topic: str,
        *,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client` has librdkafka's properties."""
        self._request_timeout_s = request_timeout_s
        self._client = dict(client)
        self._topic = topic
        self._now_s = now_s
        self._mailbox = Mailbox()
        self._producer: Producer | None = None
        self._failed = 0
        self._last_error = ""
        self._complained = 0
        self._complain_at_s = 0.0
        self._thread = Thread(target=self._run, name="barnabas-progress", daemon=True)
        self._thread.start()

    def send(self, row: StreamProgress) -> None:
        """Queue a report; it never waits and never raises."""
        self._mailbox.put(row)

    @property
    def undelivered(self) -> int:
        """Reports that were dropped or not delivered."""
        return self._mailbox.dropped + self._failed

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Send what waits, for a bounded time."""
        self._mailbox.close()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while rows := self._mailbox.take():
            is_sent = self._deliver(rows)
            self._complain()
            is_closed = self._mailbox.pause(PACE_S if is_sent else RETRY_S)
            if is_closed and not is_sent:
                self._failed += len(self._mailbox.take())
                break
        self._end()

    def _deliver(self, rows: list[StreamProgress]) -> bool:
        """Hand reports to the client; keep them where that fails."""
        try:
            producer = self._open()
            for row in rows:
                producer.send_async(self._topic, _record(row), self._note)
        except Exception as error:  # noqa: BLE001 - a failure here must never reach the query
            self._last_error = str(error)
            self._mailbox.put_back(rows)
            return False
        return True

    def _open(self) -> "Producer":
        if self._producer is None:
            from barnabas.client import Producer

            create_compacted(self._client, self._topic, self._request_timeout_s)
            settings = {"message.timeout.ms": DELIVERY_TIMEOUT_MS, "log_level": 0}
            given = {name: value for name, value in self._client.items() if name != BOOTSTRAP}
            self._producer = Producer(
                self._client[BOOTSTRAP], linger_ms=5, settings={**settings, **given}
            )
        return self._producer

    def _note(self, done: "Future[SendResult]") -> None:
        error = done.exception()
        if error is not None:
            self._failed += 1
            self._last_error = str(error)

    def _complain(self) -> None:
        """Log how many reports were not delivered since the last line."""
        lost = self.undelivered
        if lost == self._complained or self._now_s() < self._complain_at_s:
            return
        log.warning(
            "reports of streaming queries were not delivered",
            topic=self._topic,
            reports=lost - self._complained,
            error=self._last_error,
        )
        self._complained, self._complain_at_s = lost, self._now_s() + COMPLAIN_EVERY_S

    def _end(self) -> None:
        if self._producer is None:
            return
        try:
            self._producer.close(timeout_s=CLOSE_TIMEOUT_S)
        except ClientError as error:
            self._last_error = str(error)
        self._complain_at_s = 0.0
        self._complain()


def _record(row: StreamProgress) -> "Record":
    from barnabas.client import Record

    key, value = row.to_record()
    return Record(key=key, value=value)


def create_compacted(client: Mapping[str, str], topic: str, timeout_s: float) -> None:
    """Create a compacted topic with one partition, unless it is there."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"log_level": 0, **client})
    if topic in admin.list_topics(timeout=timeout_s).topics:
        return
    wanted = NewTopic(topic, 1, -1, config={"cleanup.policy": "compact"})
    (answer,) = admin.create_topics([wanted], request_timeout=timeout_s).values()
    try:
        answer.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
