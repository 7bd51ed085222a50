"""Complete futures from librdkafka's delivery reports.

`settling` is for `concurrent.futures`. `Deliveries` is for asyncio: it collects reports on the
pump's thread and completes futures in the event loop, many per wake-up. If the loop is closed, the
pump's thread completes the futures itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from confluent_kafka import KafkaError
from confluent_kafka import Message as RawMessage

from barnabas.client.client_messages import SendResult, result_from
from barnabas.client.errors import ClientError, NotDeliveredError, UsageError, from_error
from barnabas.logs import get

BREATH_RECORDS = 256
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""The error of records that `close` drops."""

log = get("barnabas.client")

OnDelivery = Callable[[KafkaError | None, RawMessage], None]


def settling(future: Future[SendResult]) -> OnDelivery:
    """Return the callback that completes a future with the result of its record.

    A future runs the program's callbacks when it completes. Their exceptions are caught here,
    SystemExit and KeyboardInterrupt included: they would interrupt librdkafka's other reports.
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
    """Return why a record was not delivered; name the topic of a dropped record."""
    found = from_error(error)
    if isinstance(found, NotDeliveredError):
        return NotDeliveredError(f'a record for topic "{message.topic()}": {found}', found.code)
    return found


class Deliveries:
    """Passes delivery reports from the pump's thread to the event loop's futures."""

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
        """Raise if the caller runs in another event loop."""
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError("this producer belongs to the event loop that created it")

    def expect(self) -> bool:
        """Expect the report of one more record; librdkafka reports only records that it accepted.

        Return whether the sender should yield to the loop, for senders that never wait otherwise.
        """
        self._outstanding += 1
        return self._outstanding % BREATH_RECORDS == 0

    def finish(self) -> None:
        """Complete the futures of a closed loop, which can no longer do so."""
        if self._loop.is_closed():
            self._drain()

    def report(self, future: asyncio.Future[SendResult]) -> OnDelivery:
        """Return the callback for one record; it runs on the pump's thread."""

        def on_delivery(error: KafkaError | None, message: RawMessage) -> None:
            self._arrived.append((future, error, message))
            # A second wake-up is harmless, so no lock is needed here.
            if not self._scheduled or self._loop.is_closed():
                self._scheduled = True
                try:
                    self._loop.call_soon_threadsafe(self._drain)
                except RuntimeError:  # the loop is closed
                    self._drain()

        return on_delivery

    async def room(self) -> None:
        """Wait until some record has its report."""
        self._progress.clear()
        await self._progress.wait()

    async def idle(self) -> None:
        """Wait until all records have their reports."""
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
