"""Reads all committed records of a topic."""

from typing import NamedTuple

import confluent_kafka
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0


class Seen(NamedTuple):
    """A record with its partition and offset."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def create_topic(bootstrap: str, name: str, partitions: int = 1, **config: str) -> str:
    """Create a topic; underscores in the names of settings stand for dots."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    made = admin.create_topics([NewTopic(name, partitions, config=settings)])
    made[name].result(PATIENCE_S)
    return name


def committed_records(bootstrap: str, topic: str) -> list[Seen]:
    """Return all committed records, each partition from its start to its current end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "topic-reading",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        return _read_all(consumer, topic)
    finally:
        consumer.close()


def _read_all(consumer: Consumer, topic: str) -> list[Seen]:
    partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found: list[Seen] = []
    open_partitions = set(partitions)
    while open_partitions:
        first = consumer.poll(PATIENCE_S)
        assert first is not None, f"{topic} was not read to its end within {PATIENCE_S} s"
        # `consume` waits for the maximal number of records, or for its timeout.
        for message in [first, *consumer.consume(10_000, 0)]:
            error = message.error()
            if error is None:
                found.append(_seen(message))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            else:
                raise confluent_kafka.KafkaException(error)
    return found


def _seen(message: confluent_kafka.Message) -> Seen:
    return Seen(
        message.partition(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
    )
