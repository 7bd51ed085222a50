"""One run: a broker is started, clients do their work while faults happen, and all comes to rest.

    result = run(seed)
    assert result.problem is None

Safety is checked under fire, liveness once the faults have stopped: every client makes progress,
every group settles, every request is answered and no transaction hangs.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.sim.audit import audit_readers, check_offsets, check_records, check_seen, resolve
from barnabas.sim.committers import Committer
from barnabas.sim.faults import Faults
from barnabas.sim.host import Host
from barnabas.sim.member import Member
from barnabas.sim.producer import IdempotentProducer
from barnabas.sim.reader import Reader
from barnabas.sim.scenario import SHARED, TOPICS, Scenario
from barnabas.sim.transactional import TransactionalProducer
from barnabas.sim.world import World

FAULTS_MS_MIN, FAULTS_MS_MAX = 8_000, 20_000
CALM_MS = 60_000
END_MS = 60_000
PAUSE_MS_MAX = 9_000
AWAY_MS_MAX = 8_000
DOWN_MS_MAX = 1_500
FULL_MS_MAX = 2_500
SMALL_SEGMENT_BYTES = "2000"


@dataclass
class Result:
    """How a run went."""

    seed: int
    problem: str | None = None
    events: int = 0
    simulated_ms: int = 0
    digest: str = ""
    trace: list[str] = field(default_factory=list)


class Run:
    """A world with everybody in it."""

    def __init__(self, seed: int, *, keep_trace: bool = False) -> None:
        self.world = World(seed, keep_trace=keep_trace)
        self.faults = Faults.swarm(self.world.rng)
        self.host = Host(self.world, Faults())
        self.scenario = Scenario(self.world, self.host)
        self._faulty = False
        self._watermarks: dict[tuple[int, object], tuple[int, int]] = {}

    def play(self) -> None:
        """Play the whole run; raise `InvariantError` where something must not be."""
        world, rng = self.world, self.world.rng
        self.world.invariants.append(self._check_watermarks)
        world.note("world", f"{self.faults}")
        self._boot()
        self.scenario.populate()
        for actor in list(self.scenario.actors):
            world.after(rng.randint(0, 1_000), actor.start)
        self._let_faults_happen(rng.randint(FAULTS_MS_MIN, FAULTS_MS_MAX))
        self._calm_down()
        self._come_to_an_end()
        self._audit()

    def _boot(self) -> None:
        host = self.host
        host.start()
        node = host.node
        assert node is not None
        config = self.world.rng.choice(({}, {"segment.bytes": SMALL_SEGMENT_BYTES}))
        for name, partitions in TOPICS.items():
            host.act(
                host.life,
                lambda n=name, p=partitions: node.create_topic(n, p, config, 0),  # type: ignore[misc]
            )
        self.world.run_until(
            lambda: all(node.by_topic_name.get(name) for name in TOPICS), 10_000, "topics are made"
        )
        self.scenario.topic_ids[node.image.topics[SHARED].topic_id] = SHARED

    def _let_faults_happen(self, duration_ms: int) -> None:
        self._faulty = True
        self.host.faults = faults = self.faults
        scenario, rng = self.scenario, self.world.rng
        self._every(faults.break_gap_ms, lambda: rng.choice(scenario.actors).lose_connection())
        self._every(
            faults.pause_gap_ms,
            lambda: rng.choice(scenario.actors).pause(rng.randint(100, PAUSE_MS_MAX)),
        )
        self._every(
            faults.client_crash_gap_ms,
            lambda: rng.choice(scenario.actors).crash(rng.randint(1, AWAY_MS_MAX)),
        )
        self._every(faults.zombie_gap_ms, scenario.raise_zombie)
        self._every(faults.power_cut_gap_ms, lambda: self._stop_broker(power_cut=True))
        self.host.on_bad_sync = lambda: self._stop_broker(power_cut=True)
        self._every(faults.kill_gap_ms, lambda: self._stop_broker(power_cut=False))
        self._every(faults.full_disk_gap_ms, self._fill_disk)
        end_ms = self.world.now_ms + duration_ms
        over: list[bool] = []
        self.world.after(duration_ms, lambda: over.append(True))
        self.world.run_until(lambda: bool(over), end_ms, "time passes")
        self._faulty = False
        self.world.note("world", "is kind from here on")

    def _every(self, gap_ms: int, fault: Callable[[], None]) -> None:
        """Have a fault happen now and then, for as long as there are faults."""
        if not gap_ms:
            return

        def happen() -> None:
            if self._faulty:
                fault()
                self._every(gap_ms, fault)

        self.world.after(self.world.rng.randint(1, 2 * gap_ms), happen)

    def _stop_broker(self, *, power_cut: bool) -> None:
        host = self.host
        if host.node is not None and self._faulty:
            host.kill(power_cut=power_cut)
            self.world.after(self.world.rng.randint(1, DOWN_MS_MAX), host.start)

    def _fill_disk(self) -> None:
        self.world.note("broker", "has a full disk")
        self.host.disk.room = 0
        self.world.after(self.world.rng.randint(100, FULL_MS_MAX), self._empty_disk)

    def _empty_disk(self) -> None:
        if self.host.disk.room is not None:
            self.world.note("broker", "has room on its disk again")
            self.host.disk.room = None

    def _calm_down(self) -> None:
        """Take the faults away; everybody must come to do what they are there for."""
        self.host.faults = Faults()
        self._empty_disk()
        scenario = self.scenario
        for zombie in scenario.zombies:
            zombie.closing = True
        producers = [(p, p.answered) for p in scenario.of(IdempotentProducer)]
        transactional = [
            (p, p.ended) for p in scenario.of(TransactionalProducer) if p not in scenario.zombies
        ]
        committers = [(c, c.committed) for c in scenario.of(Committer)]

        def calm() -> bool:
            return (
                self.host.node is not None
                and all(p.answered > before for p, before in producers)
                and all(p.ended > before for p, before in transactional)
                and all(c.committed > before for c, before in committers)
                and all(m.settled for m in scenario.of(Member))
            )

        limit_ms = self.world.now_ms + CALM_MS
        self.world.run_until(calm, limit_ms, "everybody makes progress and groups are settled")

    def _come_to_an_end(self) -> None:
        """Have everybody finish; nothing may stay open."""
        actors = self.scenario.actors
        for actor in actors:
            actor.closing = True
        limit_ms = self.world.now_ms + END_MS
        self.world.run_until(lambda: all(a.done for a in actors), limit_ms, "clients are done")
        self.world.run_until(self._is_quiet, limit_ms, "transactions have ended")

    def _is_quiet(self) -> bool:
        node = self.host.node
        assert node is not None
        return all(
            partition.last_stable_offset == partition.high_watermark == partition.log.end_offset
            for partition in node.partitions.values()
        )

    def _audit(self) -> None:
        scenario, world = self.scenario, self.world
        ledger = scenario.ledger
        limit_ms = world.now_ms + END_MS
        readers = audit_readers(world, self.host, ledger, scenario.growth, scenario.data)
        for reader in readers:
            reader.start()
        world.run_until(lambda: all(r.done for r in readers), limit_ms, "everything is read")
        check_records(ledger, readers)
        check_seen(scenario.of(Reader), readers)
        resolve(ledger, readers, world.now_ms)
        world.after(1, lambda: None)
        look_ups = scenario.look_ups()
        for look_up in look_ups:
            world.after(2, look_up.start)
        world.run_until(lambda: all(x.done for x in look_ups), limit_ms, "offsets are read")
        check_offsets(ledger)

    def _check_watermarks(self) -> None:
        """After every event: in a broker's life, no watermark goes back."""
        node, life = self.host.node, self.host.life
        if node is None:
            return
        for name, partition in node.partitions.items():
            now = (partition.high_watermark, partition.last_stable_offset)
            before = self._watermarks.get((life, name))
            if now != before:
                assert before is None or (now[0] >= before[0] and now[1] >= before[1]), (
                    f"{name} went from {before} back to {now}"
                )
                assert now[1] <= now[0] <= partition.log.flushed_offset, f"{name}: {now}"
                self._watermarks[life, name] = now


def run(seed: int, *, keep_trace: bool = False) -> Result:
    """Play one seed; say what went wrong, if anything did."""
    playing = Run(seed, keep_trace=keep_trace)
    result = Result(seed)
    try:
        playing.play()
    except AssertionError as error:
        result.problem = str(error) or traceback.format_exc()
    except Exception:  # noqa: BLE001 - whatever it is, the seed brings it back
        result.problem = traceback.format_exc()
    world = playing.world
    result.events, result.simulated_ms = world.events, world.now_ms
    result.digest, result.trace = world.digest, world.trace
    return result
