"""Tests syncs of changes: off the event loop, each folder once for all, and none lost."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from barnabas.effects import MakeDurable
from barnabas.model.errors import SyncFailedError
from barnabas.server.files import durable_threads
from barnabas.server.files.durable_threads import REPORTED_AT_ONCE, DurableThreads
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.changes import Sync


class Bench:
    """Threads on an event loop, a disk that records its syncs, and the reported results."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.disk = MemoryDisk()
        self.disk.before = self._before
        self.synced: list[str] = []
        self.on: set[str] = set()
        self.reports: list[int] = []
        self.stopped: list[BaseException] = []
        self.failures: list[BaseException] = []
        self.threads = DurableThreads(self.disk, loop, self._done, self.stopped.append)
        self._reported = asyncio.Event()

    def _before(self, operation: str, path: str) -> None:
        if operation == "sync_folder":
            if self.failures:
                raise self.failures.pop()
            self.synced.append(path)
            self.on.add(threading.current_thread().name)

    def _done(self, requests: list[MakeDurable]) -> None:
        self.reports.append(len(requests))
        for request in requests:
            request.done()
        self._reported.set()

    async def reported(self, count: int) -> None:
        async with asyncio.timeout(30):
            while sum(self.reports) < count:
                self._reported.clear()
                await self._reported.wait()


def play(scene: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def run() -> Bench:
        bench = Bench(asyncio.get_running_loop())
        try:
            await scene(bench)
        finally:
            bench.threads.close()
        return bench

    return asyncio.run(run())


def request(*folders: str) -> MakeDurable:
    return MakeDurable(Sync(folders=folders), lambda: None)


def test_a_folder_is_synced_once_for_all_of_one_turn() -> None:
    async def scene(bench: Bench) -> None:
        for _ in range(200):
            bench.threads.submit(request("data", ""))
        await bench.reported(200)

    bench = play(scene)
    assert bench.synced == ["data", ""]
    assert threading.current_thread().name not in bench.on
    assert max(bench.reports) <= REPORTED_AT_ONCE


def test_other_folders_have_their_own_syncs() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(20):
            bench.disk.make_folder(f"data/{number}")
            bench.threads.submit(request(f"data/{number}"))
        await bench.reported(20)

    assert sorted(play(scene).synced) == sorted(f"data/{number}" for number in range(20))


def test_a_request_for_nothing_is_a_turn_of_the_loop() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.submit(request())
        assert bench.reports == []
        await bench.reported(1)

    assert play(scene).synced == []


def test_a_folder_that_cannot_be_opened_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_threads, "TRY_AGAIN_S", 0.001)

    async def scene(bench: Bench) -> None:
        bench.failures = [OSError(24, "too many open files")]
        bench.threads.submit(request("data"))
        await bench.reported(1)

    bench = play(scene)
    assert (bench.synced, bench.stopped) == (["data"], [])


def test_a_failed_sync_ends_the_process() -> None:
    async def scene(bench: Bench) -> None:
        bench.failures = [SyncFailedError("broken")]
        bench.threads.submit(request("data"))
        await bench.reported(1)  # a real process would have ended by then

    assert [str(error) for error in play(scene).stopped] == ["broken"]


def test_what_was_asked_for_is_done_before_the_end() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.submit(request("data"))

    assert play(scene).synced == ["data"]
