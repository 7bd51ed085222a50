"""A work queue: each message goes to one of the programs that take from it.

    with Queue.create("jobs") as queue:
        queue.put("resize cat.jpg")
        for message in queue:
            work(message.text)
            message.ack()

A queue is a topic and a share group (KIP-932). It works with Barnabas and with Apache Kafka from
4.2 on. A message that is not answered before its deadline goes to another member, so a message can
come twice, but is not lost. Messages are not ordered across members.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from barnabas.client.arguments import as_count, as_timeout, as_topic
from barnabas.client.client_messages import Data, Headers, Record, SendResult
from barnabas.client.client_settings import DEFAULT_BOOTSTRAP, Settings
from barnabas.client.errors import ClosedError, SettingError
from barnabas.client.link_failures import converted
from barnabas.client.producer import Producer
from barnabas.client.queue_acks import QueueAcks
from barnabas.client.queue_creation import create_queue
from barnabas.client.queue_message import QueueMessage
from barnabas.client.queue_options import (
    PREFETCH,
    as_group,
    as_partitions_count,
    as_prefetch,
    queue_properties,
)
from barnabas.client.queue_stats import QueueStats, queue_stats
from barnabas.wire.share_client import ShareConsumer
from barnabas.wire.share_values import FetchLimits

SLICE_S = 0.5
"""How long an iteration waits at a time, so that Ctrl-C and `close` end it."""
CLOSE_S = 10.0


class Queue:
    """Puts and takes messages; safe to share between threads, except for `auto_ack`."""

    def __init__(
        self,
        topic: str,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        group: str | None = None,
        auto_ack: bool = False,
        prefetch: int = PREFETCH,
        settings: Settings | None = None,
    ) -> None:
        """Connect on first use. The group is named like the topic, unless you name another.

        With `prefetch` one request brings more messages than you wait for, which is faster for
        short jobs. They are held meanwhile, and given back on `close`, which counts as a delivery.
        """
        if not isinstance(auto_ack, bool):
            raise SettingError(f"auto_ack={auto_ack!r} is not known; write True or False")
        self.topic = as_topic(topic)
        self.group = as_group(group, self.topic)
        self.auto_ack = auto_ack
        self._prefetch = as_prefetch(prefetch)
        self._properties = queue_properties(bootstrap, settings)
        self._bootstrap, self._settings = bootstrap, settings
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._consumer: ShareConsumer | None = None
        self._acks: QueueAcks | None = None
        self._given: list[QueueMessage] = []
        self.closed = False

    @classmethod
    def create(  # noqa: PLR0913 - the options of the queue besides those of the topic
        cls,
        topic: str,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        topic_configs: Mapping[str, str] | None = None,
        group_configs: Mapping[str, str] | None = None,
        exist_ok: bool = False,
        group: str | None = None,
        auto_ack: bool = False,
        prefetch: int = PREFETCH,
        settings: Settings | None = None,
    ) -> Self:
        """Create the topic and the group, which begins with the first message; return the queue.

        With `exist_ok` a topic that exists already is used as it is.
        """
        queue = cls(
            topic,
            bootstrap,
            group=group,
            auto_ack=auto_ack,
            prefetch=prefetch,
            settings=settings,
        )
        create_queue(
            queue._properties,
            queue.topic,
            queue.group,
            partitions=as_partitions_count(partitions, "partitions"),
            replication_factor=as_partitions_count(replication_factor, "replication_factor"),
            topic_configs=topic_configs,
            group_configs=group_configs,
            exist_ok=exist_ok,
        )
        return queue

    def put(self, value: Data, *, key: Data = None, headers: Headers = ()) -> SendResult:
        """Add one message and wait until the broker has it."""
        return self._open_producer().send(self.topic, value, key=key, headers=headers)

    def put_many(self, values: Iterable[Record | Data]) -> list[SendResult]:
        """Add several messages and wait for all."""
        return self._open_producer().send_batch(self.topic, values)

    def take(self, timeout_s: float | None = None) -> QueueMessage | None:
        """Wait for a message; None if there was none within the timeout."""
        found = self.take_batch(1, timeout_s)
        return found[0] if found else None

    def take_batch(self, count_max: int, timeout_s: float | None = None) -> list[QueueMessage]:
        """Wait for a message, then return all that have come, up to `count_max`."""
        consumer, acks = self._member()
        count, limit_s = as_count(count_max), as_timeout(timeout_s)
        self._ack_given()
        with converted():
            records = consumer.take(count, limit_s)
        self._require_open()
        messages = [QueueMessage(each, acks) for each in records]
        if self.auto_ack:
            self._given = messages
        return messages

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every answer is stored; raise `LockLostError` if one came too late."""
        self._require_open()
        if self._acks is not None:
            self._acks.flush(as_timeout(timeout_s))

    def stats(self) -> QueueStats:
        """Return how many messages wait, and how many members the group has."""
        self._require_open()
        return queue_stats(self._properties, self.topic, self.group)

    def close(self) -> None:
        """Send the answers, give back what is held, leave the group; raise if an answer was lost.

        With `auto_ack` the last message counts as done.
        """
        self.end(is_done=True)

    def __iter__(self) -> Iterator[QueueMessage]:
        self._require_open()
        return self._until_closed()

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end(is_done=kind is None)

    def _until_closed(self) -> Iterator[QueueMessage]:
        while not self.closed:
            try:
                message = self.take(SLICE_S)
            except ClosedError:  # by another thread, while this one waited
                return
            if message is not None:
                yield message

    def end(self, *, is_done: bool) -> None:
        """Close; `is_done` says whether the last message counts as done with `auto_ack`."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        if is_done:
            self._ack_given()
        try:
            if self._consumer is not None:
                self._consumer.close()
        finally:
            if self._producer is not None:
                self._producer.close(CLOSE_S)
        if is_done and self._acks is not None:
            self._acks.raise_lost()

    def _ack_given(self) -> None:
        given, self._given = self._given, []
        for message in given:
            if not message.is_answered:
                message.ack()

    def _open_producer(self) -> Producer:
        with self._lock:
            self._require_open()
            if self._producer is None:
                self._producer = Producer(self._bootstrap, settings=self._settings)
            return self._producer

    def _member(self) -> tuple[ShareConsumer, QueueAcks]:
        with self._lock:
            self._require_open()
            if self._consumer is None or self._acks is None:
                with converted():
                    self._consumer = ShareConsumer(
                        self._properties,
                        self.group,
                        [self.topic],
                        limits=FetchLimits(records=self._prefetch),
                    )
                self._acks = QueueAcks(self._consumer)
            return self._consumer, self._acks

    def _require_open(self) -> None:
        if self.closed:
            raise ClosedError("this queue is closed; create another one")
