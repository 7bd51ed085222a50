"""Reads a topic, from its beginning or its end on, on a thread, and hands each record to a table.

The topic need not exist: the follower looks for it in what the watcher knows. A reader that fails
is opened anew; tables take the same record twice without harm. The reader pushes no metrics of its
own (KIP-714): they would be among those that it reads.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from barnabas import logs
from barnabas.monitor.watcher import Watcher

if TYPE_CHECKING:
    from confluent_kafka import Message

RETRY_S = 5.0
POLL_S = 0.5
STOP_S = 10.0
NO_GROUP = "barnabas-exporter-topics"

Apply = Callable[[bytes | None, bytes | None], None]

_logger = logs.get("exporter")


class TopicFollower:
    """The reader of one topic, from `start` to `stop`."""

    def __init__(
        self,
        properties: Mapping[str, object],
        topic: str,
        watcher: Watcher,
        apply: Apply,
        *,
        start: int = OFFSET_BEGINNING,
    ) -> None:
        """`apply` gets the key and the value of each record, under `lock`."""
        self._properties = dict(properties)
        self._topic = topic
        self._watcher = watcher
        self._apply = apply
        self._start = start
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"reads {topic}", daemon=True)
        self.lock = threading.Lock()

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            partitions = self._partitions()
            if partitions:
                try:
                    self._read(partitions)
                except KafkaException as error:
                    _logger.warning("a topic was not read", topic=self._topic, error=str(error))
            self._stopping.wait(RETRY_S)

    def _read(self, partitions: Sequence[int]) -> None:
        """Read until the topic changes or a broker reports an error that stays."""
        own = {"group.id": NO_GROUP, "enable.auto.commit": False, "enable.metrics.push": False}
        consumer = Consumer({**own, **self._properties})
        try:
            consumer.assign([TopicPartition(self._topic, each, self._start) for each in partitions])
            while not self._stopping.is_set() and self._partitions() == partitions:
                message = consumer.poll(POLL_S)
                if message is not None:
                    self._take(message)
        finally:
            consumer.close()

    def _take(self, message: "Message") -> None:
        error = message.error()
        if error is not None:
            if not error.retriable():
                raise KafkaException(error)
            return
        key, value = message.key(), message.value()
        with self.lock:
            self._apply(_bytes(key), _bytes(value))

    def _partitions(self) -> list[int]:
        state = self._watcher.state
        topic = None if state is None else state.topics.get(self._topic)
        return [] if topic is None else [each.number for each in topic.partitions]


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
