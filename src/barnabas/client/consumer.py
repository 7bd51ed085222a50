"""A blocking consumer, for polling or iteration.

    with Consumer("127.0.0.1:9092", group="billing") as consumer:
        consumer.subscribe(["orders"])
        for message in consumer:
            handle(message)

A message counts as processed, and is committed, when the program requests the next one. If an
exception leaves the `with` block, the current message stays uncommitted and is read again.

Without a group, `assign` reads partitions from a given position, and the broker stores nothing.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from barnabas.client.arguments import OutOfRange, Start, StartWord, as_count, as_timeout
from barnabas.client.client_messages import Message
from barnabas.client.client_settings import DEFAULT_BOOTSTRAP, Settings, for_consumer, group_start
from barnabas.client.errors import ClosedError
from barnabas.client.session import OnPartitions, Session
from barnabas.model.ids import TopicPartition

# Long enough to cost little, short enough to react to Ctrl-C.
SLICE_S = 0.5


class Consumer:
    """Reads records; for use by one thread. Another thread may only close it."""

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
        """`start` ("beginning" or "end") is for groups without committed offsets.

        `out_of_range` is for an offset that the log does not have, because it was deleted or never
        written: with "error" `poll` raises `OffsetOutOfRangeError` until `seek`; "beginning" and
        "end" continue there without an error.
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
        """Return the next message, or None after the timeout; without one, wait for a message."""
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
        """Commit all returned messages, or the given next offsets."""
        self._session.commit(offsets, wait=wait)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions until `resume`."""
        self._session.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue reading paused partitions."""
        self._session.resume(partitions)

    def seek(self, partition: TopicPartition, start: Start) -> None:
        """Continue an assigned partition at "beginning", "end" or an offset."""
        self._session.seek(partition, start)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset, or None before the first message."""
        return self._session.position(partition)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, for `assign`."""
        return self._session.partitions(topic)

    def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset, and the offset of the next record to be written."""
        return self._session.offsets(partition)

    def close(self) -> None:
        """Mark the last message as processed, commit if that is automatic, and leave the group.

        From another thread than the one that polls, the last message stays unprocessed.
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
