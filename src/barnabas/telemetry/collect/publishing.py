"""Encodes samples as messages for the topics, and counts what was sent, refused and lost.

`delivering` sees to it that they arrive.
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
"""The broker stamps records with its own clock, which silver compares the samples' time with."""
REQUEST_TIMEOUT_S = 30.0
POLL_EVERY = 256
REFUSALS_KEPT = 5
REASON_LENGTH_MAX = 500
NOWHERE = Coordinates("", -1, -1)
"""Where a line was that no topic ever held."""


def ensure_topic(
    settings: "Mapping[str, object]", topic: str, *, partitions: int, replicas: int = -1
) -> str | None:
    """Create the topic where it is missing; return a warning where it is unlike ours."""
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
    """Sends messages to a topic, and what could not be read to the topic of dead letters."""

    def __init__(self, delivery: Delivery, *, topic: str, refused_topic: str, source: str) -> None:
        """Take what delivers, and the names of both topics."""
        self.delivery = delivery
        self._topic = topic
        self._refused_topic = refused_topic
        self._source = source.encode()

    @property
    def account(self) -> Account:
        """What became of everything."""
        return self.delivery.account

    @property
    def trouble(self) -> str:
        """What the client last complained about, such as a broker that went away."""
        return self.delivery.trouble

    def send(self, message: Message, samples: int) -> None:
        """Queue a message, waiting for room where there is none and no spool."""
        delivery = self.delivery
        account = delivery.account
        account.messages += 1
        account.samples += samples
        delivery.queue(Letter(self._topic, *message))
        if account.messages % POLL_EVERY == 0:
            delivery.poll()

    def refuse(self, refusal: Refusal) -> None:
        """Keep a line that could not be read; it was never on a topic."""
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
        """Return what the collector's own page says about delivery."""
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
        """Take in what the broker said meanwhile."""
        self.delivery.poll()

    def finish(self, tick: "Callable[[], None]" = lambda: None) -> None:
        """Wait until everything is decided."""
        self.delivery.finish(tick)

    def give_up(self, patience_s: float) -> None:
        """Stop waiting after a moment for messages in flight."""
        self.delivery.give_up(patience_s)
