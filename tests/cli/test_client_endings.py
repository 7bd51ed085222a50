"""Tests that `close` completes every future of a producer."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from barnabas.client import AsyncProducer, ClosedError, NotDeliveredError, Producer, SendResult

PATIENCE_S = 30.0
SHORT_S = 0.2
SMALL_QUEUE = {"queue.buffering.max.messages": 10}


@pytest.fixture
def unreachable() -> Iterator[str]:
    """An address that refuses every connection."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def failure(future: Future[SendResult]) -> BaseException | None:
    return future.exception(PATIENCE_S)


def test_futures_end_when_a_producer_is_closed_without_a_broker(unreachable: str) -> None:
    producer = Producer(unreachable)
    futures = [producer.send_async("orders", f"{each}") for each in range(100)]
    with pytest.raises(NotDeliveredError, match=r"100 records were not delivered within 0\.2 s"):
        producer.close(SHORT_S)
    assert all(future.done() for future in futures)
    assert all(isinstance(failure(future), NotDeliveredError) for future in futures)
    assert 'topic "orders"' in str(failure(futures[0]))


def test_a_close_ends_a_thread_that_waits_for_a_record(
    unreachable: str,
) -> None:
    producer = Producer(unreachable)
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(producer.send, "orders", f"{each}") for each in range(4)]
        while len(producer._kafka) < len(waiting):
            threading.Event().wait(0.001)
        with pytest.raises(NotDeliveredError):
            producer.close(SHORT_S)
        assert all(isinstance(each.exception(PATIENCE_S), NotDeliveredError) for each in waiting)


def test_a_close_ends_a_thread_that_waits_for_room(unreachable: str) -> None:
    producer = Producer(unreachable, settings=SMALL_QUEUE)
    futures = [producer.send_async("orders", "v") for _ in range(10)]
    with ThreadPoolExecutor(1) as threads:
        begun = threading.Event()

        def send_one_more() -> SendResult:
            begun.set()
            return producer.send("orders", "one more")

        waiting = threads.submit(send_one_more)
        begun.wait()
        with pytest.raises(NotDeliveredError):
            producer.close(SHORT_S)
        assert isinstance(waiting.exception(PATIENCE_S), (ClosedError, NotDeliveredError))
    assert all(future.done() for future in futures)


def test_records_that_are_sent_while_another_thread_closes(unreachable: str) -> None:
    producer = Producer(unreachable)
    futures: list[Future[SendResult]] = []

    def send_on() -> None:
        while True:
            try:
                futures.append(producer.send_async("orders", "v"))
            except ClosedError:
                return

    with ThreadPoolExecutor(3) as threads:
        senders = [threads.submit(send_on) for _ in range(3)]
        with pytest.raises(NotDeliveredError):
            producer.close(SHORT_S)
        for sender in senders:
            sender.result(PATIENCE_S)
    assert all(future.done() for future in futures)


def test_closes_on_several_threads_all_wait_for_the_end(unreachable: str) -> None:
    producer = Producer(unreachable)
    futures = [producer.send_async("orders", f"{each}") for each in range(100)]

    def close() -> tuple[bool, bool]:
        """Return whether it raised, and whether all futures were done then."""
        try:
            producer.close(SHORT_S)
        except NotDeliveredError:
            return True, all(future.done() for future in futures)
        return False, all(future.done() for future in futures)

    with ThreadPoolExecutor(4) as threads:
        ends = [each.result(PATIENCE_S) for each in [threads.submit(close) for _ in range(4)]]
    assert sorted(ends) == [(False, True)] * 3 + [(True, True)]
    producer.close()
    with pytest.raises(ClosedError):
        producer.send_async("orders", "v")


def test_a_callback_may_close_the_producer(unreachable: str) -> None:
    producer = Producer(unreachable, settings={"message.timeout.ms": 50})
    called = threading.Event()

    def close(_: Future[SendResult]) -> None:
        producer.close()
        called.set()

    futures = [producer.send_async("orders", f"{each}", close) for each in range(10)]
    assert called.wait(PATIENCE_S)
    producer.close()
    assert all(isinstance(failure(future), NotDeliveredError) for future in futures)


def test_a_callback_that_raises_does_not_stop_the_others(unreachable: str) -> None:
    def leave(_: Future[SendResult]) -> None:
        raise SystemExit  # which `Future` passes to its thread

    producer = Producer(unreachable, settings={"message.timeout.ms": 50})
    assert isinstance(failure(producer.send_async("orders", "v", leave)), NotDeliveredError)
    assert isinstance(failure(producer.send_async("orders", "v")), NotDeliveredError)
    producer.close()


def test_async_futures_end_when_a_producer_is_closed_without_a_broker(unreachable: str) -> None:
    async def dialogue() -> None:
        producer = AsyncProducer(unreachable)
        sending = asyncio.create_task(producer.send("orders", "v"))
        await asyncio.sleep(0)
        futures = [await producer.send_async("orders", f"{each}") for each in range(100)]
        with pytest.raises(NotDeliveredError, match="101 records"):
            await producer.close(SHORT_S)
        assert all(isinstance(future.exception(), NotDeliveredError) for future in futures)
        with pytest.raises(NotDeliveredError):
            await sending
        await producer.close()
        with pytest.raises(ClosedError):
            await producer.send("orders", "v")

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_a_close_ends_an_async_sender_that_waits_for_room(unreachable: str) -> None:
    async def dialogue() -> None:
        producer = AsyncProducer(unreachable, settings=SMALL_QUEUE)
        futures = [await producer.send_async("orders", "v") for _ in range(10)]
        waiting = asyncio.create_task(producer.send("orders", "one more"))
        await asyncio.sleep(0)
        with pytest.raises(NotDeliveredError, match="10 records"):
            await producer.close(SHORT_S)
        with pytest.raises(ClosedError):
            await waiting
        assert all(future.exception() is not None for future in futures)

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_an_async_send_that_is_cancelled_while_it_waits_for_room_is_not_waited_for(
    unreachable: str,
) -> None:
    async def dialogue() -> None:
        settings = {**SMALL_QUEUE, "message.timeout.ms": 200}
        producer = AsyncProducer(unreachable, settings=settings)
        futures = [await producer.send_async("orders", "v") for _ in range(10)]
        waiting = asyncio.create_task(producer.send("orders", "one more"))
        await asyncio.sleep(0)
        waiting.cancel()
        await producer.flush()
        assert all(future.exception() is not None for future in futures)
        await producer.close()

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_a_cancelled_close_still_ends_the_futures(unreachable: str) -> None:
    async def dialogue() -> None:
        producer = AsyncProducer(unreachable)
        future = await producer.send_async("orders", "v")
        closing = asyncio.create_task(producer.close(SHORT_S))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(NotDeliveredError):
            await future

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_futures_of_a_loop_that_is_closed_end_with_the_producer(unreachable: str) -> None:
    kept: list[asyncio.Future[SendResult]] = []
    made: list[AsyncProducer] = []

    async def send() -> None:
        made.append(AsyncProducer(unreachable))
        kept.append(await made[0].send_async("orders", "v"))

    asyncio.run(send())
    with pytest.raises(NotDeliveredError):
        asyncio.run(made[0].close(SHORT_S))
    assert isinstance(kept[0].exception(), NotDeliveredError)
