"""The asyncio twins of `Producer` and `Consumer`.

    async with AsyncProducer() as producer:
        result = await producer.send("orders", "hello")

    async with AsyncConsumer(group="billing") as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            ...

librdkafka works on threads of its own and knows no event loop. One thread of ours waits inside
it; results cross over with `call_soon_threadsafe`, many to a call, because waking the loop
costs more than a record does. Nothing spins: the loop sleeps until it is woken.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from confluent_kafka import KafkaException

from barnabas.client.deliveries import Deliveries
from barnabas.client.errors import ClosedError, NotDeliveredError
from barnabas.client.messages import (
    Data,
    Headers,
    Message,
    Record,
    SendResult,
    produce_arguments,
)
from barnabas.client.producer import open_producer
from barnabas.client.pump import Pump
from barnabas.client.session import OnPartitions, Session, Start
from barnabas.client.settings import DEFAULT_BOOTSTRAP, Settings, for_consumer, for_producer
from barnabas.model.ids import TopicPartition

# How long the consumer's thread stays in librdkafka; commits and seeks wait behind it.
SLICE_S = 0.1

T = TypeVar("T")


class AsyncProducer:
    """Sends records from an event loop; belongs to the loop it was made in."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        acks: str = "all",
        compression: str = "none",
        linger_ms: float = 1,
        settings: Settings | None = None,
    ) -> None:
        properties = for_producer(
            bootstrap, acks=acks, compression=compression, linger_ms=linger_ms, settings=settings
        )
        self._kafka = open_producer(properties)
        self._pump = Pump(self._kafka)
        self._deliveries = Deliveries(asyncio.get_running_loop())
        self._closed = False

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
        """Send one record and wait until the broker has it."""
        record = Record(
            value=value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await (await self.send_async(topic, record))

    async def send_async(self, topic: str, record: Record | Data) -> asyncio.Future[SendResult]:
        """Queue one record, waiting only for room; the future says what became of it."""
        if self._closed:
            raise ClosedError("this producer is closed; make another one")
        arguments = produce_arguments(
            topic, record if isinstance(record, Record) else Record(value=record)
        )
        future = self._deliveries.expect()
        while True:
            try:
                self._kafka.produce(**arguments, on_delivery=self._deliveries.report(future))
            except BufferError:
                await self._deliveries.room()
            except KafkaException as exception:
                self._deliveries.refuse(future, exception)
                return future
            else:
                await self._deliveries.breathe()
                return future

    async def send_batch(self, topic: str, records: Iterable[Record | Data]) -> list[SendResult]:
        """Send many and wait for all; raises the first failure once every record is decided."""
        futures = [await self.send_async(topic, record) for record in records]
        await self.flush()
        return [future.result() for future in futures]

    async def flush(self) -> None:
        """Return once every queued record is decided."""
        await asyncio.to_thread(self._kafka.flush)
        await self._deliveries.idle()

    async def close(self) -> None:
        """Flush and stop; raises if records were left over after ten seconds."""
        self._closed = True
        left = await asyncio.to_thread(self._pump.shut)
        if left:
            raise NotDeliveredError(f"{left} records were still undelivered at close")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncConsumer:
    """Reads records in an event loop; one task at a time may poll."""

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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="barnabas-consumer")
        self._filling: asyncio.Future[None] | None = None

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
        """Return the next message; None when the time is over, never without a timeout.

        Cancelling loses nothing: a message that arrives meanwhile is handed out next time.
        """
        self._session.require_open()
        self._session.settle()
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_s is None else loop.time() + timeout_s
        while (message := self._session.take()) is None:
            left_s = SLICE_S if deadline_s is None else deadline_s - loop.time()
            await self._fill(max(0.0, min(SLICE_S, left_s)))
            if left_s <= 0:
                return self._session.take()
        return message

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None = None, *, wait: bool = True
    ) -> None:
        """Commit every message handed out so far, or the given next offsets."""
        self._session.settle()
        await self._run(lambda: self._session.commit(offsets, wait=wait))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read nothing of these partitions until `resume`."""
        await self._run(self._session.pause, partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read paused partitions on from where they were."""
        await self._run(self._session.resume, partitions)

    async def seek(self, partition: TopicPartition, start: Start) -> None:
        """Read an assigned partition on from "beginning", "end" or an offset."""
        await self._run(self._session.seek, partition, start)

    async def position(self, partition: TopicPartition) -> int | None:
        """Return the offset that comes next, or None before the first message."""
        return await self._run(self._session.position, partition)

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, for `assign`."""
        return await self._run(self._session.partitions, topic)

    async def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset there is, and the one the next record will get."""
        return await self._run(self._session.offsets, partition)

    async def close(self) -> None:
        """Count the last message as done, commit where that is automatic, and leave."""
        await self._end(settled=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end(settled=kind is None)

    async def __aiter__(self) -> AsyncIterator[Message]:
        while not self._session.closed:
            message = await self.poll(SLICE_S)
            if message is not None:
                yield message

    async def _fill(self, timeout_s: float) -> None:
        # A cancelled poll leaves its fetch running; the next poll waits for that one.
        if self._filling is None or self._filling.done():
            loop = asyncio.get_running_loop()
            self._filling = loop.run_in_executor(self._thread, self._session.fill, timeout_s)
        await asyncio.shield(self._filling)

    async def _end(self, *, settled: bool) -> None:
        if self._session.closed:
            return
        if settled:
            self._session.settle()
        await self._run(self._session.close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work, *arguments)
