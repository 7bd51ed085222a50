"""Idempotent producers that run while brokers fail, and record every acknowledgement."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.waiting import eventually
from tests.support.disks.ledger import Ledger, Stored, parse_value, value_of

PATIENCE_S = 60.0
PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 2,
    "message.timeout.ms": 120_000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "queue.buffering.max.messages": 400,
    "log_level": 0,
}


class Load:
    """Runs producers on separate threads, from `start` to `finish`."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        producers: int = 2,
        size: int = 100,
        idempotent: bool = True,
        batch_bytes: int = 50_000,
    ) -> None:
        self.ledger = Ledger()
        self.failures: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._size = size
        self._settings = {
            **PRODUCER,
            "enable.idempotence": idempotent,
            "batch.size": batch_bytes,
        }
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._produce, args=(f"producer-{number}",), daemon=True)
            for number in range(producers)
        ]

    def start(self) -> "Load":
        """Start producing."""
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, count: int) -> None:
        """Return once the given number of further records was acknowledged."""
        goal = self.ledger.count + count
        eventually(lambda: self.ledger.count >= goal or self.failures, 60)

    def finish(self) -> None:
        """Stop sending, and wait until all sent records are acknowledged."""
        self._ending.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a producer does not finish"

    def __enter__(self) -> "Load":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()

    def _produce(self, name: str) -> None:
        producer = Producer(
            {**self._settings, "bootstrap.servers": self._bootstrap, "client.id": name}
        )
        number = 0
        while not self._ending.is_set():
            for partition in range(self._partitions):
                self._send(producer, name, number, partition)
            number += 1
        while not self.failures and producer.flush(0.1):
            pass
        producer.purge()

    def _send(self, producer: Any, name: str, number: int, partition: int) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{name} {number}: {error}")
                self._ending.set()
                return
            self.ledger.acknowledge(message.partition(), name, number, message.offset())

        value = value_of(name, number, self._size)
        while not self._ending.is_set():
            try:
                producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
            except BufferError:
                producer.poll(0.05)
            else:
                producer.poll(0)
                return


def produce_one(
    bootstrap: str, topic: str, value: bytes, partition: int = 0, timeout_ms: int = 20_000
) -> int:
    """Produce one record and retry until the timeout; return its offset, or raise."""
    outcome: list[KafkaError | int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcome.append(message.offset() if error is None else error)

    producer = Producer(
        {**PRODUCER, "bootstrap.servers": bootstrap, "message.timeout.ms": timeout_ms}
    )
    producer.produce(topic, value, partition=partition, on_delivery=delivered)
    producer.flush(timeout_ms / 1000 + 5)
    assert outcome, "the record was neither delivered nor refused"
    if isinstance(outcome[0], KafkaError):
        raise KafkaException(outcome[0])
    return outcome[0]


def create_topic(
    bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with the default replication factor, and return once it exists."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(topic, partitions, config=dict(config or {}))])
    made[topic].result(30)


def consume_all(bootstrap: str, topic: str, partitions: int) -> dict[int, list[Stored]]:
    """Read a topic from its beginning to its current end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "ledger",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    try:
        ends = {
            partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)[1]
            for partition in range(partitions)
        }
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found: dict[int, list[Stored]] = {partition: [] for partition in ends}
        deadline = time.monotonic() + PATIENCE_S
        while any(ends[p] > (found[p][-1].offset + 1 if found[p] else 0) for p in ends):
            assert time.monotonic() < deadline, f"no more records arrive; the ends are {ends}"
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                found[message.partition()].append(parse_value(message.offset(), message.value()))
        return found
    finally:
        consumer.close()
