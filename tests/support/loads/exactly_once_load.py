"""The input producer and the output readers of an exactly-once test."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas.testing.waiting import eventually
from tests.support.loads.exactly_once import ABORTED, Seen
from tests.support.loads.load import PRODUCER

PATIENCE_S = 120.0
KEYS = 5
CONSUMER = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "check.crcs": True,
    "fetch.wait.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
}


class Feed:
    """Sends numbered records to every partition at a given rate, from `start` to `finish`.

    The producer is idempotent, so that the input has each number once and in order.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, rate_per_s: int) -> None:
        self.failures: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._pause_s = partitions / rate_per_s
        self._rounds = 0
        self._producer = Producer({**PRODUCER, "bootstrap.servers": bootstrap})
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def sent(self) -> dict[int, list[bytes]]:
        """Return the values that each partition of the input must have, in order."""
        numbers = [b"%d" % number for number in range(self._rounds)]
        return dict.fromkeys(range(self._partitions), numbers)

    @property
    def count(self) -> int:
        """How many records were sent."""
        return self._rounds * self._partitions

    def finish(self) -> None:
        """Stop sending, and wait until all sent records are acknowledged."""
        self._ending.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the input producer does not finish"
        assert self.failures == []

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()

    def _produce(self) -> None:
        while not self._ending.wait(self._pause_s):
            key, value = b"key-%d" % (self._rounds % KEYS), b"%d" % self._rounds
            for partition in range(self._partitions):
                self._send(partition, key, value)
            self._rounds += 1
        while not self.failures and self._producer.flush(0.1):
            pass

    def _send(self, partition: int, key: bytes, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, partition=partition, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"{message.value()!r}: {error}")
            self._ending.set()


class CommittedReader:
    """A read_committed consumer that reads until stopped, and keeps everything it read.

    It belongs to no group, and must not reset its offset: if a broker loses records that it had
    delivered, the reader fails.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.seen: dict[int, list[Seen]] = {partition: [] for partition in range(partitions)}
        self.count = 0
        self.failures: list[str] = []
        self._consumer = _open(bootstrap, "read_committed")
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self.seen])
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def wait_for(self, more: int) -> None:
        """Return once the given number of further records was read."""
        goal = self.count + more
        eventually(lambda: self.count >= goal or self.failures, PATIENCE_S)
        assert self.failures == []

    def wait_for_all(self, count: int) -> None:
        """Return once this many records were read in total, or no more arrive: the rules decide."""
        for _ in range(int(PATIENCE_S)):
            if self.count >= count or self.failures or self._ending.wait(1):
                return

    def wait_for_each(self, more: int = 1) -> None:
        """Return once every partition has the given number of further records."""
        goals = {partition: len(content) + more for partition, content in self.seen.items()}
        eventually(lambda: all(len(self.seen[p]) >= goals[p] for p in goals), PATIENCE_S)

    def __enter__(self) -> "CommittedReader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(PATIENCE_S)
        self._consumer.close()

    def _read(self) -> None:
        while not self._ending.is_set():
            for message in self._consumer.consume(1000, 0.1):
                if (error := message.error()) is not None:
                    self._note(error)
                    continue
                self.seen[message.partition()].append(_seen(message))
                self.count += 1

    def _note(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():
            self.failures.append(str(error))


def read_all(
    bootstrap: str, topic: str, partitions: int, isolation: str = "read_committed"
) -> dict[int, list[Seen]]:
    """Read a topic from its beginning to its current end for read_committed consumers."""
    consumer = _open(bootstrap, isolation, {"enable.partition.eof": True})
    found: dict[int, list[Seen]] = {partition: [] for partition in range(partitions)}
    unread = set(found)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in found])

        def ended() -> bool:
            for message in consumer.consume(1000, 0.1):
                if (error := message.error()) is None:
                    found[message.partition()].append(_seen(message))
                    continue
                assert error.code() == KafkaError._PARTITION_EOF, error
                unread.discard(message.partition())
            return not unread

        eventually(ended, PATIENCE_S)
    finally:
        consumer.close()
    return found


def committed_offsets(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Return a group's committed offsets, once no transaction on them is open."""
    consumer = _open(bootstrap, "read_committed", {"group.id": group})
    try:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        return {place.partition: place.offset for place in consumer.committed(places, PATIENCE_S)}
    finally:
        consumer.close()


def count_aborted(found: Mapping[int, list[Seen]]) -> int:
    """Return how many records were written only to be aborted."""
    kinds = Counter(seen.value.startswith(ABORTED) for each in found.values() for seen in each)
    return kinds[True]


def _open(bootstrap: str, isolation: str, more: Mapping[str, object] | None = None) -> Any:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation}
    return Consumer({**CONSUMER, **settings, **(more or {})})


def _seen(message: Message) -> Seen:
    time_ms = message.timestamp()[1]
    return Seen(message.offset(), message.key() or b"", message.value() or b"", time_ms)
