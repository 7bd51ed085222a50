"""Stores silences in the compacted topic gpu-silences; the end of a silence is a tombstone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas import logs
from barnabas.model.ids import NO_GROUP
from barnabas.telemetry.notify.silences import Silence, SilenceError, silence_from
from barnabas.telemetry.samples.telemetry_topics import SILENCES

if TYPE_CHECKING:
    from confluent_kafka import Message

ANSWER_TIMEOUT_S = 30.0
RECORDS_AT_ONCE = 500

log = logs.get("notify")


class SilenceTopicError(Exception):
    """The topic cannot be read or written; the text says why."""


def ensure(client: Mapping[str, Any], topic: str = SILENCES) -> None:
    """Create the topic if it is missing."""
    wanted = NewTopic(
        topic, num_partitions=1, replication_factor=-1, config={"cleanup.policy": "compact"}
    )
    admin = AdminClient(dict(client))
    try:
        admin.create_topics([wanted], request_timeout=ANSWER_TIMEOUT_S)[topic].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def put(client: Mapping[str, Any], silence_id: str, value: bytes | None, topic: str) -> None:
    """Write a silence, or None for its end, and wait until the broker has it."""
    failures: list[str] = []

    def settle(error: KafkaError | None, _: "Message") -> None:
        if error is not None:
            failures.append(str(error.str()))

    producer = Producer({**client, "acks": "all", "enable.idempotence": True})
    producer.produce(topic, value, key=silence_id.encode(), on_delivery=settle)
    left = producer.flush(ANSWER_TIMEOUT_S)
    if left or failures:
        why = failures[0] if failures else f"no answer within {ANSWER_TIMEOUT_S:.0f} s"
        raise SilenceTopicError(f"{topic} did not take the silence: {why}; try again")


def arrived(consumer: Consumer, at_most: int, timeout_s: float) -> "list[Message]":
    """Return the next messages as soon as any arrive; `consume` alone would wait for `at_most`."""
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(at_most - 1, 0.0)]


class SilenceReader:
    """The present silences, kept up to date."""

    def __init__(self, client: Mapping[str, Any], topic: str = SILENCES) -> None:
        self._silences: dict[str, Silence] = {}
        self._consumer = Consumer(
            {
                **client,
                "group.id": NO_GROUP,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        found = self._consumer.list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        self._behind = set(found.partitions)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in found.partitions])

    def load(self) -> None:
        """Read all present records."""
        while self._behind:
            if not self.refresh(ANSWER_TIMEOUT_S):
                raise SilenceTopicError(
                    "no broker answered about the topic of silences; "
                    "check --bootstrap and try again"
                )

    def refresh(self, timeout_s: float = 0.0) -> int:
        """Apply new records; return the number of records and ends of partitions."""
        got = arrived(self._consumer, RECORDS_AT_ONCE, timeout_s)
        for message in got:
            error = message.error()
            if error is None:
                self._take(message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                self._behind.discard(message.partition())
            elif error.fatal():
                raise KafkaException(error)
        return len(got)

    @property
    def silences(self) -> list[Silence]:
        """All silences, including future and past ones, in the order of their start."""
        return sorted(self._silences.values(), key=lambda each: (each.start_ms, each.silence_id))

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        silence_id = (key or b"").decode(errors="replace")
        self._silences.pop(silence_id, None)
        if value is None:
            return
        try:
            self._silences[silence_id] = silence_from(value)
        except SilenceError as error:
            log.warning("invalid silence record ignored", why=str(error))
