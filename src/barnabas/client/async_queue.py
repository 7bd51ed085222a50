"""The asyncio version of `Queue`.

    async with AsyncQueue("jobs") as queue:
        await queue.put("resize cat.jpg")
        async for message in queue:
            await work(message.text)
            message.ack()

A thread waits for messages. A `take` that is cancelled loses none: the next one returns them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client.arguments import as_count, as_timeout
from barnabas.client.client_messages import Data, Headers, Record, SendResult
from barnabas.client.client_settings import DEFAULT_BOOTSTRAP, Settings
from barnabas.client.errors import ClosedError
from barnabas.client.queue import SLICE_S, Queue
from barnabas.client.queue_message import QueueMessage
from barnabas.client.queue_options import PREFETCH
from barnabas.client.queue_stats import QueueStats

THREADS = 8
"""How many calls may wait for brokers at a time, besides `take`."""

T = TypeVar("T")


class AsyncQueue:
    """Puts and takes messages in one event loop."""

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
        """Connect on first use; the options are those of `Queue`."""
        self._adopt(
            Queue(
                topic,
                bootstrap,
                group=group,
                auto_ack=auto_ack,
                prefetch=prefetch,
                settings=settings,
            )
        )

    def _adopt(self, queue: Queue) -> None:
        self._queue = queue
        self._taker = ThreadPoolExecutor(1, "barnabas-take")
        self._others = ThreadPoolExecutor(THREADS, "barnabas-queue")
        self._turn = asyncio.Lock()
        self._taking: Future[list[QueueMessage]] | None = None
        self._ready: deque[QueueMessage] = deque()

    @classmethod
    async def create(cls, topic: str, bootstrap: str = DEFAULT_BOOTSTRAP, **options: Any) -> Self:  # noqa: ANN401 - those of Queue.create
        """Create the topic and the group, and return the queue; options as `Queue.create`."""
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(None, lambda: Queue.create(topic, bootstrap, **options))
        queue = cls.__new__(cls)
        queue._adopt(made)
        return queue

    @property
    def topic(self) -> str:
        """The topic."""
        return self._queue.topic

    @property
    def group(self) -> str:
        """The share group."""
        return self._queue.group

    @property
    def auto_ack(self) -> bool:
        """Whether a message is done when the next one is wanted."""
        return self._queue.auto_ack

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._queue.closed

    async def put(self, value: Data, *, key: Data = None, headers: Headers = ()) -> SendResult:
        """Add one message and wait until the broker has it."""
        return await self._apart(lambda: self._queue.put(value, key=key, headers=headers))

    async def put_many(self, values: Iterable[Record | Data]) -> list[SendResult]:
        """Add several messages and wait for all."""
        return await self._apart(lambda: self._queue.put_many(values))

    async def take(self, timeout_s: float | None = None) -> QueueMessage | None:
        """Wait for a message; None if there was none within the timeout."""
        found = await self.take_batch(1, timeout_s)
        return found[0] if found else None

    async def take_batch(
        self, count_max: int, timeout_s: float | None = None
    ) -> list[QueueMessage]:
        """Wait for a message, then return all that have come, up to `count_max`."""
        count, limit_s = as_count(count_max), as_timeout(timeout_s)
        loop = asyncio.get_running_loop()
        deadline_s = None if limit_s is None else loop.time() + limit_s
        async with self._turn:
            while not self._ready:
                left_s = SLICE_S if deadline_s is None else deadline_s - loop.time()
                if self._taking is None:
                    wait_s = max(0.0, min(SLICE_S, left_s))
                    self._taking = self._submit(self._queue.take_batch, count, wait_s)
                found = await self._taken(self._taking)
                self._ready.extend(found)
                if left_s <= SLICE_S and deadline_s is not None and not found:
                    return []
            return [self._ready.popleft() for _ in range(min(count, len(self._ready)))]

    async def extend(self, message: QueueMessage) -> None:
        """Hold a message for the whole time of the lock again."""
        await self._apart(message.extend)

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every answer is stored; raise `LockLostError` if one came too late."""
        await self._apart(lambda: self._queue.flush(timeout_s))

    async def stats(self) -> QueueStats:
        """Return how many messages wait, and how many members the group has."""
        return await self._apart(self._queue.stats)

    async def close(self) -> None:
        """Send the answers, give back what is held, and leave the group."""
        await self._close(is_done=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(is_done=kind is None)

    async def __aiter__(self) -> AsyncIterator[QueueMessage]:
        while not self.closed:
            try:
                message = await self.take()
            except ClosedError:  # by another task, while this one waited
                return
            if message is not None:
                yield message

    async def _close(self, *, is_done: bool) -> None:
        if self.closed:
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, lambda: self._queue.end(is_done=is_done))
        finally:
            self._taker.shutdown(wait=False)
            self._others.shutdown(wait=False)

    async def _taken(self, taking: Future[list[QueueMessage]]) -> list[QueueMessage]:
        """Wait for the thread; if the caller is cancelled, the next one waits for it."""
        try:
            return await asyncio.shield(asyncio.wrap_future(taking))
        finally:
            if taking.done():
                self._taking = None

    async def _apart(self, call: Callable[[], T]) -> T:
        if self.closed:
            raise ClosedError("this queue is closed; create another one")
        return await asyncio.get_running_loop().run_in_executor(self._others, call)

    def _submit(
        self, call: Callable[[int, float], list[QueueMessage]], count: int, wait_s: float
    ) -> Future[list[QueueMessage]]:
        if self.closed:
            raise ClosedError("this queue is closed; create another one")
        return self._taker.submit(call, count, wait_s)
