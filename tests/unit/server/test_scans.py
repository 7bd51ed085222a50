"""Tests scans on an event loop: one step per event, in turns, with long calls on threads."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.effects import Scan
from barnabas.model.steps import Steps
from barnabas.server.scans import ACTIVE_MAX, Scans


class Stage:
    """Scans on the running event loop, and their results."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failures: list[Exception] = []
        self._idle = asyncio.Event()
        self.scans = Scans(asyncio.get_running_loop(), self.run_event)

    def run_event(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            callback(*arguments)
        except Exception as error:  # noqa: BLE001 - as the server does
            self.failures.append(error)
        if not any(lane.active for lane in self.scans._lanes.values()):
            self._idle.set()

    def submit(self, owner: str, steps: Steps[None], lane: str = "lane") -> None:
        self.scans.submit(Scan(lane, owner, steps))

    def counted(self, name: str, count: int) -> Steps[None]:
        for number in range(count):
            self.told.append(f"{name}{number}")
            yield None

    async def until_idle(self) -> None:
        async with asyncio.timeout(30):
            await self._idle.wait()


def played(play: Callable[[Stage], Any]) -> Stage:
    async def run() -> Stage:
        stage = Stage()
        try:
            await play(stage)
        finally:
            stage.scans.close()
        return stage

    return asyncio.run(run())


def test_other_events_come_between_two_steps() -> None:
    async def play(stage: Stage) -> None:
        stage.submit("client", stage.counted("step", 3))
        loop = asyncio.get_running_loop()

        def other(number: int) -> None:
            stage.told.append(f"other{number}")
            if number < 2:
                loop.call_soon(other, number + 1)

        loop.call_soon(other, 0)
        await stage.until_idle()

    assert played(play).told == ["step0", "other0", "step1", "other1", "step2", "other2"]


def test_owners_take_turns_and_a_greedy_one_waits_for_itself() -> None:
    async def play(stage: Stage) -> None:
        for number in range(50):
            stage.submit("greedy", stage.counted(f"greedy{number}.", 2))
        stage.submit("polite", stage.counted("polite", 2))
        await stage.until_idle()

    told = played(play).told
    assert len(told) == 102
    assert told.index("polite1") <= 4
    greedy = [each for each in told if each.startswith("greedy")]
    assert greedy == [f"greedy{n}.{step}" for n in range(50) for step in range(2)]


def test_only_so_many_scans_of_a_lane_are_under_way() -> None:
    under_way = 0
    most: list[int] = []

    def steps() -> Steps[None]:
        nonlocal under_way
        under_way += 1
        for _ in range(3):
            most.append(under_way)
            yield None
        under_way -= 1

    async def play(stage: Stage) -> None:
        for number in range(20):
            stage.submit(f"client {number}", steps())
        stage.submit("client", stage.counted("other lane", 1), lane="other")
        await stage.until_idle()

    stage = played(play)
    assert max(most) == ACTIVE_MAX
    assert len(most) == 60
    assert stage.told == ["other lane0"]


def test_a_call_is_made_on_a_thread_and_its_result_comes_back_on_the_loop() -> None:
    threads: list[str] = []

    def call() -> int:
        threads.append(threading.current_thread().name)
        return 7

    def failing() -> int:
        raise ValueError("no")

    def steps(stage: Stage) -> Steps[None]:
        result = yield call
        threads.append(threading.current_thread().name)
        stage.told.append(str(result))
        with pytest.raises(ValueError, match="no"):
            yield failing
        stage.told.append("told of the failure")

    async def play(stage: Stage) -> None:
        stage.submit("client", steps(stage))
        await stage.until_idle()

    stage = played(play)
    assert stage.told == ["7", "told of the failure"]
    assert threads[0].startswith("scan")
    assert threads[1] == threading.main_thread().name
    assert not stage.failures


def test_a_scan_that_fails_gives_its_place_to_the_next() -> None:
    def broken() -> Steps[None]:
        yield None
        raise RuntimeError("a mistake")

    async def play(stage: Stage) -> None:
        stage.submit("client", broken())
        stage.submit("client", stage.counted("next", 1))
        await stage.until_idle()

    stage = played(play)
    assert stage.told == ["next0"]
    assert [str(error) for error in stage.failures] == ["a mistake"]


def test_after_the_end_nothing_continues() -> None:
    async def play(stage: Stage) -> None:
        stage.submit("client", stage.counted("step", 100))
        await asyncio.sleep(0)

    assert len(played(play).told) < 100
