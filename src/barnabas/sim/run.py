"""Runs one seed with a single broker: clients and faults, until everything has settled.

    result = run(seed)
    assert result.problem is None

Safety is checked while faults happen. Liveness is checked once they have stopped: every client
makes progress, every group settles, every request gets a response and no transaction hangs.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import ClassVar

from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.sim.checks.final_checks import (
    audit_readers,
    check_flow,
    check_offsets,
    check_records,
    check_seen,
    check_shares,
    resolve,
)
from barnabas.sim.checks.settled_checks import SettledCheck, is_idle
from barnabas.sim.clients.reader import Reader
from barnabas.sim.clients.simulated_share_member import ShareConsumer
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.faults.fault_schedule import FaultSchedule, LoneFaultSchedule
from barnabas.sim.scenario import DATA, FLOW, SHARED, TOPICS, Scenario, Theme
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import QUEUE, QUEUE_PARTITIONS, ShareGroups
from barnabas.sim.world import InvariantError, World

CALM_MS = 60_000
END_MS = 60_000
SMALL_SEGMENT_BYTES = "2000"
SHARES_CHANCE = 0.2
"""The fraction of runs with share groups beside everything else."""
SHARES_ALONE_CHANCE = 0.1
"""The fraction of runs with share groups, in place of the theme that they would have."""


@dataclass
class Result:
    """The outcome of a run."""

    seed: int
    problem: str | None = None
    events: int = 0
    simulated_ms: int = 0
    digest: str = ""
    trace: list[str] = field(default_factory=list)


class Run:
    """A world with a broker, clients and faults."""

    faults_ms: ClassVar = (8_000, 20_000)
    """How long faults happen."""
    themes: ClassVar[tuple[Theme, ...]] = (
        Theme.MIXED,
        Theme.MIXED,
        Theme.GROUPS,
        Theme.FLOW,
        Theme.TRANSACTIONS,
    )

    def __init__(self, seed: int, *, theme: Theme | None = None, keep_trace: bool = False) -> None:
        self.world = World(seed, keep_trace=keep_trace)
        drawn = self.world.rng.choice(self.themes)
        self.theme = theme or self._theme_of(seed, drawn)
        self.faults = Faults.swarm(self.world.rng)
        self.cluster = self._make_cluster()
        self.scenario = Scenario(self.world, self.cluster)
        if self._has_shares(seed, is_given=theme is not None):
            self.scenario.shares = ShareGroups(seed, self.cluster, (DATA, QUEUE))

    def _has_shares(self, seed: int, *, is_given: bool) -> bool:
        """Draw with a generator of its own, so that seeds without share groups stay as they are."""
        if self.theme is Theme.SHARES:
            return True
        may_have = not is_given and self.theme is not Theme.SECURITY
        return may_have and Random(f"{seed} shares").random() < SHARES_CHANCE

    def _theme_of(self, seed: int, drawn: Theme) -> Theme:
        """Return the theme of a seed, which its generator has drawn, or share groups alone."""
        alone = Random(f"{seed} shares alone").random() < SHARES_ALONE_CHANCE
        return Theme.SHARES if alone else drawn

    def play(self) -> None:
        """Run the seed; raise `InvariantError` if a check fails."""
        world, rng = self.world, self.world.rng
        self._watch()
        self._boot()
        self._populate()
        for actor in list(self.scenario.actors):
            world.after(rng.randint(0, 1_000), actor.start)
        self._run_with_faults(rng.randint(*self.faults_ms))
        self._stop_faults()
        self._finish_clients()
        self._audit()

    def _make_cluster(self) -> Cluster:
        return Cluster.lone(self.world)

    def _watch(self) -> None:
        for host in self.cluster.hosts:
            host.invariants.append(Watermarks().check)
        self.world.note("world", f"{self.theme} {self.faults}")

    def _populate(self) -> None:
        self.scenario.populate(self.theme)

    def _boot(self) -> None:
        (host,) = self.cluster.hosts
        host.start()
        node = host.node
        assert node is not None
        config = self.world.rng.choice(({}, {"segment.bytes": SMALL_SEGMENT_BYTES}))
        topics = self._topics(TOPICS)
        for name, partitions in topics.items():
            create = partial(node.create_topic, name, partitions, config, 0)
            host.run_event(host.life, create)
        self.world.run_until(
            lambda: all(node.by_topic_name.get(name) for name in topics), 10_000, "the topics exist"
        )
        self.scenario.topic_ids[node.image.topics[SHARED].topic_id] = SHARED

    def _topics(self, usual: dict[str, int]) -> dict[str, int]:
        has_shares = self.scenario.shares is not None
        return {**usual, QUEUE: QUEUE_PARTITIONS} if has_shares else usual

    def _fault_schedule(self) -> FaultSchedule:
        return LoneFaultSchedule(self.world, self.scenario, self.faults)

    def _run_with_faults(self, duration_ms: int) -> None:
        faults = self._fault_schedule()
        faults.start_faults()
        over: list[bool] = []
        self.world.after(duration_ms, lambda: over.append(True))
        self.world.run_until(lambda: bool(over), self.world.now_ms + duration_ms, "time passes")
        faults.stop_faults()

    def _stop_faults(self) -> None:
        """Check that without faults every client makes progress."""
        limit_ms = self.world.now_ms + CALM_MS
        for member in self.scenario.of(ShareConsumer):
            member.is_careful = True
        settled = SettledCheck(self.scenario)
        what = "all clients make progress and groups are settled"
        self.world.run_until(lambda: self._is_settled(settled), limit_ms, what)

    def _is_settled(self, settled: SettledCheck) -> bool:
        return settled()

    def _finish_clients(self) -> None:
        """End all clients, and check that no request or transaction stays open."""
        actors = self.scenario.actors
        for actor in actors:
            actor.closing = True
        limit_ms = self.world.now_ms + END_MS
        self.world.run_until(lambda: all(a.done for a in actors), limit_ms, "clients are done")
        self.world.run_until(self._is_idle, limit_ms, "no request or transaction is open")

    def _is_idle(self) -> bool:
        return is_idle(self.cluster)

    def _drain(self, shares: ShareGroups) -> None:
        """Check that members can finish all records, even those of members that died."""
        drainers = [
            self.scenario.add_share_consumer(f"drain-{group.group_id}", shares, group)
            for group in shares.groups.values()
            if group.is_ready
        ]
        for drainer in drainers:
            drainer.is_careful = True
            drainer.start()
        limit_ms = self.world.now_ms + END_MS
        self._until(lambda: not shares.rest(), limit_ms, "share groups are done", shares.rest)
        for drainer in drainers:
            drainer.closing = True
        self.world.run_until(
            lambda: all(each.done for each in drainers), limit_ms, "the last members are done"
        )

    def _until(
        self, done: Callable[[], bool], limit_ms: int, what: str, rest: Callable[[], object]
    ) -> None:
        """Run until a condition holds; say what is left if it does not."""
        try:
            self.world.run_until(done, limit_ms, what)
        except InvariantError as error:
            raise InvariantError(f"{error}: {rest()}") from None

    def _audit(self) -> None:
        scenario, world = self.scenario, self.world
        if scenario.shares is not None:
            self._drain(scenario.shares)
        ledger = scenario.ledger
        limit_ms = world.now_ms + END_MS
        readers = audit_readers(world, self.cluster, ledger, scenario.monotonic, scenario.stored)
        for reader in readers:
            reader.start()
        world.run_until(
            lambda: all(r.done for r in readers), limit_ms, "the auditors have read all records"
        )
        check_records(ledger, readers)
        check_seen(scenario.of(Reader), readers)
        if scenario.shares is not None:
            check_shares(scenario.shares, scenario.queue_ledger, readers)
        resolve(ledger, readers, world.now_ms)
        world.after(1, lambda: None)
        look_ups = scenario.look_ups()
        for look_up in look_ups:
            world.after(2, look_up.start)
        world.run_until(
            lambda: all(x.done for x in look_ups), limit_ms, "the auditors have read all offsets"
        )
        check_offsets(ledger)
        check_flow(ledger, readers, FLOW)


class Watermarks:
    """Checks that no watermark decreases during a life, or is ahead of the disk."""

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}

    def check(self, node: Node) -> None:
        """Compare the watermarks with those of the last check."""
        seen = self._seen
        for partition in node.partitions.values():
            now = (partition.high_watermark, partition.last_stable_offset)
            before = seen.get(partition, (0, 0))
            if now == before:
                continue
            if now[0] < before[0] or now[1] < before[1]:
                raise InvariantError(f"{partition.name} went back from {before} to {now}")
            if not now[1] <= now[0] <= partition.log.flushed_offset:
                raise InvariantError(f"{partition.name} is at {now}, ahead of the disk")
            seen[partition] = now


def run(seed: int, *, theme: Theme | None = None, keep_trace: bool = False) -> Result:
    """Run one seed, with the theme that it draws or another; return the outcome."""
    return played(Run(seed, theme=theme, keep_trace=keep_trace))


def played(playing: Run) -> Result:
    """Run to the end, and return the outcome whether it failed or not."""
    world = playing.world
    result = Result(world.seed)
    try:
        playing.play()
    except AssertionError as error:
        result.problem = str(error) or traceback.format_exc()
    except Exception:  # noqa: BLE001 - whatever it is, the seed brings it back
        result.problem = traceback.format_exc()
    result.events, result.simulated_ms = world.events, world.now_ms
    result.digest, result.trace = world.digest, world.trace
    return result
