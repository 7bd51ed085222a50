"""Tests producer and consumer, blocking and asyncio, against a broker."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from itertools import islice
from random import Random
from typing import TypeVar
from uuid import uuid4

import pytest

from barnabas.client import (
    AsyncConsumer,
    AsyncProducer,
    ClosedError,
    Consumer,
    GroupError,
    Producer,
    Record,
    RecordTooLargeError,
    SendResult,
    SettingError,
    TopicPartition,
    UnknownTopicError,
)
from barnabas.client.session import Session

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0

T = TypeVar("T")


def fill(bootstrap: str, topic: str, count: int) -> TopicPartition:
    with Producer(bootstrap) as producer:
        producer.send_batch(topic, [Record(value=f"{each}", partition=0) for each in range(count)])
    return TopicPartition(topic, 0)


def values(consumer: Consumer, count: int) -> list[str]:
    return [message.text for message in islice(consumer, count)]


def test_send_says_where_the_record_lies(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        first = producer.send(
            topic, "v", key="k", headers={"h": "1"}, partition=1, timestamp_ms=1_700_000_000_000
        )
        second = producer.send(topic, None, key=b"k", headers=[("h", None)], partition=1)
    assert first == SendResult(topic=topic, partition=1, offset=0, timestamp_ms=1_700_000_000_000)
    assert (second.partition, second.offset) == (1, 1)
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        one, two = islice(consumer, 2)
    assert (one.key, one.value, one.headers) == (b"k", b"v", (("h", b"1"),))
    assert one.timestamp_ms == 1_700_000_000_000
    assert (two.key, two.value, two.headers) == (b"k", None, (("h", None),))


def test_send_async_ends_futures_and_calls_back(bootstrap: str, topic: str) -> None:
    done: list[Future[SendResult]] = []
    with Producer(bootstrap, compression="lz4") as producer:
        futures = [producer.send_async(topic, f"{each}", done.append) for each in range(1000)]
        producer.flush()
    assert len(done) == 1000
    assert all(future.result().offset is not None for future in futures)


def test_failures_have_types(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        with pytest.raises(UnknownTopicError):
            producer.send(topic, "v", partition=99)
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, b"x" * 2_000_000)
    with pytest.raises(ClosedError):
        producer.send(topic, "v")
    with pytest.raises(SettingError, match=r"no\.such"):
        Producer(bootstrap, settings={"no.such": 1})


def test_nothing_is_lost_when_the_producer_closes(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, linger_ms=1000) as producer:
        futures = [producer.send_async(topic, f"{each}") for each in range(100)]
    assert all(future.done() and future.result() for future in futures)


def test_consumer_reads_from_anywhere(bootstrap: str, topic: str) -> None:
    place = fill(bootstrap, topic, 50)
    with Consumer(bootstrap) as consumer:
        assert consumer.partitions(topic) == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert consumer.offsets(place) == (0, 50)
        consumer.assign([place])
        assert values(consumer, 3) == ["0", "1", "2"]
        assert consumer.position(place) == 3
        consumer.seek(place, 40)
        assert values(consumer, 2) == ["40", "41"]
        consumer.seek(place, "beginning")
        assert values(consumer, 50) == [f"{each}" for each in range(50)]
        consumer.assign([place], 48)
        assert [each.offset for each in consumer.poll_batch(10, PATIENCE_S)][:1] == [48]


def test_a_seek_straight_after_assign_is_the_only_start(bootstrap: str, topic: str) -> None:
    place = fill(bootstrap, topic, 2000)
    with Consumer(bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, 5)
        assert [message.offset for message in islice(consumer, 1995)] == list(range(5, 2000))


def test_pause_keeps_the_place(bootstrap: str, topic: str) -> None:
    place = fill(bootstrap, topic, 20)
    with Consumer(bootstrap) as consumer:
        consumer.assign([place])
        assert values(consumer, 5) == ["0", "1", "2", "3", "4"]
        consumer.pause([place])
        assert consumer.poll(0.3) is None
        consumer.resume([place])
        assert values(consumer, 15) == [f"{each}" for each in range(5, 20)]


def test_without_a_group_there_is_nothing_to_join_or_commit(bootstrap: str) -> None:
    with Consumer(bootstrap) as consumer:
        with pytest.raises(GroupError, match="pass group"):
            consumer.subscribe(["t"])
        with pytest.raises(GroupError, match="pass group"):
            consumer.commit()
    with pytest.raises(ClosedError):
        consumer.poll(0)


def test_no_such_topic(bootstrap: str) -> None:
    with Consumer(bootstrap) as consumer, pytest.raises(UnknownTopicError):
        consumer.partitions(f"missing-{uuid4().hex}")


def test_a_group_reads_on_where_it_was(bootstrap: str, topic: str, group: str) -> None:
    place = fill(bootstrap, topic, 10)
    given: list[TopicPartition] = []
    with Consumer(bootstrap, group=group) as consumer:
        consumer.subscribe([topic], on_assign=given.extend)
        assert values(consumer, 4) == ["0", "1", "2", "3"]
        assert place in given
    with Consumer(bootstrap, group=group, auto_commit=False) as consumer:
        consumer.subscribe([topic])
        assert values(consumer, 2) == ["4", "5"]
        consumer.commit()
        assert values(consumer, 2) == ["6", "7"]
    with Consumer(bootstrap, group=group) as consumer:
        consumer.subscribe([topic])
        assert values(consumer, 1) == ["6"]


def test_a_message_whose_handling_failed_is_read_again(
    bootstrap: str, topic: str, group: str
) -> None:
    fill(bootstrap, topic, 5)

    def handle_badly() -> None:
        with Consumer(bootstrap, group=group) as consumer:
            consumer.subscribe([topic])
            values(consumer, 3)
            raise RuntimeError("handling message 2 failed")

    with pytest.raises(RuntimeError):
        handle_badly()
    with Consumer(bootstrap, group=group) as consumer:
        consumer.subscribe([topic])
        assert values(consumer, 1) == ["2"]


def test_asyncio_twins(bootstrap: str, topic: str) -> None:
    async def dialogue() -> None:
        place = TopicPartition(topic, 0)
        async with AsyncProducer(bootstrap) as producer:
            result = await producer.send(topic, "first", key="k", partition=0)
            assert result.offset == 0
            records = [Record(value=f"{each}", partition=0) for each in range(2000)]
            results = await producer.send_batch(topic, records)
            assert [each.offset for each in results] == list(range(1, 2001))
            with pytest.raises(UnknownTopicError):
                await producer.send(topic, "v", partition=99)
        with pytest.raises(ClosedError):
            await producer.send(topic, "v")
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign(await consumer.partitions(topic))
            offsets = [(await consumer.poll(PATIENCE_S)).offset for _ in range(2001)]  # type: ignore[union-attr]
            assert offsets == list(range(2001))
            assert await consumer.position(place) == 2001
            await consumer.seek(place, 1999)
            async for message in consumer:
                assert message.offset == 1999
                break

    asyncio.run(dialogue())


def test_a_full_queue_makes_async_senders_wait(bootstrap: str, topic: str) -> None:
    async def dialogue() -> None:
        settings = {"queue.buffering.max.messages": 50}
        async with AsyncProducer(bootstrap, settings=settings) as producer:
            results = await producer.send_batch(topic, [f"{each}" for each in range(1000)])
        assert len(results) == 1000

    asyncio.run(dialogue())


def test_a_cancelled_poll_loses_nothing(bootstrap: str, topic: str) -> None:
    async def dialogue() -> None:
        async with AsyncConsumer(bootstrap) as consumer, AsyncProducer(bootstrap) as producer:
            await consumer.assign([TopicPartition(topic, 0)])
            waiting = asyncio.create_task(consumer.poll())
            await asyncio.sleep(0)
            sent = producer.send(topic, "v", partition=0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await sent
            message = await consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.text == "v"

    asyncio.run(dialogue())


def test_an_async_group_commits(bootstrap: str, topic: str, group: str) -> None:
    fill(bootstrap, topic, 5)

    async def read(count: int) -> list[str]:
        async with AsyncConsumer(bootstrap, group=group) as consumer:
            await consumer.subscribe([topic])
            found = [await consumer.poll(PATIENCE_S) for _ in range(count)]
            await consumer.commit()
            return [message.text for message in found if message is not None]

    assert asyncio.run(read(2)) == ["0", "1"]
    assert asyncio.run(read(3)) == ["2", "3", "4"]


def test_polls_that_are_cancelled_anywhere_hand_out_each_message_once(
    bootstrap: str, topic: str
) -> None:
    count, rng = 400, Random(15)
    place = fill(bootstrap, topic, count)

    async def dialogue() -> list[int]:
        found: list[int] = []
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign([place])
            while len(found) < count:
                if rng.random() < 0.03:
                    await cancelled(rng, consumer.pause([place]))
                    await consumer.resume([place])
                message = await cancelled(rng, consumer.poll())
                if message is not None:
                    found.append(message.offset)
            assert await consumer.poll(0.3) is None
        return found

    assert asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S * 2)) == list(range(count))


async def cancelled(rng: Random, work: Coroutine[None, None, T]) -> T | None:
    """Cancel a call after some turns of the loop, or after some time; None if it was not done by
    then.
    """
    task = asyncio.ensure_future(work)
    if rng.random() < 0.5:
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
    else:
        await asyncio.wait({task}, timeout=rng.random() / 500)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


def test_iteration_continues_after_a_cancelled_wait(bootstrap: str, topic: str) -> None:
    async def dialogue() -> None:
        async with AsyncConsumer(bootstrap) as consumer, AsyncProducer(bootstrap) as producer:
            await consumer.assign([TopicPartition(topic, 0)])
            messages = aiter(consumer)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(messages), 0.01)
            await producer.send(topic, "v", partition=0)
            assert (await anext(messages)).text == "v"

    asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S))


def test_a_poll_waits_for_a_cancelled_pause_that_still_runs(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fill(bootstrap, topic, 20)
    looked, may_go_on, look = threading.Event(), threading.Event(), Session._first_buffered

    def look_and_wait(self: Session, asked: TopicPartition) -> int | None:
        found = look(self, asked)
        looked.set()
        may_go_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(Session, "_first_buffered", look_and_wait)

    async def dialogue() -> list[int]:
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign([place])
            found = [await consumer.poll(PATIENCE_S) for _ in range(5)]
            pausing = asyncio.create_task(consumer.pause([place]))
            await asyncio.to_thread(looked.wait, PATIENCE_S)
            pausing.cancel()
            polling = asyncio.create_task(consumer.poll())
            await asyncio.wait({polling}, timeout=0.05)
            may_go_on.set()
            await consumer.resume([place])
            found.append(await polling)
            found += [await consumer.poll(PATIENCE_S) for _ in range(14)]
            return [message.offset for message in found if message is not None]

    assert asyncio.run(asyncio.wait_for(dialogue(), PATIENCE_S * 2)) == list(range(20))
