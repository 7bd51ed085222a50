"""Measures the time from a producer to a consumer, through every leader of a probe topic.

A probe is a record with a send time, once a second to each partition. Only records of this process
count: their key is random. The topic is created with one partition a broker if it does not exist.
"""

import json
import secrets
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas import logs
from barnabas.exporter.series_text import histogram
from barnabas.monitor.watcher import Watcher

if TYPE_CHECKING:
    from confluent_kafka import Message

NAME = "barnabas_end_to_end_seconds"
HELP = "From a producer's send to a consumer's receipt, by the leader of the probe's partition."
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
EVERY_S = 1.0
POLL_S = 0.05
RETENTION_MS = "600000"
NO_GROUP = "barnabas-exporter-probe"
END = -1

_logger = logs.get("probe")


class Latencies:
    """The histogram of each leader."""

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}
        self._sums: dict[int, float] = {}
        self._lock = threading.Lock()

    def add(self, leader: int, seconds: float) -> None:
        """Count one probe."""
        with self._lock:
            counts = self._counts.setdefault(leader, [0] * (len(BOUNDS) + 1))
            counts[bisect_left(BOUNDS, seconds)] += 1
            self._sums[leader] = self._sums.get(leader, 0.0) + seconds

    def text(self) -> str:
        """Return the histogram as text."""
        with self._lock:
            found = [(str(each), counts, self._sums[each]) for each, counts in self._counts.items()]
        return histogram(NAME, HELP, "leader", found, BOUNDS)


class Probe:
    """Produces and consumes probes, on a thread, from `start` to `stop`."""

    def __init__(self, properties: Mapping[str, object], topic: str, watcher: Watcher) -> None:
        self._properties = dict(properties)
        self._topic = topic
        self._watcher = watcher
        self._key = secrets.token_hex(8).encode()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        self.latencies = Latencies()

    def start(self) -> None:
        """Begin to probe."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join(EVERY_S * 10)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._probe()
            except KafkaException as error:
                _logger.warning("the probe failed", topic=self._topic, error=str(error))
            self._stopping.wait(EVERY_S)

    def _probe(self) -> None:
        """Send and receive until an error; then the clients are made anew."""
        partitions = self._partitions()
        if not partitions:
            return
        producer = Producer({"linger.ms": 0, **self._properties})
        consumer = Consumer({"group.id": NO_GROUP, "enable.auto.commit": False, **self._properties})
        try:
            consumer.assign([TopicPartition(self._topic, each, END) for each in partitions])
            next_s = time.monotonic() + EVERY_S
            while not self._stopping.is_set():
                if time.monotonic() >= next_s:
                    self._send(producer, partitions)
                    next_s += EVERY_S
                message = consumer.poll(POLL_S)
                if message is not None:
                    self._receive(message)
        finally:
            consumer.close()
            producer.flush(1)

    def _send(self, producer: Producer, partitions: Sequence[int]) -> None:
        for each in partitions:
            value = json.dumps({"sent_ns": time.monotonic_ns()}).encode()
            producer.produce(self._topic, value, self._key, each)
        producer.poll(0)

    def _receive(self, message: "Message") -> None:
        error = message.error()
        if error is not None:
            if not error.retriable():
                raise KafkaException(error)
            return
        if message.key() != self._key:
            return
        sent_ns = json.loads(message.value() or b"{}").get("sent_ns")
        leader = self._leaders().get(message.partition() or 0)
        if isinstance(sent_ns, int) and leader is not None:
            self.latencies.add(leader, (time.monotonic_ns() - sent_ns) / 1e9)

    def _leaders(self) -> Mapping[int, int]:
        state = self._watcher.state
        topic = None if state is None else state.topics.get(self._topic)
        if topic is None:
            return {}
        return {each.number: each.leader for each in topic.partitions if each.leader is not None}

    def _partitions(self) -> list[int]:
        """Return the partitions of the topic, once it exists."""
        state = self._watcher.state
        if state is None:
            return []
        if self._topic not in state.topics:
            self._create(len(state.overview.brokers))
            self._watcher.look()
            return []
        return [each.number for each in state.topics[self._topic].partitions]

    def _create(self, brokers: int) -> None:
        admin = AdminClient(self._properties)
        topic = NewTopic(self._topic, brokers, config={"retention.ms": RETENTION_MS})
        for created in admin.create_topics([topic]).values():
            created.result(30)
