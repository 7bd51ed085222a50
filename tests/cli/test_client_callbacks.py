"""Tests callbacks that raise, wait or close, Ctrl-C, and clients shared by threads or tasks."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from random import Random

import pytest

from barnabas.client import (
    AsyncConsumer,
    AsyncProducer,
    ClosedError,
    Consumer,
    NotDeliveredError,
    Producer,
    Record,
    SendResult,
    TopicPartition,
    UsageError,
)

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0
SHORT_S = 0.2
NOWHERE = "127.0.0.1:1"


def fill(bootstrap: str, topic: str, count: int, partition: int = 0) -> TopicPartition:
    with Producer(bootstrap) as producer:
        records = [Record(value=f"{each}", partition=partition) for each in range(count)]
        producer.send_batch(topic, records)
    return TopicPartition(topic, partition)


def next_offset(consumer: Consumer) -> int:
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    return message.offset


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, ValueError])
def test_what_callbacks_raise_leaves_no_future_undecided(kind: type[BaseException]) -> None:
    def leave(_: Future[SendResult]) -> None:
        raise kind

    producer = Producer(NOWHERE)
    futures = [producer.send_async("orders", f"{each}", leave) for each in range(100)]
    with pytest.raises(NotDeliveredError, match="100 records"):
        producer.close(SHORT_S)
    assert all(isinstance(each.exception(PATIENCE_S), NotDeliveredError) for each in futures)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_callbacks_raise_does_not_give_up_records(
    bootstrap: str, topic: str, kind: type[BaseException]
) -> None:
    def leave(_: Future[SendResult]) -> None:
        raise kind

    with Producer(bootstrap, linger_ms=100) as producer:
        futures = [producer.send_async(topic, f"{each}", leave) for each in range(100)]
        producer.flush()
    assert all(each.result(PATIENCE_S).topic == topic for each in futures)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Act as the terminal: the main thread gets SIGINT, which raises KeyboardInterrupt in it."""
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(main, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_flush_and_no_report_is_lost(ctrl_c: Callable[[], None]) -> None:
    threads: set[threading.Thread] = set()

    def interrupt(_: Future[SendResult]) -> None:
        threads.add(threading.current_thread())
        if len(threads) == 1:
            ctrl_c()

    def flush_and_wait() -> None:
        producer.flush()
        threading.Event().wait(PATIENCE_S)  # the signal may come a moment after the flush

    producer = Producer(NOWHERE, settings={"message.timeout.ms": 300})
    futures = [producer.send_async("orders", "first", interrupt)]
    futures += [producer.send_async("orders", f"{each}") for each in range(100)]
    with pytest.raises(KeyboardInterrupt):
        flush_and_wait()
    producer.close()
    assert all(isinstance(each.exception(PATIENCE_S), NotDeliveredError) for each in futures)
    assert threading.main_thread() not in threads


def test_ctrl_c_in_a_callback_of_close_leaves_no_future_undecided(
    ctrl_c: Callable[[], None],
) -> None:
    called: list[Future[SendResult]] = []

    def interrupt(future: Future[SendResult]) -> None:
        called.append(future)
        if len(called) == 1:
            ctrl_c()

    producer = Producer(NOWHERE)
    futures = [producer.send_async("orders", f"{each}", interrupt) for each in range(100)]
    with pytest.raises(KeyboardInterrupt):
        producer.close(SHORT_S)
    assert len(called) == 100
    assert all(isinstance(each.exception(0), NotDeliveredError) for each in futures)


def test_ctrl_c_during_close_gives_up_at_once(ctrl_c: Callable[[], None]) -> None:
    producer = Producer(NOWHERE)
    future = producer.send_async("orders", "v")
    timer = threading.Timer(SHORT_S, ctrl_c)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        producer.close(10 * PATIENCE_S)
    timer.join()
    assert isinstance(future.exception(0), NotDeliveredError)


@pytest.mark.parametrize("call", ["flush", "send", "send_batch"])
def test_a_callback_that_would_wait_for_itself_gets_an_error(
    bootstrap: str, topic: str, call: str
) -> None:
    raised: Future[None] = Future()

    def wait(_: Future[SendResult]) -> None:
        arguments = {"flush": (), "send": (topic, "v"), "send_batch": (topic, ["v"])}[call]
        try:
            getattr(producer, call)(*arguments)
        except UsageError as error:
            raised.set_exception(error)

    with Producer(bootstrap) as producer:
        producer.send_async(topic, "v", wait)
        with pytest.raises(UsageError, match="use send_async in it"):
            raised.result(PATIENCE_S)


def test_a_callback_may_send_more_than_the_queue_holds(bootstrap: str, topic: str) -> None:
    more: list[Future[SendResult]] = []
    sent = threading.Event()

    def send_more(_: Future[SendResult]) -> None:
        more.extend(producer.send_async(topic, f"{each}") for each in range(100))
        sent.set()

    settings = {"queue.buffering.max.messages": 10}
    with Producer(bootstrap, settings=settings) as producer:
        producer.send_async(topic, "v", send_more)
        assert sent.wait(PATIENCE_S)
    assert all(each.result(PATIENCE_S).topic == topic for each in more)


def test_a_second_thread_that_polls_gets_an_error(bootstrap: str, topic: str) -> None:
    with Consumer(bootstrap) as consumer, ThreadPoolExecutor(1) as threads:
        consumer.assign([TopicPartition(topic, 0)])
        waiting = threads.submit(consumer.poll)

        def disturb() -> None:
            while not waiting.done():
                consumer.offsets(TopicPartition(topic, 0))

        with pytest.raises(UsageError, match="one consumer per thread"):
            disturb()
        consumer.close()
        assert isinstance(waiting.exception(PATIENCE_S), ClosedError)


def test_a_consumer_that_another_thread_closes_ends_its_iteration(
    bootstrap: str, topic: str
) -> None:
    fill(bootstrap, topic, 3)
    consumer = Consumer(bootstrap)
    consumer.assign([TopicPartition(topic, 0)])
    read: list[int] = []
    begun = threading.Event()

    def iterate() -> None:
        for message in consumer:
            read.append(message.offset)
            begun.set()

    with ThreadPoolExecutor(1) as threads:
        iterating = threads.submit(iterate)
        assert begun.wait(PATIENCE_S)
        consumer.close()
        iterating.result(PATIENCE_S)
    assert read == list(range(len(read)))


def test_what_another_thread_works_on_is_not_committed_by_a_close(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 5)
    consumer = Consumer(bootstrap, group=group)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(consumer.subscribe, [topic]).result(PATIENCE_S)
        assert [threads.submit(next_offset, consumer).result(PATIENCE_S) for _ in "ab"] == [0, 1]
        consumer.close()
    with Consumer(bootstrap, group=group) as again:
        again.subscribe([topic])
        assert next_offset(again) == 1


def test_on_revoke_may_commit_while_the_consumer_closes(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 5)
    consumer = Consumer(bootstrap, group=group, auto_commit=False)
    consumer.subscribe([topic], on_revoke=lambda _: consumer.commit())
    assert [next_offset(consumer) for _ in range(3)] == [0, 1, 2]
    consumer.close()
    with Consumer(bootstrap, group=group) as again:
        again.subscribe([topic])
        assert next_offset(again) == 3


def test_an_on_assign_that_raises_costs_no_message(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 5)

    def fail(_: list[TopicPartition]) -> None:
        raise LookupError("mine")

    with Consumer(bootstrap, group=group) as consumer:
        consumer.subscribe([topic], on_assign=fail)
        with pytest.raises(LookupError, match="mine"):
            consumer.poll(PATIENCE_S)
        assert [message.offset for message in islice(consumer, 5)] == list(range(5))


def test_an_on_revoke_that_raises_does_not_keep_a_consumer_open(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 5)

    def fail(_: list[TopicPartition]) -> None:
        raise LookupError("mine")

    consumer = Consumer(bootstrap, group=group)
    consumer.subscribe([topic], on_revoke=fail)
    assert next_offset(consumer) == 0
    with pytest.raises(LookupError, match="mine"):
        consumer.close()
    with Consumer(bootstrap, group=group) as again:
        again.subscribe([topic])
        assert next_offset(again) == 1


def test_a_callback_may_close_the_consumer(bootstrap: str, topic: str, group: str) -> None:
    consumer = Consumer(bootstrap, group=group)
    consumer.subscribe([topic], on_assign=lambda _: consumer.close())
    with pytest.raises(ClosedError):
        consumer.poll(PATIENCE_S)
    assert consumer._session._left


def test_assign_drops_what_was_read_ahead_of_other_partitions(bootstrap: str, topic: str) -> None:
    places = [fill(bootstrap, topic, 20, partition) for partition in (0, 1)]
    with Consumer(bootstrap) as consumer:
        consumer.assign(places)
        first = consumer.poll(PATIENCE_S)
        assert first is not None
        consumer.assign([places[first.partition]])
        assert {each.partition for each in islice(consumer, 20)} == {first.partition}
        assert consumer.poll(SHORT_S) is None


def test_a_second_task_that_polls_gets_an_error_and_a_close_ends_an_iteration(
    bootstrap: str, topic: str
) -> None:
    async def iterate(consumer: AsyncConsumer) -> int:
        return len([message async for message in consumer])

    async def dialogue() -> None:
        consumer = AsyncConsumer(bootstrap)
        await consumer.assign([TopicPartition(topic, 0)])
        iterating = asyncio.create_task(iterate(consumer))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="one consumer per task"):
            await consumer.poll()
        await consumer.close()
        assert await iterating == 0

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_an_async_producer_belongs_to_one_running_loop(bootstrap: str, topic: str) -> None:
    before = threading.active_count()
    with pytest.raises(UsageError, match="inside a coroutine"):
        AsyncProducer(bootstrap)
    assert threading.active_count() == before

    async def make() -> AsyncProducer:
        return AsyncProducer(bootstrap)

    producer = asyncio.run(make())
    with pytest.raises(UsageError, match="the event loop that created it"):
        asyncio.run(producer.send(topic, "v"))
    with pytest.raises(UsageError, match="the event loop that created it"):
        asyncio.run(producer.flush())
    asyncio.run(producer.close())


@pytest.mark.parametrize("queue", [10, 100_000])
def test_a_flush_ends_whatever_was_cancelled_or_refused_before(
    bootstrap: str, topic: str, queue: int
) -> None:
    rng = Random(7)

    async def dialogue() -> None:
        settings = {"queue.buffering.max.messages": queue}
        async with AsyncProducer(bootstrap, settings=settings) as producer:
            tasks = [
                asyncio.create_task(producer.send(topic, rng.choice(["v", 5])))  # type: ignore[arg-type]
                for _ in range(600)
            ]
            for task in tasks:
                if rng.random() < 0.3:
                    await asyncio.sleep(0)
                if rng.random() < 0.5:
                    task.cancel()
            await producer.flush()
            await asyncio.wait(tasks)
            await producer.flush()
            assert producer._deliveries._outstanding == 0
            assert {task.cancelled() or task.exception() is None for task in tasks} == {True, False}

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_an_async_producer_that_is_not_closed_is_flushed_at_exit(
    bootstrap: str, topic: str
) -> None:
    program = """if True:
        import asyncio, sys
        from barnabas.client import AsyncProducer

        async def main():
            producer = AsyncProducer(sys.argv[1], linger_ms=200)
            kept.append(producer)
            await producer.send_async(sys.argv[2], "v")

        kept = []
        asyncio.run(main())
    """
    command = [sys.executable, "-c", program, bootstrap, topic]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    with Consumer(bootstrap) as consumer:
        ends = [consumer.offsets(each)[1] for each in consumer.partitions(topic)]
    assert sum(ends) == 1
