"""Encodes samples as messages for the topics, and counts sent, refused and lost messages.

`delivering` delivers them.
"""

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.telemetry.collect.delivering import Account, Delivery
from barnabas.telemetry.collect.spool import Letter
from barnabas.telemetry.collect.vitals import Totals
from barnabas.telemetry.samples.readings import Refusal
from barnabas.telemetry.samples.sample_messages import Message, format_time
from barnabas.telemetry.samples.sample_refusals import (
    Coordinates,
    Fault,
    Reason,
    dead_letter_headers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TIME_TYPE = "message.timestamp.type"
APPEND_TIME = "LogAppendTime"
"""The broker sets the timestamps of records, and silver compares the samples' times with them."""
REQUEST_TIMEOUT_S = 30.0
POLL_EVERY = 256
REFUSALS_KEPT = 5
REASON_LENGTH_MAX = 500
NOWHERE = Coordinates("", -1, -1)
"""The origin of a line that was never in a topic."""


def ensure_topic(
    settings: "Mapping[str, object]", topic: str, *, partitions: int, replicas: int = -1
) -> str | None:
    """Create the topic if it is missing; return a warning if its configs differ from ours."""
    admin = AdminClient(dict(settings))
    wanted = NewTopic(
        topic,
        num_partitions=partitions,
        replication_factor=replicas,
        config={TIME_TYPE: APPEND_TIME},
    )
    try:
        admin.create_topics([wanted], request_timeout=REQUEST_TIMEOUT_S)[topic].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    else:
        return None
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answer: Any = admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)[resource]
    if answer.result()[TIME_TYPE].value == APPEND_TIME:
        return None
    return (
        f"Topic {topic} keeps the producers' timestamps, so wrong clocks cannot be detected; "
        f"`barnabas config set topic {topic} {TIME_TYPE}={APPEND_TIME}` mends that"
    )


class Publisher:
    """Sends messages to a topic, and unreadable lines to the dead-letter topic."""

    def __init__(self, delivery: Delivery, *, topic: str, refused_topic: str, source: str) -> None:
        """Take the object that delivers, and the names of both topics."""
        self.delivery = delivery
        self._topic = topic
        self._refused_topic = refused_topic
        self._source = source.encode()

    @property
    def account(self) -> Account:
        """The counts of all messages by outcome."""
        return self.delivery.account

    @property
    def trouble(self) -> str:
        """The client's last error, such as an unreachable broker."""
        return self.delivery.trouble

    def send(self, message: Message, samples: int) -> None:
        """Queue a message; wait for room if there is none and no spool."""
        delivery = self.delivery
        account = delivery.account
        account.messages += 1
        account.samples += samples
        delivery.queue(Letter(self._topic, *message))
        if account.messages % POLL_EVERY == 0:
            delivery.poll()

    def refuse(self, refusal: Refusal) -> None:
        """Send an unreadable line, which was never in a topic, to the dead-letter topic."""
        account = self.delivery.account
        account.refused += 1
        if len(account.first_refusals) < REFUSALS_KEPT:
            account.first_refusals.append(refusal)
        detail = f"{refusal.where}: {refusal.reason}"[:REASON_LENGTH_MAX]
        headers = dead_letter_headers(
            [("source", self._source)],
            NOWHERE,
            [Fault(Reason.UNREADABLE_LINE, detail)],
            format_time(time.time_ns() // 1_000_000),
        )
        texts = [(name, value or b"") for name, value in headers]
        self.delivery.queue(Letter(self._refused_topic, None, refusal.raw, texts))

    def totals(self) -> Totals:
        """Return the state of the delivery for the collector's own page."""
        account, spool = self.delivery.account, self.delivery.spool
        return Totals(
            samples=account.samples,
            messages=account.messages,
            refused=account.refused,
            failed=account.failed,
            dropped=account.dropped,
            spool_bytes=spool.size if spool else 0,
            spool_messages=spool.messages if spool else 0,
            is_waiting=self.delivery.is_waiting,
        )

    def poll(self) -> None:
        """Process delivery reports."""
        self.delivery.poll()

    def finish(self, tick: "Callable[[], None]" = lambda: None) -> None:
        """Wait until every message is delivered or failed."""
        self.delivery.finish(tick)

    def give_up(self, patience_s: float) -> None:
        """Stop waiting after a moment for messages in flight."""
        self.delivery.give_up(patience_s)
