"""The way into the topics: an idempotent producer that keeps account of every message.

Delivery reports are asked for failures only: at hundreds of thousands of samples a second a Python
call for every success would cost as much as the sending.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.telemetry.messages import Message
from barnabas.telemetry.readings import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Message as Report

PRODUCER = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 200_000,
    "message.max.bytes": 4_000_000,
    "delivery.report.only.error": True,
    "partitioner": "murmur2_random",
}
"""Keys land where Java's producers would put them. Batches of many snapshots pack to a fifth of
their size, as they repeat each other's names."""

TIME_TYPE = "message.timestamp.type"
APPEND_TIME = "LogAppendTime"
"""The broker stamps records with its own clock, which silver compares the samples' time with."""
REQUEST_TIMEOUT_S = 30.0
ROOM_WAIT_S = 0.1
POLL_EVERY = 256
REFUSALS_KEPT = 5
REASON_LENGTH_MAX = 500


@dataclass
class Account:
    """What became of everything."""

    messages: int = 0
    samples: int = 0
    failed: int = 0
    refused: int = 0
    unknown: int = 0
    """Sent, and given up before the broker's word came."""
    first_refusals: list[Refusal] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


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
        f"Topic {topic} keeps the producers' times, so wrong clocks cannot be told; "
        f"`barnabas config set topic {topic} {TIME_TYPE}={APPEND_TIME}` mends that"
    )


class Publisher:
    """Sends messages to a topic, and what could not be read to the topic of dead letters."""

    def __init__(
        self, settings: "Mapping[str, object]", *, topic: str, refused_topic: str, source: str
    ) -> None:
        """Take librdkafka's settings; what they say wins over ours."""
        self._producer = Producer(
            {**PRODUCER, **settings, "on_delivery": self._on_failure, "error_cb": self._on_error}
        )
        self._topic = topic
        self._refused_topic = refused_topic
        self._source = source.encode()
        self._trouble: deque[str] = deque(maxlen=1)
        self.account = Account()

    @property
    def trouble(self) -> str:
        """What the client last complained about, such as a broker that went away."""
        return self._trouble[0] if self._trouble else ""

    def send(self, message: Message, samples: int) -> None:
        """Queue a message, waiting for room where there is none."""
        key, value, headers = message
        self._queue(self._topic, value, key, headers)
        account = self.account
        account.messages += 1
        account.samples += samples
        if account.messages % POLL_EVERY == 0:
            self._producer.poll(0)

    def refuse(self, refusal: Refusal) -> None:
        """Keep a line that could not be read."""
        account = self.account
        account.refused += 1
        if len(account.first_refusals) < REFUSALS_KEPT:
            account.first_refusals.append(refusal)
        headers = [
            ("reason", refusal.reason[:REASON_LENGTH_MAX].encode()),
            ("source", self._source),
            ("where", refusal.where.encode()),
        ]
        self._queue(self._refused_topic, refusal.raw, None, headers)

    def poll(self) -> None:
        """Take in what the broker said meanwhile."""
        self._producer.poll(0)

    def finish(self, tick: "Callable[[], None]" = lambda: None) -> None:
        """Wait until everything is decided; librdkafka gives each message a deadline."""
        while self._producer.flush(ROOM_WAIT_S):
            tick()

    def give_up(self, patience_s: float) -> None:
        """Stop waiting after a moment for what is on its way."""
        self.account.unknown = self._producer.flush(patience_s)

    def _queue(
        self, topic: str, value: bytes, key: bytes | None, headers: list[tuple[str, bytes]]
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers)
            except BufferError:
                self._producer.poll(ROOM_WAIT_S)
            except KafkaException as error:
                self._fail(error.args[0])
                return
            else:
                return

    def _on_failure(self, error: KafkaError | None, _: "Report") -> None:
        if error is not None:
            self._fail(error)

    def _on_error(self, error: KafkaError) -> None:
        self._trouble.append(error.str())

    def _fail(self, error: KafkaError) -> None:
        self.account.failed += 1
        self.account.failures[error.str()] += 1
