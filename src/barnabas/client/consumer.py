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

from barnabas.client.arguments import OutOfRange, Start, StartWord, as_count, as_timeout
from barnabas.client.errors import ClosedError
from barnabas.client.messages import Message
from barnabas.client.session import OnPartitions, Session
from barnabas.client.settings import DEFAULT_BOOTSTRAP, Settings, for_consumer, group_start
from barnabas.model.ids import TopicPartition

# Long enough not to matter, short enough that Ctrl-C is noticed.
SLICE_S = 0.5


class Consumer:
    """Reads records; belongs to one thread. Another thread may close it, and nothing else."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        group: str | None = None,
        start: StartWord = "beginning",
        out_of_range: OutOfRange = "error",
        auto_commit: bool = True,
        settings: Settings | None = None,
    ) -> None:
        """`start` ("beginning" or "end") is for groups that have committed nothing yet.

        `out_of_range` is for an offset that the log does not have, because it was deleted or never
        written: "error" has `poll` raise `OffsetOutOfRangeError` until `seek`; "beginning" and
        "end" read on from there, and say nothing.
        """
        begin = group_start(start, out_of_range, settings)
        properties = for_consumer(
            bootstrap,
            group=group,
            auto_commit=auto_commit,
            out_of_range=out_of_range,
            settings=settings,
        )
        self._session = Session(properties, grouped=group is not None, start=begin)

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
        message = self._session.take()
        return self._wait(as_timeout(timeout_s)) if message is None else message

    def poll_batch(self, count_max: int, timeout_s: float | None = None) -> list[Message]:
        """Return up to `count_max` messages, waiting only for the first of them."""
        as_count(count_max)
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
        """Count the last message as done, commit where that is automatic, and leave.

        On another thread than the one that polls, the last message is not counted as done.
        """
        self._session.close(settled=True)

    def __iter__(self) -> Iterator[Message]:
        self._session.require_open()
        return self._until_closed()

    def __enter__(self) -> Self:
        self._session.require_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.close(settled=kind is None)

    def _until_closed(self) -> Iterator[Message]:
        while not self._session.closed:
            try:
                message = self.poll(SLICE_S)
            except ClosedError:  # by another thread, while this one waited
                return
            if message is not None:
                yield message

    def _wait(self, timeout_s: float | None) -> Message | None:
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = SLICE_S if deadline_s is None else deadline_s - time.monotonic()
            self._session.fill(max(0.0, min(SLICE_S, left_s)))
            message = self._session.take()
            if message is not None or left_s <= 0:
                return message
