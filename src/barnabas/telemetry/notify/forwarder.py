"""Forwards alerts to one endpoint: a consumer group, an outbox, and HTTP requests.

The committed offsets of the group are the only stored state. A start reads the topic from its
beginning: records below the committed offset were sent before and only show which alerts are open,
so that these can be sent again; records above it are sent. A group without commits is new: of the
existing records, only alerts that are still open are sent.

While an endpoint is unreachable the consumer is paused: records wait in the topic, not in memory.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from barnabas import logs
from barnabas.telemetry.notify import http_post, silence_topic
from barnabas.telemetry.notify.notice import Place, UnreadableError, parse
from barnabas.telemetry.notify.outbox import Attempt, Failure, Outbox
from barnabas.telemetry.notify.silence_topic import SilenceReader, arrived
from barnabas.telemetry.samples.telemetry_topics import ALERTS, SILENCES

if TYPE_CHECKING:
    from confluent_kafka import Message

ANSWER_TIMEOUT_S = 30.0
RECORDS_AT_ONCE = 64
WAIT_S = 0.5
"""How long to wait for records; signals and silences are checked in between."""

log = logs.get("notify")


@dataclass(frozen=True, kw_only=True)
class ForwarderSettings:
    """The settings of a forwarder."""

    client: Mapping[str, Any]
    """Properties of librdkafka."""
    group: str
    topic: str = ALERTS
    silences: str = SILENCES
    timeout_s: float = 10.0
    """A request is over after this long."""
    secret_file: Path | None = None
    """The file of the secret, read for each request, so that it can be changed at any time."""
    once: bool = False
    """Send the existing alerts, then end."""


class Forwarder:
    """Runs one endpoint until it is stopped."""

    def __init__(self, settings: ForwarderSettings, outbox: Outbox) -> None:
        self._settings = settings
        self._outbox = outbox
        self._resume: dict[int, int] = {}
        """The first offset to send, for each partition."""
        self._new: set[int] = set()
        """Partitions that the group never read, until their open alerts are known."""
        self._behind: set[int] = set()
        """Partitions of which only sent records were read so far."""
        self._ended: set[int] = set()
        """Partitions that are read up to their end."""
        self._paused: set[int] = set()

    @property
    def counts(self) -> Counter[str]:
        """The number of alerts by outcome."""
        return self._outbox.counts

    def run(self, stop: Event) -> None:
        """Forward until `stop` is set, or with `once` until nothing is left to send."""
        silence_topic.ensure(self._settings.client, self._settings.silences)
        silences = SilenceReader(self._settings.client, self._settings.silences)
        consumer = Consumer(
            {
                **self._settings.client,
                "group.id": self._settings.group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                # After a crash, the next start gets its partitions after this timeout.
                "session.timeout.ms": 10_000,
            }
        )
        try:
            silences.load()
            consumer.subscribe([self._settings.topic], self._assigned, self._revoked)
            while not stop.is_set():
                silences.refresh()
                is_idle = self._turn(consumer, silences)
                if is_idle and self._settings.once and self._has_read_all:
                    break
        finally:
            self._commit(consumer)
            consumer.close()
            silences.close()

    def _turn(self, consumer: Consumer, silences: SilenceReader) -> bool:
        """Read, send one request, commit; return whether everything is done."""
        self._pause(consumer)
        wait_s = self._outbox.wait_s(time.monotonic(), WAIT_S)
        for message in arrived(consumer, RECORDS_AT_ONCE, wait_s):
            self._receive(message)
        now_ms = time.time_ns() // 1_000_000
        attempt = self._outbox.due(time.monotonic(), now_ms, silences.silences)
        # While old records are read, an open alert may still turn out to be cleared.
        if attempt is not None and not self._behind:
            self._send(attempt)
        self._commit(consumer)
        return attempt is None and not self._outbox.has_news

    @property
    def _has_read_all(self) -> bool:
        return bool(self._resume) and self._ended >= self._resume.keys()

    def _send(self, attempt: Attempt) -> None:
        now = datetime.fromtimestamp(time.time(), UTC)
        endpoint = self._outbox.endpoint
        try:
            path = self._settings.secret_file
            secret = None if path is None else path.read_bytes().strip()
        except OSError as error:
            self._failed(attempt, http_post.Outcome(Failure.TROUBLE, str(error)))
            return
        post = endpoint.post(attempt.notices, now, secret)
        outcome = http_post.send(post, self._settings.timeout_s)
        if outcome.failure is None:
            self._outbox.succeeded(attempt, time.monotonic())
        else:
            self._failed(attempt, outcome)

    def _failed(self, attempt: Attempt, outcome: http_post.Outcome) -> None:
        assert outcome.failure is not None
        endpoint = self._outbox.endpoint
        where = {"endpoint": endpoint.kind, "url": endpoint.url, "why": outcome.detail}
        lost = self._outbox.failed(attempt, outcome.failure, time.monotonic())
        if lost:
            names = [f"{each.alert_id} {each.text('message')}" for each in lost]
            total = self.counts["given_up"]
            log.error("alerts given up", count=len(lost), total=total, alerts=names, **where)
        else:
            log.warning("alert delivery failed, retrying", count=len(attempt.notices), **where)

    def _receive(self, message: "Message") -> None:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.fatal():
                raise KafkaException(error)
            log.warning("reading alerts failed", why=error.str())
            return
        assert partition is not None
        if error is not None:
            self._ended.add(partition)
            self._reached(partition)
            return
        self._ended.discard(partition)
        assert offset is not None
        if offset >= self._resume.get(partition, 0):
            self._reached(partition)
        self._take(message.value(), Place(partition, offset))

    def _take(self, value: bytes | None, place: Place) -> None:
        is_past = place.offset < self._resume.get(place.partition, 0)
        try:
            notice = parse(value, place)
        except UnreadableError as error:
            if not is_past:
                self.counts["unreadable"] += 1
                log.warning("record is not an alert", why=str(error), at=place)
            return
        (self._outbox.restore if is_past else self._outbox.take)(notice)

    def _reached(self, partition: int) -> None:
        """Record that a partition is read up to its committed offset."""
        self._behind.discard(partition)
        if partition in self._new:
            self._new.discard(partition)
            self._outbox.announce(partition, self._resume[partition])

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        committed = consumer.committed(partitions, timeout=ANSWER_TIMEOUT_S)
        for place, known in zip(partitions, committed, strict=True):
            low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_TIMEOUT_S)
            if known.offset < 0:
                self._new.add(place.partition)
            elif known.offset < low:
                self.counts["removed"] += low - known.offset
                log.error(
                    "alert records were removed by retention before they were sent",
                    count=low - known.offset,
                    total=self.counts["removed"],
                    partition=place.partition,
                )
            self._resume[place.partition] = known.offset if known.offset >= 0 else high
            self._behind.add(place.partition)
            place.offset = low
        self._paused.clear()
        consumer.assign(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit(consumer)
        for place in partitions:
            self._outbox.forget(place.partition)
            self._resume.pop(place.partition, None)
            self._new.discard(place.partition)
            self._behind.discard(place.partition)
            self._ended.discard(place.partition)

    def _pause(self, consumer: Consumer) -> None:
        """Pause while records wait here; old records are always read to their end."""
        wanted = self._resume.keys() - self._behind if self._outbox.has_news else set()
        for act, numbers in (
            (consumer.pause, wanted - self._paused),
            (consumer.resume, self._paused - wanted),
        ):
            if numbers:
                act([TopicPartition(self._settings.topic, number) for number in numbers])
        self._paused = wanted

    def _commit(self, consumer: Consumer) -> None:
        offsets = self._outbox.settled()
        if not offsets:
            return
        places = [TopicPartition(self._settings.topic, *each) for each in offsets.items()]
        try:
            consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            # Sending an alert twice is harmless; the next commit covers it.
            log.warning("offset commit failed, retrying", why=error.args[0].str())
            return
        self._outbox.committed(offsets)
