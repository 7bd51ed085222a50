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
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
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
from barnabas.client.pump import LAST_FLUSH_S, Pump
from barnabas.client.session import OnPartitions, Session, Start
from barnabas.client.settings import DEFAULT_BOOTSTRAP, Settings, for_consumer, for_producer
from barnabas.model.ids import TopicPartition

SLICE_S = 0.1
"""How long a thread stays in librdkafka: commits and seeks wait behind it, and so does a program
that ends while a cancelled call runs."""

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
        self._require_open()
        arguments = produce_arguments(
            topic, record if isinstance(record, Record) else Record(value=record)
        )
        future = self._deliveries.expect()
        while True:
            try:
                self._kafka.produce(**arguments, on_delivery=self._deliveries.report(future))
            except BufferError:
                await self._room()
            except KafkaException as exception:
                self._deliveries.refuse(future, exception)
                return future
            else:
                if self._closed:  # from another thread: it may have flushed before this record
                    await asyncio.to_thread(self._pump.give_up_late)
                await self._deliveries.breathe()
                return future

    async def send_batch(self, topic: str, records: Iterable[Record | Data]) -> list[SendResult]:
        """Send many and wait for all; raises the first failure once every record is decided."""
        futures = [await self.send_async(topic, record) for record in records]
        await self.flush()
        return [future.result() for future in futures]

    async def flush(self) -> None:
        """Return once every queued record is decided."""
        while await asyncio.to_thread(self._kafka.flush, SLICE_S):
            pass
        await self._deliveries.idle()

    async def close(self, timeout_s: float = LAST_FLUSH_S) -> None:
        """Flush and stop; raises `NotDeliveredError` if records were left over after that time.

        Every future ends, in either case: that of a record that was left over with
        `NotDeliveredError`.
        """
        self._closed = True
        left = await asyncio.to_thread(self._pump.shut, timeout_s)
        # The reports are in by now, and the loop ends the futures in their order.
        await asyncio.sleep(0)
        if left:
            raise NotDeliveredError(
                f"{left} records were not delivered within {timeout_s:g} s, and were given up"
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _room(self) -> None:
        """Wait for room in the queue; the record is not queued where that is cancelled."""
        try:
            await self._deliveries.room()
            self._require_open()
        except BaseException:
            self._deliveries.forget()
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("this producer is closed; make another one")


class AsyncConsumer:
    """Reads records in an event loop; one task at a time may poll.

    A call that is cancelled while librdkafka works on it runs to its end on the consumer's thread.
    The session therefore belongs to the thread that holds its lock: the consumer's for the length
    of a call, the loop's for as long as it takes to hand out a message.
    """

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
        self._lock = threading.Lock()
        self._closing = False

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
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_s is None else loop.time() + timeout_s
        while (message := self._take()) is None:
            left_s = SLICE_S if deadline_s is None else deadline_s - loop.time()
            await self._run(self._session.fill, max(0.0, min(SLICE_S, left_s)))
            if left_s <= 0:
                return self._take()
        return message

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None = None, *, wait: bool = True
    ) -> None:
        """Commit every message handed out so far, or the given next offsets."""

        def commit() -> None:
            self._session.settle()
            self._session.commit(offsets, wait=wait)

        await self._run(commit)

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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._closing:
            message = await self.poll(SLICE_S)
            if message is not None:
                return message
        raise StopAsyncIteration

    def _take(self) -> Message | None:
        """Hand out the next message; None while the thread is at work for a cancelled call."""
        self._require_open()
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._session.settle()
            return self._session.take()
        finally:
            self._lock.release()

    async def _end(self, *, settled: bool) -> None:
        if self._closing:
            return

        def close() -> None:
            if settled:
                self._session.settle()
            self._session.close()

        ending = self._submit(close)
        self._closing = True
        self._thread.shutdown(wait=False)
        # Not cancelled with its caller: a consumer that does not leave holds up its group.
        await asyncio.shield(asyncio.wrap_future(ending))

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a call on the thread. Cancelled before it begins it never does, else it goes on."""
        self._require_open()
        return await asyncio.wrap_future(self._submit(work, *arguments))

    def _submit(self, work: Callable[..., T], *arguments: object) -> Future[T]:
        def locked() -> T:
            with self._lock:
                return work(*arguments)

        return self._thread.submit(locked)

    def _require_open(self) -> None:
        if self._closing:
            raise ClosedError("this consumer is closed; make another one")
