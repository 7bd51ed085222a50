"""Scenarios for a consumer group under load: a small one for every client, and a long one."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

from tests.support.loads.load import create_topic
from tests.support.members.membership import Findings
from tests.support.members.membership_crowd import Crowd, Host, Plan

RECORDS_BETWEEN = 100
PARTITIONS = 6
SESSION_MS = 3000


def small_plan(folder: Path, bootstrap: str, **choices: Any) -> Plan:
    """Return the plan of a small scenario, whose topic and group are named after its folder."""
    return Plan(
        bootstrap=bootstrap,
        topic=folder.name,
        partitions=PARTITIONS,
        group=folder.name,
        session_ms=SESSION_MS,
        **choices,
    )


@contextmanager
def small_stories(
    cases: Mapping[str, Mapping[str, Any]], bootstrap: str, new_folder: Callable[[str], Path]
) -> Iterator[dict[str, Future[Findings]]]:
    """Run a small scenario for each case in parallel; they mostly wait."""
    with ThreadPoolExecutor(len(cases)) as pool:
        futures = {}
        for name, choices in cases.items():
            folder = new_folder(f"{name}-{uuid4().hex[:8]}")
            futures[name] = pool.submit(small, folder, small_plan(folder, bootstrap, **choices))
        yield futures


def small(folder: Path, plan: Plan, rate: int = 300) -> Findings:
    """Three members: one leaves, another joins, one crashes and returns."""
    create_topic(plan.bootstrap, plan.topic, plan.partitions)
    with Crowd(folder, plan, rate) as crowd:
        steady, doomed = crowd.host("m0", "m1"), crowd.host("m2")
        crowd.wait_stable()
        crowd.wait_processed(RECORDS_BETWEEN)
        steady.leave("m1")
        crowd.wait_stable()
        doomed.kill()
        steady.join("m3")
        crowd.wait_stable()
        crowd.wait_processed(RECORDS_BETWEEN)
        crowd.host("m2")
        crowd.wait_stable()
        crowd.wait_processed(RECORDS_BETWEEN)
        return crowd.finish()


class LongStory:
    """A group that grows to its full size, then loses and regains members, step by step."""

    def __init__(self, crowd: Crowd, rng: Random, members: int, hosted: int) -> None:
        """Take the number of members, and how many share a process."""
        self._crowd = crowd
        self._rng = rng
        self._hosted = hosted
        self._names = [f"m{number}" for number in range(members)]
        self.kills = self.leaves = self.returns = 0

    def run(self, steps: int) -> Findings:
        """Let all members join, run the given number of failures, wait until all is processed."""
        crowd = self._crowd
        for start in range(0, len(self._names), self._hosted):
            crowd.host(*self._names[start : start + self._hosted])
        crowd.wait_stable()
        for _ in range(steps):
            self._rng.choice((self._crash, self._crash, self._leave))()
            crowd.wait_processed(RECORDS_BETWEEN)
        crowd.wait_stable()
        return crowd.finish()

    def _crash(self) -> None:
        """Kill one process or a few at once; their members return after a random time."""
        plan, running = self._crowd.plan, self._running()
        doomed = self._rng.sample(running, min(len(running), self._rng.randint(1, 2)))
        names = [list(host.members) for host in doomed]
        for host in doomed:
            host.kill()
            self.kills += 1
        self._perhaps_settle(must=plan.static and plan.protocol == "consumer")
        for some in names:
            self._return(*some)

    def _leave(self) -> None:
        """Let the members of one process leave cleanly; they return."""
        host = self._rng.choice(self._running())
        names = list(host.members)
        host.close()
        self.leaves += len(names)
        self._perhaps_settle()
        self._return(*names)

    def _perhaps_settle(self, *, must: bool = False) -> None:
        """Continue before or after the others have taken over the partitions of the absent members.

        An instance id of a `consumer` group cannot be used again until its session has expired.
        """
        if self._running() and (self._rng.random() < 0.5 or must):
            self._crowd.wait_stable()

    def _return(self, *names: str) -> None:
        self._crowd.host(*names)
        self.returns += len(names)

    def _running(self) -> list[Host]:
        return [host for host in self._crowd.hosts if host.members]


def long(
    folder: Path, plan: Plan, seed: int, *, members: int, hosted: int, steps: int, rate: int = 1000
) -> tuple[Findings, dict[str, int]]:
    """Run a long scenario; return the findings, and counts of what was done and checked."""
    create_topic(plan.bootstrap, plan.topic, plan.partitions)
    with Crowd(folder, plan, rate) as crowd:
        story = LongStory(crowd, Random(seed), members, hosted)
        findings = story.run(steps)
    done = {"kills": story.kills, "leaves": story.leaves, "returns": story.returns}
    return findings, done | findings.figures()
