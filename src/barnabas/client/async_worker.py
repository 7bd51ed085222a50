"""The asyncio version of `Worker`: runs a coroutine for each message of a queue.

async with AsyncQueue("jobs") as queue:
    await AsyncWorker(queue, handle, concurrency=100, timeout_s=30).run()
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator

from barnabas.client.async_queue import AsyncQueue
from barnabas.client.errors import ClosedError
from barnabas.client.queue_message import QueueMessage
from barnabas.client.worker import SLICE_S, STOP_S, OnError, answer_for, check_worker
from barnabas.logs import get

AsyncHandler = Callable[[QueueMessage], Awaitable[object]]

log = get("barnabas.client")


class AsyncWorker:
    """Handles the messages of one queue in tasks."""

    def __init__(
        self,
        queue: AsyncQueue,
        handler: AsyncHandler,
        *,
        concurrency: int = 8,
        timeout_s: float | None = None,
        on_error: OnError = "release",
        stop_timeout_s: float = STOP_S,
    ) -> None:
        """Take the longest time of a handler, which is cancelled then, and that of a stop."""
        check_worker(queue.auto_ack, concurrency, on_error)
        self._queue, self._handler = queue, handler
        self._concurrency, self._timeout_s = concurrency, timeout_s
        self._on_error, self._stop_timeout_s = on_error, stop_timeout_s
        self._stopping = asyncio.Event()
        self._running: dict[asyncio.Task[None], QueueMessage] = {}
        self.done = 0
        """How many messages a handler has done."""
        self.failed = 0
        """How many handlers raised, or took too long."""

    async def run(self) -> None:
        """Work until `stop` or SIGTERM; return when all running handlers have ended."""
        with _stopped_by_sigterm(self.stop):
            try:
                while not self._stopping.is_set():
                    await self._turn()
            except ClosedError:
                log.info("the queue of a worker was closed")
            finally:
                await self._wind_up()

    def stop(self) -> None:
        """Take no more messages; `run` returns when the running handlers have ended."""
        self._stopping.set()

    async def _turn(self) -> None:
        free = self._concurrency - len(self._running)
        if free:
            for message in await self._queue.take_batch(free, SLICE_S):
                task = asyncio.create_task(self._handle(message))
                self._running[task] = message
                task.add_done_callback(self._running.pop)
        else:
            await asyncio.wait(self._running, timeout=SLICE_S, return_when=asyncio.FIRST_COMPLETED)
        self._keep()

    def _keep(self) -> None:
        for message in self._running.values():
            message.keep()

    async def _handle(self, message: QueueMessage) -> None:
        is_done = False
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._handler(message)
            is_done = True
        except Exception:
            log.exception("a handler failed", offset=message.offset, deliveries=message.deliveries)
        finally:
            self.done += is_done
            self.failed += not is_done
            answer_for(message, is_done=is_done, on_error=self._on_error)

    async def _wind_up(self) -> None:
        deadline_s = asyncio.get_running_loop().time() + self._stop_timeout_s
        while self._running and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.wait(self._running, timeout=SLICE_S)
            self._keep()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        if not self._queue.closed:
            await self._queue.flush(self._stop_timeout_s)


@contextlib.contextmanager
def _stopped_by_sigterm(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, stop)
    except (NotImplementedError, RuntimeError, ValueError):  # not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
