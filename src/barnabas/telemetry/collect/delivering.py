"""Delivers messages to brokers with an idempotent producer, and spools them while no broker
answers.

Delivery reports are requested for failures only: at hundreds of thousands of samples a second a
Python call for every success would cost as much as sending.

With a spool, no message is lost while a broker is unreachable:

    sending   messages go to the producer; one that it drops goes to the spool      -> keeping
    keeping   messages go to the spool; its oldest segment is sent repeatedly, until
              all of it is delivered; when the spool is empty                       -> sending

Both keep the order of messages, except for those that were in flight when the broker became
unreachable; these may also arrive twice, and silver drops duplicates. Without a spool, messages
wait in memory for librdkafka's `message.timeout.ms`, and are lost then.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer

from barnabas.telemetry.collect.spool import Letter, Spool
from barnabas.telemetry.samples.readings import Refusal
from barnabas.telemetry.samples.sample_messages import Headers

if TYPE_CHECKING:
    from confluent_kafka import Message as Report

PRODUCER: dict[str, object] = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 200_000,
    "message.max.bytes": 4_000_000,
    "delivery.report.only.error": True,
    "partitioner": "murmur2_random",
}
"""Keys get the same partitions as in Java. Batches of many snapshots compress to a fifth of their
size, as they repeat the same names."""
SPOOL_AFTER_MS = 10_000
"""How long a message may wait in memory with a spool: longer than a leader election."""
ROOM_WAIT_S = 0.1
RETRY_AFTER_S = 1.0
DOWN = KafkaError._ALL_BROKERS_DOWN
OF_THE_MESSAGE = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_MSG_SIZE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
}
"""Errors that a retry does not fix."""


@dataclass
class Account:
    """The counts of all messages by outcome."""

    messages: int = 0
    samples: int = 0
    failed: int = 0
    refused: int = 0
    unknown: int = 0
    """Messages that were sent and dropped before the broker's answer."""
    found: int = 0
    """Messages of an earlier process in the spool."""
    dropped: int = 0
    """Messages that did not fit into the spool."""
    first_refusals: list[Refusal] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class Outage:
    """A time in which no broker answers, and messages wait in memory."""

    failed: int
    """The number of failed messages at the last check."""
    has_waited: bool = False
    """Whether any message had to wait since then."""


class Delivery:
    """A producer, and a spool if one is given."""

    def __init__(
        self,
        settings: Mapping[str, object],
        *,
        spool: Spool | None = None,
        prepare: Callable[[], bool] = lambda: True,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take librdkafka's settings, which override ours.

        `prepare` is called before the first segment of the spool is sent, until it returns True.
        """
        own = {**PRODUCER, "message.timeout.ms": SPOOL_AFTER_MS} if spool else PRODUCER
        self._producer = Producer(
            {**own, **settings, "on_delivery": self._on_failure, "error_cb": self._on_error}
        )
        self._prepare = prepare
        self._tell = tell
        self._trouble: deque[str] = deque(maxlen=1)
        self._outage: Outage | None = None
        self._is_keeping = False
        self._must_purge = False
        self._is_prepared = False
        self._sending: int | None = None
        """While a segment is in flight: the number of failures when it was sent."""
        self._segment_failures = 0
        self._retry_at_s = 0.0
        self.while_full: Callable[[], None] = lambda: None
        """Called while a message waits for room."""
        self.is_stopping: Callable[[], bool] = lambda: False
        self.spool = spool
        self.account = Account()
        if spool is not None and spool.messages:
            self._is_keeping = True
            self.account.found = spool.messages
            tell(f"{spool.messages:,} messages in {spool.folder} are sent first")

    @property
    def trouble(self) -> str:
        """The client's last error, such as an unreachable broker."""
        return self._trouble[0] if self._trouble else ""

    @property
    def is_waiting(self) -> bool:
        """Whether messages wait for a broker."""
        return self._is_keeping or self._outage is not None

    @property
    def waiting(self) -> int:
        """How many messages are in memory."""
        return len(self._producer)

    def queue(self, letter: Letter) -> None:
        """Send a message, or keep it; wait for room if there is none and no spool."""
        topic, key, value, headers = letter
        while not self._is_keeping:
            try:
                if self.spool is None:
                    self._producer.produce(topic, value, key, headers=headers)
                else:  # delivery reports have no headers, so each message has its own callback
                    report = partial(self._on_undelivered, headers)
                    self._producer.produce(topic, value, key, headers=headers, on_delivery=report)
            except BufferError:
                if not self._wait_for_room():
                    return
            except KafkaException as error:
                self._fail(error.args[0])
                return
            else:
                return
        self._purge()
        self._keep(letter)

    def poll(self) -> None:
        """Process delivery reports, and send the next messages of the spool."""
        self._producer.poll(0)
        if self._is_keeping:
            self._purge()
            self._send_segment()
        elif self._outage is not None:
            self._look_for_recovery(self._outage)

    def finish(self, tick: Callable[[], None] = lambda: None) -> None:
        """Wait until every message is delivered or failed: librdkafka gives each a deadline.

        If a segment of the spool cannot be delivered, the next process sends the spool.
        """
        self._retry_at_s = 0.0
        failures = self._segment_failures
        while self._producer.flush(ROOM_WAIT_S) or self._is_keeping:
            tick()
            self.poll()
            if not len(self._producer):
                self._producer.poll(ROOM_WAIT_S)
            if self._is_keeping and self._segment_failures > failures:
                break
        self._close()

    def give_up(self, patience_s: float) -> None:
        """Stop waiting after a moment for messages in flight; the spool keeps the rest."""
        left = self._producer.flush(patience_s)
        if self.spool is None:
            self.account.unknown += left
            return
        if left:
            self._producer.purge()
            self._producer.flush(ROOM_WAIT_S)
        if self._is_keeping:
            self._settle(self.spool)
        self._close()

    def _wait_for_room(self) -> bool:
        """Return whether to try again; with a spool, the message is kept next."""
        if self.spool is not None:
            self._start_keeping(self.spool, "more messages wait than memory may hold")
            return True
        if self.is_stopping():
            self.account.unknown += 1
            return False
        self._producer.poll(ROOM_WAIT_S)
        self.while_full()
        return True

    def _on_failure(self, error: KafkaError | None, _: "Report") -> None:
        if error is not None:
            self._fail(error)

    def _on_undelivered(
        self, headers: Headers, error: KafkaError | None, message: "Report"
    ) -> None:
        if error is None:
            return
        if self.spool is None or error.code() in OF_THE_MESSAGE:
            self._fail(error)
            return
        self._start_keeping(self.spool, self.trouble or error.str())
        self._keep(Letter(message.topic() or "", message.key(), message.value() or b"", headers))

    def _on_error(self, error: KafkaError) -> None:
        self._trouble.append(error.str())
        if error.code() == DOWN and not self.is_waiting:
            self._outage = Outage(self.account.failed)
            where = "in memory for now" if self.spool else "in memory; --spool DIR keeps them"
            self._tell(f"No broker answers ({error.str()}); messages wait {where}")

    def _look_for_recovery(self, outage: Outage) -> None:
        """Report that brokers answer again, once the waiting messages are delivered."""
        if outage.failed != self.account.failed:
            self._outage = Outage(self.account.failed)
        elif len(self._producer):
            outage.has_waited = True
        elif outage.has_waited:
            self._outage = None
            self._tell("A broker answers again")

    def _fail(self, error: KafkaError) -> None:
        if error.str() not in self.account.failures:
            self._tell(f"A message was lost, and more may be: {error.str()}")
        self.account.failed += 1
        self.account.failures[error.str()] += 1

    def _start_keeping(self, spool: Spool, why: str) -> None:
        if not self._is_keeping:
            self._is_keeping = self._must_purge = True
            self._outage = None
            self._retry_at_s = time.monotonic() + RETRY_AFTER_S
            self._tell(f"Keeping messages in {spool.folder} until a broker takes them ({why})")

    def _purge(self) -> None:
        """Move the messages in memory to the spool, so that they are before newer ones."""
        if self._must_purge:
            self._must_purge = False
            self._producer.purge(in_queue=True, in_flight=False)
            self._producer.poll(0)

    def _keep(self, letter: Letter) -> None:
        assert self.spool is not None, "keeping needs a spool"
        dropped = self.spool.append(letter)
        if dropped and not self.account.dropped:
            why = self.spool.trouble or f"it may hold {self.spool.limit_bytes:,} bytes"
            self._tell(f"Messages are dropped, the oldest first: the spool is full ({why})")
        self.account.dropped += dropped

    def _send_segment(self) -> None:
        """Send the oldest segment of the spool, once nothing else is in flight."""
        assert self.spool is not None, "keeping needs a spool"
        if len(self._producer):
            return
        self._settle(self.spool)
        if not self._is_keeping or time.monotonic() < self._retry_at_s:
            return
        if not self._is_prepared and not self._prepare():
            self._segment_failures += 1
            self._retry_at_s = time.monotonic() + RETRY_AFTER_S
            return
        self._is_prepared = True
        self._sending = self._segment_failures
        for topic, key, value, headers in self._oldest(self.spool):
            try:
                self._producer.produce(
                    topic, value, key, headers=headers, on_delivery=self._on_segment_failure
                )
            except BufferError:
                self._segment_failures += 1
                break
            except KafkaException as error:
                self._on_segment_failure(error.args[0], None)

    def _oldest(self, spool: Spool) -> list[Letter]:
        try:
            return spool.oldest()
        except OSError as error:
            self._tell(f"A file of the spool cannot be read, and is dropped ({error})")
            self.account.dropped += spool.remove()
            self._sending = None
            return []

    def _settle(self, spool: Spool) -> None:
        """Remove a segment that was delivered; call it when nothing is in flight."""
        if self._sending is not None:
            is_delivered = self._sending == self._segment_failures
            self._sending = None
            if is_delivered:
                spool.remove()
            else:
                self._retry_at_s = time.monotonic() + RETRY_AFTER_S
        if not spool.messages:
            self._is_keeping = False
            self._tell(f"All messages in {spool.folder} are delivered")

    def _on_segment_failure(self, error: KafkaError | None, _: "Report | None") -> None:
        if error is not None and error.code() in OF_THE_MESSAGE:
            self._fail(error)
        elif error is not None:
            self._segment_failures += 1

    def _close(self) -> None:
        if self.spool is not None:
            self.spool.close()
