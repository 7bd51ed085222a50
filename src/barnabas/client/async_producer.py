"""The asyncio version of `Producer`.

    async with AsyncProducer() as producer:
        result = await producer.send("orders", "hello")

librdkafka has its own threads and no event loop. One thread of ours waits inside it. Results reach
the event loop with `call_soon_threadsafe`, many per call, because a wake-up of the loop costs more
than a record. There is no polling: the loop sleeps until it is woken.
"""

import asyncio
import threading
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from barnabas.client.arguments import as_records, as_timeout, refused_record
from barnabas.client.client_messages import Data, Headers, Record, SendResult, produce_arguments
from barnabas.client.client_settings import DEFAULT_BOOTSTRAP, Settings, for_producer
from barnabas.client.deliveries import Deliveries
from barnabas.client.errors import (
    ClientError,
    ClosedError,
    UsageError,
    from_exception,
)
from barnabas.client.producer import REFUSALS, given_up, open_producer, tracing_if
from barnabas.client.pump import LAST_FLUSH_S, Pump

SLICE_S = 0.1
"""How long a flush stays in librdkafka; a program that ends waits that long for it."""


class AsyncProducer:
    """Sends records from an event loop; can be used only in the loop that created it."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        acks: str = "all",
        compression: str = "none",
        linger_ms: float = 1,
        tracing: bool = False,
        settings: Settings | None = None,
    ) -> None:
        """With `tracing` each record has a span, and headers that continue its trace."""
        properties = for_producer(
            bootstrap, acks=acks, compression=compression, linger_ms=linger_ms, settings=settings
        )
        loop = _running_loop()
        self._tracing = tracing_if(tracing)
        self._kafka = open_producer(properties)
        self._pump = Pump(self._kafka)
        self._deliveries = Deliveries(loop)
        self._closed = False
        # Runs on collection and at exit, so that queued records are not lost silently.
        weakref.finalize(self, _shut_unattended, self._pump, loop)

    async def send(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SendResult:
        """Send one record and wait until the broker has it.

        Cancelling ends the wait. A record that is already in the queue is still sent.
        """
        self._deliveries.require_loop()
        record = Record(
            value=value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await (await self.send_async(topic, record))

    async def send_async(self, topic: str, record: Record | Data) -> asyncio.Future[SendResult]:
        """Queue one record, waiting only for space; the future completes with the result."""
        self._require_open()
        whole = record if isinstance(record, Record) else Record(value=record)
        try:
            future = self._deliveries.new_future()
            if self._tracing is not None:
                whole = self._tracing.started(topic, whole, future)
            arguments = produce_arguments(topic, whole)
            report = self._deliveries.report(future)
            while True:
                try:
                    self._kafka.produce(**arguments, on_delivery=report)
                except BufferError:
                    await self._deliveries.room()
                    self._require_open()
                else:
                    break
        except KafkaException as exception:
            future.set_exception(from_exception(exception))
            return future
        except ClientError:
            raise
        except REFUSALS as exception:
            raise refused_record(topic, whole, exception) from exception
        if self._deliveries.expect():
            await asyncio.sleep(0)
        if self._closed:  # from another thread: it may have flushed before this record
            await asyncio.to_thread(self._pump.give_up_late)
        return future

    async def send_batch(self, topic: str, records: Iterable[Record | Data]) -> list[SendResult]:
        """Send several records and wait for all; raise the first error once all have a result.

        A record that cannot be sent ends the batch: earlier records are sent, and its error is
        raised.
        """
        self._require_open()
        self._deliveries.require_loop()
        try:
            futures = [await self.send_async(topic, record) for record in as_records(records)]
        except ClientError:
            await self.flush()
            raise
        await self.flush()
        return [future.result() for future in futures]

    async def flush(self) -> None:
        """Return once every queued record has a result."""
        self._require_open()
        self._deliveries.require_loop()
        while await asyncio.to_thread(self._kafka.flush, SLICE_S):
            pass
        await self._deliveries.idle()

    async def close(self, timeout_s: float | None = LAST_FLUSH_S) -> None:
        """Flush and stop; raise `NotDeliveredError` if records remain after the timeout.

        All futures complete in either case, those of remaining records with `NotDeliveredError`.
        None waits until each record is delivered or has failed.
        """
        limit_s = as_timeout(timeout_s)
        self._closed = True
        left = await asyncio.to_thread(self._pump.shut, limit_s)
        # All reports have arrived, and the loop completes the futures in order.
        await asyncio.sleep(0)
        self._deliveries.finish()
        if left:
            raise given_up(left, limit_s)

    async def __aenter__(self) -> Self:
        self._require_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("this producer is closed; create another one")


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError("create an AsyncProducer inside a coroutine, or use Producer") from error


def _shut_unattended(pump: Pump, loop: asyncio.AbstractEventLoop) -> None:
    """Flush a producer that was not closed, without blocking its loop."""
    if loop.is_running():
        threading.Thread(target=pump.shut, name="barnabas-flush").start()
    else:
        pump.shut()
