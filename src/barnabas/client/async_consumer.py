"""The asyncio version of `Consumer`.

    async with AsyncConsumer(group="billing") as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            ...

One thread of ours waits inside librdkafka, a tenth of a second at a time. Prefetched messages are
returned in the event loop, without that thread.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from barnabas.client.arguments import OutOfRange, Start, StartWord, as_timeout
from barnabas.client.client_messages import Message
from barnabas.client.client_settings import DEFAULT_BOOTSTRAP, Settings, for_consumer, group_start
from barnabas.client.errors import ClosedError, UsageError
from barnabas.client.session import OnPartitions, Session
from barnabas.model.ids import TopicPartition

SLICE_S = 0.1
"""How long a thread stays in librdkafka. Commits and seeks wait for it, and so does a program that
ends while a cancelled call runs."""

T = TypeVar("T")


class AsyncConsumer:
    """Reads records in an event loop; one task at a time may poll.

    A call that is cancelled while librdkafka executes it completes on the consumer's thread.
    The session therefore belongs to the thread that holds its lock: the consumer's for the length
    of a call, the event loop's while it returns a message.
    """

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
        """`start` and `out_of_range` have the same meaning as in `Consumer`."""
        begin = group_start(start, out_of_range, settings)
        properties = for_consumer(
            bootstrap,
            group=group,
            auto_commit=auto_commit,
            out_of_range=out_of_range,
            settings=settings,
        )
        self._session = Session(properties, grouped=group is not None, start=begin)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="barnabas-consumer")
        self._lock = threading.Lock()
        self._closing = False
        self._ending: Future[None] | None = None
        self._waiting = False

    async def subscribe(
        self,
        topics: Iterable[str],
        *,
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
    ) -> None:
        """Join the group; the callbacks run on the consumer's thread."""
        await self._run(self._session.subscribe, topics, on_assign, on_revoke)

    async def assign(
        self, partitions: Iterable[TopicPartition], start: Start = "beginning"
    ) -> None:
        """Read exactly these partitions, from "beginning", "end" or an offset."""
        await self._run(self._session.assign, partitions, start)

    async def poll(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message, or None after the timeout; without one, wait for a message.

        Cancelling loses no message: one that arrives meanwhile is returned by the next call.
        """
        message = self._take()
        return await self._wait(as_timeout(timeout_s)) if message is None else message

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None = None, *, wait: bool = True
    ) -> None:
        """Commit all returned messages, or the given next offsets."""
        await self._run(lambda: self._session.commit(offsets, wait=wait))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions until `resume`."""
        await self._run(self._session.pause, partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue reading paused partitions."""
        await self._run(self._session.resume, partitions)

    async def seek(self, partition: TopicPartition, start: Start) -> None:
        """Continue an assigned partition at "beginning", "end" or an offset."""
        await self._run(self._session.seek, partition, start)

    async def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset, or None before the first message."""
        return await self._run(self._session.position, partition)

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, for `assign`."""
        return await self._run(self._session.partitions, topic)

    async def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset, and the offset of the next record to be written."""
        return await self._run(self._session.offsets, partition)

    async def close(self) -> None:
        """Mark the last message as processed, commit if that is automatic, and leave the group."""
        await self._end(settled=True)

    async def __aenter__(self) -> Self:
        self._require_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end(settled=kind is None)

    def __aiter__(self) -> Self:
        self._require_open()
        return self

    async def __anext__(self) -> Message:
        while not self._closing:
            try:
                message = await self.poll(SLICE_S)
            except ClosedError:  # by another task, while this one waited
                break
            if message is not None:
                return message
        raise StopAsyncIteration

    def _take(self) -> Message | None:
        """Return the next message; None while the thread executes a cancelled call."""
        self._require_open()
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._session.settle()
            return self._session.take()
        finally:
            self._lock.release()

    async def _wait(self, timeout_s: float | None) -> Message | None:
        if self._waiting:
            raise UsageError("another task is waiting in poll; create one consumer per task")
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_s is None else loop.time() + timeout_s
        self._waiting = True
        try:
            while True:
                left_s = SLICE_S if deadline_s is None else deadline_s - loop.time()
                await self._run(self._session.fill, max(0.0, min(SLICE_S, left_s)))
                message = self._take()
                if message is not None or left_s <= 0:
                    return message
        finally:
            self._waiting = False

    async def _end(self, *, settled: bool) -> None:
        if self._ending is None:
            self._ending = self._submit(lambda: self._session.close(settled=settled))
            self._closing = True
            self._thread.shutdown(wait=False)
        # Not cancelled with its caller: a consumer that does not leave delays its group.
        await asyncio.shield(asyncio.wrap_future(self._ending))

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a call on the thread. A call that was cancelled after its start still completes."""
        self._require_open()
        return await asyncio.wrap_future(self._submit(work, *arguments))

    def _submit(self, work: Callable[..., T], *arguments: object) -> Future[T]:
        def locked() -> T:
            with self._lock:
                return work(*arguments)

        return self._thread.submit(locked)

    def _require_open(self) -> None:
        if self._closing:
            raise ClosedError("this consumer is closed; create another one")
