"""Schedules the faults of machines and links in a cluster run."""

from collections.abc import Callable

from barnabas.sim.checks.quorum_checks import Quorum
from barnabas.sim.faults.cluster_fault_rates import ClusterFaults
from barnabas.sim.faults.fault_schedule import FULL_MS_MAX, FaultSchedule
from barnabas.sim.faults.triggered_faults import TriggeredFaults
from barnabas.sim.host import Host
from barnabas.sim.scenario import Scenario
from barnabas.sim.simulated_cluster import BROKER_SESSION_MS, Cluster
from barnabas.sim.world import InvariantError, World

CUT_MS_MAX = 3 * BROKER_SESSION_MS
STANDSTILL_MS_MAX = 3 * BROKER_SESSION_MS
SLOW_MS = (200, 1_500)
JUMP_MS_MAX = 3_600_000
BLACKOUT_MS_MAX = 500
REFUSED_MS_MAX = FULL_MS_MAX
"""Disks are full for longer only where nothing else goes wrong, so that a resignation is heard."""


class ClusterFaultSchedule(FaultSchedule):
    """Makes faults happen to brokers that form a cluster, and to their clients."""

    def __init__(
        self, world: World, scenario: Scenario, faults: ClusterFaults, quorum: Quorum
    ) -> None:
        super().__init__(world, scenario, faults.machine)
        self._faults = faults
        self._cluster: Cluster = scenario.cluster
        self._weakest = world.rng.choice(self._cluster.hosts)
        self._flips = 0
        self._latest_ms = max(host.skew_ms for host in self._cluster.hosts)
        """The furthest that any clock was ever ahead, which is where all are set in the end.

        A transaction times out by the clock of whoever coordinates it; one that began while a
        clock was ahead, and is set back, would stay open for as long, here as in Kafka."""
        self._triggered = TriggeredFaults(world, self._cluster, self._strike, self._spoil)
        quorum.on_change = self._triggered.changed

    def start_faults(self) -> None:
        """Begin."""
        super().start_faults()
        faults, machine = self._faults, self._machine
        self._triggered.chance = faults.triggered
        for host in self._cluster.hosts:
            host.on_bad_sync = self._cutting(host)
            host.on_ask = self._triggered.asked
        self._every(machine.power_cut_gap_ms, self._cut_power)
        self._every(machine.kill_gap_ms, lambda: self._kill(self._victim(), power_cut=False))
        self._every(machine.stop_gap_ms, lambda: self._stop(self._victim()))
        self._every(machine.full_disk_gap_ms, lambda: self._fill_disk(self._doomed()))
        self._every(faults.blackout_gap_ms, self._black_out)
        self._every(faults.rolling_gap_ms, lambda: self._roll(self._cluster.hosts))
        self._every(faults.cut_gap_ms, self._cut_cable)
        self._every(faults.isolation_gap_ms, self._isolate)
        self._every(faults.slow_gap_ms, self._slow_cable)
        self._every(faults.standstill_gap_ms, lambda: self._pause(self._victim()))
        self._every(faults.clock_gap_ms, self._turn_clock)
        self._every(faults.flip_gap_ms, self._flip)
        self._every(faults.lane_gap_ms, self._break_lane)

    def stop_faults(self) -> None:
        """Have nothing go wrong any more; who is down comes back by itself."""
        super().stop_faults()
        self._triggered.chance = 0.0
        self._cluster.wires.mend_all()
        for host in self._cluster.hosts:
            host.resume()
            host.disk.room = None
            host.skew_ms = self._latest_ms

    def _victim(self) -> Host:
        """Draw a machine: just any, or one that matters."""
        rng, cluster = self._world.rng, self._cluster
        if self._faults.flip_gap_ms:
            return self._weakest
        if rng.random() < self._faults.targeted:
            led = cluster.leader_of(rng.choice(self._scenario.stored))
            found = rng.choice((cluster.controller, led))
            if found is not None:
                return found
        return rng.choice(cluster.hosts)

    def _doomed(self) -> Host:
        """Draw a machine for what may count as a crash: a broker that stops with a full disk cannot
        leave word that it stopped cleanly. Where topics are not synced on every write, two copies
        are promised to survive one machine's crashes, not those of two."""
        return self._victim() if self._faults.flush_on_ack else self._weakest

    def _cut_power(self) -> None:
        self._kill(self._doomed(), power_cut=True)

    def _strike(self, host: Host) -> None:
        """End a broker as hard as its topics are promised to survive."""
        safe = self._faults.flush_on_ack
        if not self._bad:
            return
        if safe or host is self._weakest:
            self._kill(host, power_cut=not safe or self._world.rng.random() < 0.5)
        else:
            self._pause(host)

    def _cutting(self, host: Host) -> Callable[[], None]:
        return lambda: self._kill(host, power_cut=True)

    def _kill(self, host: Host, *, power_cut: bool) -> None:
        if host.node is not None and self._bad:
            host.kill(power_cut=power_cut)
            away_ms = self._world.rng.randint(1, self._faults.down_ms_max)
            self._world.after(away_ms, lambda: self._start(host))

    def _stop(self, host: Host, then: Callable[[], None] = lambda: None) -> None:
        """Stop a broker as it should be, and start it again."""

        def stopped() -> None:
            host.kill(power_cut=False)
            self._world.after(self._world.rng.randint(1, self._faults.down_ms_max), start)

        def start() -> None:
            self._start(host)
            then()

        if host.node is not None and not host.paused:
            host.stop(stopped)

    def _roll(self, hosts: list[Host]) -> None:
        """Restart one after the other."""
        if hosts and self._bad:
            self._stop(hosts[0], lambda: self._world.after(500, lambda: self._roll(hosts[1:])))

    def _black_out(self) -> None:
        for host in self._cluster.hosts:
            if host.node is not None:
                host.kill(power_cut=True)
                self._world.after(self._world.rng.randint(1, BLACKOUT_MS_MAX), host.start)

    def _fill_disk(self, host: Host) -> None:
        self._world.note(host.name, "has a full disk")
        host.disk.room = 0
        full_since_ms = self._world.now_ms

        def free() -> None:
            self._check_resigned(host, self._world.now_ms - full_since_ms)
            host.disk.room = None

        self._world.after(self._world.rng.randint(100, self._faults.full_ms_max), free)

    def _check_resigned(self, host: Host, full_ms: int) -> None:
        """No leader may refuse appends for long while another replica could take them.

        A disk that was full before, for a short time, may not have been asked for room since.
        """
        for partition in () if host.node is None else host.node.partitions.values():
            refused_ms = min(partition.health.append_failures.refused_for_ms, full_ms)
            if refused_ms <= REFUSED_MS_MAX or len(partition.isr) == 1:
                continue
            if self._cluster.leader_of(partition.name) is host:  # it may not have heard yet
                raise InvariantError(
                    f"{host.name} leads {partition.name} of {partition.isr} and has refused "
                    f"appends for {refused_ms} ms"
                )

    def _cut_cable(self) -> None:
        rng = self._world.rng
        one, other = rng.sample([host.name for host in self._cluster.hosts], 2)
        ways = [(one, other), (other, one)]
        self._spoil(ways[: rng.choice((1, 2))], rng.randint(100, CUT_MS_MAX))

    def _isolate(self) -> None:
        """Cut one machine off: from the other brokers, and maybe from clients."""
        victim, rng = self._victim().name, self._world.rng
        others = [host.name for host in self._cluster.hosts if host.name != victim]
        if rng.random() < 0.5:
            others += [actor.name for actor in self._scenario.actors]
        ways = [(victim, other) for other in others]
        if rng.random() < 0.7:
            ways += [(other, victim) for other in others]
        self._spoil(ways, rng.randint(100, CUT_MS_MAX))

    def _spoil(self, ways: list[tuple[str, str]], duration_ms: int) -> None:
        wires = self._cluster.wires
        for source, target in ways:
            wires.cut(source, target)

        def mend() -> None:
            for source, target in ways:
                wires.mend(source, target)

        self._world.after(duration_ms, mend)

    def _slow_cable(self) -> None:
        rng, wires = self._world.rng, self._cluster.wires
        one, other = rng.sample([host.name for host in self._cluster.hosts], 2)
        wires.slow(one, other, rng.randint(*SLOW_MS))
        self._world.after(rng.randint(100, CUT_MS_MAX), lambda: wires.mend(one, other))

    def _pause(self, host: Host) -> None:
        if host.node is None or host.paused:
            return
        host.pause()
        life = host.life

        def resume() -> None:
            if host.life == life:
                host.resume()

        self._world.after(self._world.rng.randint(100, STANDSTILL_MS_MAX), resume)

    def _turn_clock(self) -> None:
        rng = self._world.rng
        host = rng.choice(self._cluster.hosts)
        host.skew_ms = rng.randint(-JUMP_MS_MAX, JUMP_MS_MAX)
        self._latest_ms = max(self._latest_ms, host.skew_ms)
        self._world.note(host.name, f"has a clock that is {host.skew_ms} ms ahead")

    def _flip(self) -> None:
        self._flips += 1

    def _start(self, host: Host) -> None:
        """Start a broker, which finds what has become of its disk."""
        while host is self._weakest and self._flips:
            self._flips -= 1
            host.flip()
        host.start()

    def _break_lane(self) -> None:
        lanes = [link for host in self._cluster.hosts for link in host.links if link.peer]
        if lanes:
            self._world.rng.choice(lanes).cut()
