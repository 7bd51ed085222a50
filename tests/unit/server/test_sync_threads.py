"""Tests that syncs of one turn of the event loop are combined; none is lost or reported early."""

import asyncio
import threading
from weakref import finalize

from barnabas.effects import Flush
from barnabas.server.files.sync_threads import SyncThreads
from barnabas.storage.flush import FlushTask


def flush(number: int) -> Flush:
    return Flush(FlushTask((), (), number, 0, 0), lambda: None)


class Bench:
    """Threads on an event loop, with a record of everything that they did."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.synced: list[int] = []
        self.reports: list[list[int]] = []
        self._reported = asyncio.Event()
        self.threads = SyncThreads(count, loop, self._sync, self._done)

    def _sync(self, flush: Flush) -> None:
        self.synced.append(flush.task.upto_offset)

    def _done(self, flushes: list[Flush]) -> None:
        numbers = [flush.task.upto_offset for flush in flushes]
        assert set(numbers) <= set(self.synced)
        self.reports.append(numbers)
        self._reported.set()

    async def reported(self, count: int) -> None:
        async with asyncio.timeout(30):
            while sum(map(len, self.reports)) < count:
                self._reported.clear()
                await self._reported.wait()


def test_what_one_turn_asks_for_begins_at_its_end() -> None:
    async def play() -> None:
        bench = Bench(asyncio.get_running_loop(), 1)
        for number in range(5):
            bench.threads.submit(flush(number))
        assert bench.synced == []
        await bench.reported(5)
        assert bench.reports == [[0, 1, 2, 3, 4]]
        bench.threads.close()

    asyncio.run(play())


def test_every_sync_is_reported_once_however_many_threads_share_them() -> None:
    async def play() -> None:
        bench = Bench(asyncio.get_running_loop(), 4)
        for turn in range(20):
            for number in range(turn):
                bench.threads.submit(flush(100 * turn + number))
            await asyncio.sleep(0)
        wanted = [100 * turn + number for turn in range(20) for number in range(turn)]
        await bench.reported(len(wanted))
        assert sorted(number for report in bench.reports for number in report) == wanted
        bench.threads.close()

    asyncio.run(play())


def test_a_stop_finishes_what_was_asked_for_in_the_same_turn() -> None:
    async def play() -> None:
        bench = Bench(asyncio.get_running_loop(), 2)
        bench.threads.submit(flush(1))
        bench.threads.close()
        assert bench.synced == [1]

    asyncio.run(play())


class Owner:
    """The purpose of a sync."""

    def synced(self) -> None:
        pass


def test_a_thread_that_waits_keeps_nothing_of_its_last_sync() -> None:
    async def play() -> None:
        bench, owner, gone = Bench(asyncio.get_running_loop(), 1), Owner(), threading.Event()
        finalize(owner, gone.set)
        bench.threads.submit(Flush(FlushTask((), (), 1, 0, 0), owner.synced))
        del owner
        await bench.reported(1)
        assert gone.wait(30)
        bench.threads.close()

    asyncio.run(play())
