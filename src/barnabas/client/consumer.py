"""A consumer that blocks, polls, or is simply iterated over.

    with Consumer("127.0.0.1:9092", group="billing") as consumer:
        consumer.subscribe(["orders"])
        for message in consumer:
            handle(message)

A message counts as done when the next one is asked for; only then is it committed. Leaving
the `with` block by an exception leaves the message at hand uncommitted, so it is read again.

Without a group, `assign` reads partitions from a place of the caller's choosing and nothing
is remembered on the broker.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from barnabas.client.messages import Message
from barnabas.client.session import OnPartitions, Session, Start
from barnabas.client.settings import DEFAULT_BOOTSTRAP, Settings, for_consumer
from barnabas.model.ids import TopicPartition

# Long enough not to matter, short enough that Ctrl-C is noticed.
SLICE_S = 0.5


class Consumer:
    """Reads records; belongs to one thread."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        group: str | None = None,
        start: str = "beginning",
        auto_commit: bool = True,
        settings: Settings | None = None,
    ) -> None:
        """`start` ("beginning" or "end") is for groups that have committed nothing yet."""
        properties = for_consumer(
            bootstrap, group=group, start=start, auto_commit=auto_commit, settings=settings
        )
        self._session = Session(properties, grouped=group is not None)

    def subscribe(
        self,
        topics: Iterable[str],
        *,
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
    ) -> None:
        """Join the group and share these topics with its other members."""
        self._session.subscribe(topics, on_assign, on_revoke)

    def assign(self, partitions: Iterable[TopicPartition], start: Start = "beginning") -> None:
        """Read exactly these partitions, from "beginning", "end" or an offset."""
        self._session.assign(partitions, start)

    def poll(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message; None when the time is over, never without a timeout."""
        self._session.require_open()
        self._session.settle()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while (message := self._session.take()) is None:
            left_s = SLICE_S if deadline_s is None else deadline_s - time.monotonic()
            self._session.fill(max(0.0, min(SLICE_S, left_s)))
            if left_s <= 0:
                return self._session.take()
        return message

    def poll_batch(self, count_max: int, timeout_s: float | None = None) -> list[Message]:
        """Return up to `count_max` messages, waiting only for the first of them."""
        first = self.poll(timeout_s)
        messages = [] if first is None else [first]
        while messages and len(messages) < count_max:
            message = self._session.take()
            if message is None:
                break
            messages.append(message)
        return messages

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Commit every message handed out so far, or the given next offsets."""
        self._session.settle()
        self._session.commit(offsets, wait=wait)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read nothing of these partitions until `resume`."""
        self._session.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read paused partitions on from where they were."""
        self._session.resume(partitions)

    def seek(self, partition: TopicPartition, start: Start) -> None:
        """Read an assigned partition on from "beginning", "end" or an offset."""
        self._session.seek(partition, start)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset that comes next, or None before the first message."""
        return self._session.position(partition)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, for `assign`."""
        return self._session.partitions(topic)

    def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset there is, and the one the next record will get."""
        return self._session.offsets(partition)

    def close(self) -> None:
        """Count the last message as done, commit where that is automatic, and leave."""
        if not self._session.closed:
            self._session.settle()
        self._session.close()

    def __iter__(self) -> Iterator[Message]:
        while not self._session.closed:
            message = self.poll(SLICE_S)
            if message is not None:
                yield message

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._session.close()
