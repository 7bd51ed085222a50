"""Tests workers, blocking and asyncio: done, failed, too slow, stopped."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from barnabas.client import AsyncQueue, AsyncWorker, Queue, QueueMessage, SettingError, UsageError
from barnabas.client.worker import Worker
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0


@pytest.fixture
def queue(bootstrap: str) -> Iterator[Queue]:
    with Queue.create(f"q-{uuid4().hex}", bootstrap, partitions=2) as queue:
        yield queue


def running(worker: Worker) -> threading.Thread:
    thread = threading.Thread(target=worker.run)
    thread.start()
    return thread


def depth_is(queue: Queue, depth: int) -> bool:
    return eventually(lambda: queue.stats().depth == depth)


def test_a_worker_handles_several_messages_at_a_time(queue: Queue) -> None:
    together = threading.Barrier(4)

    def handle(_: QueueMessage) -> None:
        together.wait(PATIENCE_S)

    worker = Worker(queue, handle, concurrency=4)
    thread = running(worker)
    queue.put_many([f"{each}" for each in range(8)])
    eventually(lambda: worker.done == 8)
    worker.stop()
    thread.join(PATIENCE_S)
    assert worker.failed == 0
    assert depth_is(queue, 0)


def test_a_failed_message_comes_again_and_a_rejected_one_does_not(queue: Queue) -> None:
    seen: list[tuple[str, int]] = []

    def handle(message: QueueMessage) -> None:
        seen.append((message.text, message.deliveries))
        if message.text == "poison":
            message.reject()
            raise ZeroDivisionError
        if message.deliveries == 1:
            raise ZeroDivisionError

    worker = Worker(queue, handle, concurrency=1)
    thread = running(worker)
    queue.put_many(["poison", "once more"])
    eventually(lambda: worker.done == 1)
    worker.stop()
    thread.join(PATIENCE_S)
    assert sorted(seen) == [("once more", 1), ("once more", 2), ("poison", 1)]
    assert worker.failed == 2
    assert depth_is(queue, 0)


def test_a_handler_that_takes_too_long_has_failed(queue: Queue) -> None:
    release = threading.Event()
    worker = Worker(
        queue, lambda _: release.wait(PATIENCE_S), concurrency=1, timeout_s=0.05, on_error="reject"
    )
    thread = running(worker)
    queue.put("slow")
    eventually(lambda: worker.failed == 1)
    release.set()
    worker.stop()
    thread.join(PATIENCE_S)
    assert (worker.done, worker.failed) == (0, 1)
    assert depth_is(queue, 0)


def test_stop_waits_for_running_handlers(queue: Queue) -> None:
    started, release = threading.Event(), threading.Event()

    def handle(_: QueueMessage) -> None:
        started.set()
        release.wait(PATIENCE_S)

    worker = Worker(queue, handle)
    thread = running(worker)
    queue.put("job")
    assert started.wait(PATIENCE_S)
    worker.stop()
    assert worker.done == 0
    release.set()
    thread.join(PATIENCE_S)
    assert worker.done == 1


def test_sigterm_stops_a_worker(queue: Queue) -> None:
    worker = Worker(queue, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    queue.put("job")
    worker.run()
    assert worker.done == 1
    assert signal.getsignal(signal.SIGTERM) == before


def test_mistakes_of_a_worker_say_what_to_write(bootstrap: str, queue: Queue) -> None:
    with pytest.raises(SettingError):
        Worker(queue, print, concurrency=0)
    with pytest.raises(SettingError):
        Worker(queue, print, on_error="ignore")  # type: ignore[arg-type]
    with Queue(queue.topic, bootstrap, auto_ack=True) as other, pytest.raises(UsageError):
        Worker(other, print)


def test_an_async_queue_takes_and_answers(bootstrap: str) -> None:
    async def dialogue() -> None:
        name = f"q-{uuid4().hex}"
        async with await AsyncQueue.create(name, bootstrap, partitions=1) as queue:
            assert await queue.take(0.01) is None
            waiting = asyncio.create_task(queue.take(PATIENCE_S))
            await asyncio.wait([waiting], timeout=0.01)
            waiting.cancel()
            await queue.put("first")
            message = await queue.take(PATIENCE_S)
            assert message is not None
            assert (message.text, message.deliveries) == ("first", 1)
            await queue.extend(message)
            message.nack()
            async for again in queue:
                assert again.deliveries == 2
                again.ack()
                break
            await queue.flush(PATIENCE_S)
            assert (await queue.stats()).depth == 0

    asyncio.run(dialogue())


def test_an_async_worker_cancels_what_takes_too_long(bootstrap: str) -> None:
    async def handle(message: QueueMessage) -> None:
        if message.text == "slow" and message.deliveries == 1:
            await asyncio.Event().wait()

    async def dialogue() -> None:
        name = f"q-{uuid4().hex}"
        async with await AsyncQueue.create(name, bootstrap, partitions=1) as queue:
            worker = AsyncWorker(queue, handle, timeout_s=0.1)
            run = asyncio.create_task(worker.run())
            await queue.put_many(["slow", "quick"])
            async with asyncio.timeout(PATIENCE_S):
                while worker.done < 2:
                    await asyncio.wait([run], timeout=0.01)
            worker.stop()
            await run
            assert worker.failed == 1
            assert (await queue.stats()).depth == 0

    asyncio.run(dialogue())
