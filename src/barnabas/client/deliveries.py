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

from confluent_kafka import KafkaError
from confluent_kafka import Message as RawMessage

from barnabas.client.errors import ClientError, NotDeliveredError, UsageError, from_error
from barnabas.client.messages import SendResult, result_from
from barnabas.logs import get

BREATH_RECORDS = 256
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""Why records are not delivered that `close` gives up."""

log = get("barnabas.client")

OnDelivery = Callable[[KafkaError | None, RawMessage], None]


def settling(future: Future[SendResult]) -> OnDelivery:
    """Return the callback that ends a future with what became of its record.

    A future runs the program's own callbacks when it ends. What these raise stays here, SystemExit
    and KeyboardInterrupt included: it would stop librdkafka in the middle of the other reports.
    """

    def on_delivery(error: KafkaError | None, message: RawMessage) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            if error is None:
                future.set_result(result_from(message))
            else:
                future.set_exception(failure(error, message))
        except BaseException:
            log.exception("a delivery callback failed")

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
        self.new_future = loop.create_future
        self._arrived: deque[tuple[asyncio.Future[SendResult], KafkaError | None, RawMessage]] = (
            deque()
        )
        self._scheduled = False
        self._outstanding = 0
        self._progress = asyncio.Event()

    def require_loop(self) -> None:
        """Raise where the caller runs in another event loop."""
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError("this producer belongs to the event loop it was made in")

    def expect(self) -> bool:
        """Count on the report of one more record: only what librdkafka took is ever reported.

        Return whether the loop should run now, for senders that never wait for anything else.
        """
        self._outstanding += 1
        return self._outstanding % BREATH_RECORDS == 0

    def finish(self) -> None:
        """End the futures of a loop that is closed: it runs no drain any more."""
        if self._loop.is_closed():
            self._drain()

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
            try:
                if error is None:
                    future.set_result(result_from(message))
                else:
                    future.set_exception(failure(error, message))
                    if error.code() in PURGED:
                        future.exception()  # `close` raises, so that asyncio need not log each
            except RuntimeError:
                pass  # the loop is closed: nothing can wait for it
        with suppress(RuntimeError):
            self._progress.set()
