"""How delivery reports cross from librdkafka's callbacks to futures.

`settling` is the plain way, for `concurrent.futures`. `Deliveries` is the asyncio way: reports
are collected on the pump's thread and drained in the loop, many to a wake-up. A loop that was
closed runs nothing any more, so the pump's thread then ends the futures itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Message as RawMessage

from barnabas.client.errors import ClientError, NotDeliveredError, from_error, from_exception
from barnabas.client.messages import SendResult, result_from

BREATH_RECORDS = 256
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""Why records are not delivered that `close` gives up."""

OnDelivery = Callable[[KafkaError | None, RawMessage], None]


def settling(future: Future[SendResult]) -> OnDelivery:
    """Return the callback that ends a future with what became of its record."""

    def on_delivery(error: KafkaError | None, message: RawMessage) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result_from(message))
        else:
            future.set_exception(failure(error, message))

    return on_delivery


def failure(error: KafkaError, message: RawMessage) -> ClientError:
    """Return why a record was not delivered; where it was given up, say which topic it was for."""
    found = from_error(error)
    if isinstance(found, NotDeliveredError):
        return NotDeliveredError(f'a record for topic "{message.topic()}": {found}', found.code)
    return found


class Deliveries:
    """Carries delivery reports from the pump's thread to the loop's futures."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[tuple[asyncio.Future[SendResult], KafkaError | None, RawMessage]] = (
            deque()
        )
        self._scheduled = False
        self._outstanding = 0
        self._progress = asyncio.Event()

    def expect(self) -> asyncio.Future[SendResult]:
        """Make the future of one more record."""
        self._outstanding += 1
        return self._loop.create_future()

    def forget(self) -> None:
        """Count on one record less, which was never queued."""
        self._outstanding -= 1
        self._progress.set()

    def refuse(self, future: asyncio.Future[SendResult], exception: KafkaException) -> None:
        """Fail a record that was never queued."""
        self.forget()
        future.set_exception(from_exception(exception))

    def report(self, future: asyncio.Future[SendResult]) -> OnDelivery:
        """Return the callback for one record; it runs on the pump's thread."""

        def on_delivery(error: KafkaError | None, message: RawMessage) -> None:
            self._arrived.append((future, error, message))
            # A second wake-up for the same drain is harmless, so no lock is needed here.
            if not self._scheduled or self._loop.is_closed():
                self._scheduled = True
                try:
                    self._loop.call_soon_threadsafe(self._drain)
                except RuntimeError:  # the loop is closed
                    self._drain()

        return on_delivery

    async def room(self) -> None:
        """Wait until some record has left the queue."""
        self._progress.clear()
        await self._progress.wait()

    async def breathe(self) -> None:
        """Let the loop run now and then, for senders that never wait for anything else."""
        if self._outstanding % BREATH_RECORDS == 0:
            await asyncio.sleep(0)

    async def idle(self) -> None:
        """Wait until no record is out."""
        while self._outstanding:
            await self.room()

    def _drain(self) -> None:
        self._scheduled = False
        while self._arrived:
            future, error, message = self._arrived.popleft()
            self._outstanding -= 1
            if future.done():
                continue
            with suppress(RuntimeError):  # the loop is closed: nothing can wait for it
                if error is None:
                    future.set_result(result_from(message))
                else:
                    future.set_exception(failure(error, message))
                    if error.code() in PURGED:
                        future.exception()  # `close` raises, so that asyncio need not log each
        with suppress(RuntimeError):
            self._progress.set()
