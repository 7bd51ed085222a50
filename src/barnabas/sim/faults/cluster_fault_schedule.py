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
MACHINE_PAUSE_MS_MAX = 3 * BROKER_SESSION_MS
SLOW_MS = (200, 1_500)
JUMP_MS_MAX = 3_600_000
BLACKOUT_MS_MAX = 500
REFUSED_MS_MAX = FULL_MS_MAX
"""Disks are full for longer only if there are no other faults, so that brokers learn of a
resignation.
"""


class ClusterFaultSchedule(FaultSchedule):
    """Schedules the faults of brokers that form a cluster, and of their clients."""

    def __init__(
        self, world: World, scenario: Scenario, faults: ClusterFaults, quorum: Quorum
    ) -> None:
        super().__init__(world, scenario, faults.machine)
        self._faults = faults
        self._cluster: Cluster = scenario.cluster
        self._weakest = world.rng.choice(self._cluster.hosts)
        self._flips = 0
        self._latest_ms = max(host.skew_ms for host in self._cluster.hosts)
        """The furthest that any wall clock was ever ahead. At the end all clocks are set to it.

        A transaction times out by its coordinator's clock. If it began while the clock was ahead,
        and the clock is set back, the transaction stays open for as long, here as well as in Kafka.
        """
        self._triggered = TriggeredFaults(world, self._cluster, self._stop_hard, self._cut_links)
        quorum.on_change = self._triggered.changed

    def start_faults(self) -> None:
        """Start the faults."""
        super().start_faults()
        faults, machine = self._faults, self._machine
        self._triggered.chance = faults.triggered
        for host in self._cluster.hosts:
            host.on_power_cut_in_sync = self._power_cut_of(host)
            host.on_ask = self._triggered.asked
        self._every(machine.power_cut_gap_ms, self._cut_power)
        self._every(machine.kill_gap_ms, lambda: self._kill(self._victim(), power_cut=False))
        self._every(machine.stop_gap_ms, lambda: self._stop(self._victim()))
        self._every(machine.full_disk_gap_ms, lambda: self._fill_disk(self._crash_victim()))
        self._every(faults.blackout_gap_ms, self._cut_all_power)
        self._every(faults.rolling_gap_ms, lambda: self._restart_in_turn(self._cluster.hosts))
        self._every(faults.cut_gap_ms, self._cut_link)
        self._every(faults.isolation_gap_ms, self._isolate)
        self._every(faults.slow_gap_ms, self._slow_link)
        self._every(faults.machine_pause_gap_ms, lambda: self._pause(self._victim()))
        self._every(faults.clock_gap_ms, self._move_clock)
        self._every(faults.flip_gap_ms, self._flip)
        self._every(faults.lane_gap_ms, self._break_lane)

    def stop_faults(self) -> None:
        """Stop the faults; brokers that are down restart by themselves."""
        super().stop_faults()
        self._triggered.chance = 0.0
        self._cluster.link_faults.restore_all()
        for host in self._cluster.hosts:
            host.resume()
            host.disk.room = None
            host.skew_ms = self._latest_ms

    def _victim(self) -> Host:
        """Draw a machine: any, or an important one."""
        rng, cluster = self._world.rng, self._cluster
        if self._faults.flip_gap_ms:
            return self._weakest
        if rng.random() < self._faults.targeted:
            led = cluster.leader_of(rng.choice(self._scenario.stored))
            found = rng.choice((cluster.controller, led))
            if found is not None:
                return found
        return rng.choice(cluster.hosts)

    def _crash_victim(self) -> Host:
        """Draw a machine for a fault that may count as a crash.

        A broker that stops with a full disk cannot write the marker of a clean shutdown. If topics
        are not synced on every write, two replicas survive crashes of one machine, but not of two.
        """
        return self._victim() if self._faults.flush_on_ack else self._weakest

    def _cut_power(self) -> None:
        self._kill(self._crash_victim(), power_cut=True)

    def _stop_hard(self, host: Host) -> None:
        """Stop a broker in the hardest way that its topics must survive."""
        safe = self._faults.flush_on_ack
        if not self._are_on:
            return
        if safe or host is self._weakest:
            self._kill(host, power_cut=not safe or self._world.rng.random() < 0.5)
        else:
            self._pause(host)

    def _power_cut_of(self, host: Host) -> Callable[[], None]:
        return lambda: self._kill(host, power_cut=True)

    def _kill(self, host: Host, *, power_cut: bool) -> None:
        if host.node is not None and self._are_on:
            host.kill(power_cut=power_cut)
            away_ms = self._world.rng.randint(1, self._faults.down_ms_max)
            self._world.after(away_ms, lambda: self._start(host))

    def _stop(self, host: Host, then: Callable[[], None] = lambda: None) -> None:
        """Stop a broker with a controlled shutdown, and restart it."""

        def stopped() -> None:
            host.kill(power_cut=False)
            self._world.after(self._world.rng.randint(1, self._faults.down_ms_max), start)

        def start() -> None:
            self._start(host)
            then()

        if host.node is not None and not host.paused:
            host.stop(stopped)

    def _restart_in_turn(self, hosts: list[Host]) -> None:
        """Restart one broker after the other."""
        if hosts and self._are_on:
            self._stop(
                hosts[0], lambda: self._world.after(500, lambda: self._restart_in_turn(hosts[1:]))
            )

    def _cut_all_power(self) -> None:
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
        """Check that no leader refuses appends for long while another replica could accept them.

        If the disk was full before for a short time, the broker may not have tried to write since.
        """
        for partition in () if host.node is None else host.node.partitions.values():
            refusing_ms = min(partition.health.append_failures.refused_for_ms, full_ms)
            if refusing_ms <= REFUSED_MS_MAX or len(partition.isr) == 1:
                continue
            if (
                self._cluster.leader_of(partition.name) is host
            ):  # it may not know the new leader yet
                raise InvariantError(
                    f"{host.name} leads {partition.name} of {partition.isr} and has refused "
                    f"appends for {refusing_ms} ms"
                )

    def _cut_link(self) -> None:
        rng = self._world.rng
        one, other = rng.sample([host.name for host in self._cluster.hosts], 2)
        ways = [(one, other), (other, one)]
        self._cut_links(ways[: rng.choice((1, 2))], rng.randint(100, CUT_MS_MAX))

    def _isolate(self) -> None:
        """Cut one machine off from the other brokers, and maybe from clients."""
        victim, rng = self._victim().name, self._world.rng
        others = [host.name for host in self._cluster.hosts if host.name != victim]
        if rng.random() < 0.5:
            others += [actor.name for actor in self._scenario.actors]
        ways = [(victim, other) for other in others]
        if rng.random() < 0.7:
            ways += [(other, victim) for other in others]
        self._cut_links(ways, rng.randint(100, CUT_MS_MAX))

    def _cut_links(self, ways: list[tuple[str, str]], duration_ms: int) -> None:
        link_faults = self._cluster.link_faults
        for source, target in ways:
            link_faults.cut(source, target)

        def restore() -> None:
            for source, target in ways:
                link_faults.restore(source, target)

        self._world.after(duration_ms, restore)

    def _slow_link(self) -> None:
        rng, link_faults = self._world.rng, self._cluster.link_faults
        one, other = rng.sample([host.name for host in self._cluster.hosts], 2)
        link_faults.slow(one, other, rng.randint(*SLOW_MS))
        self._world.after(rng.randint(100, CUT_MS_MAX), lambda: link_faults.restore(one, other))

    def _pause(self, host: Host) -> None:
        if host.node is None or host.paused:
            return
        host.pause()
        life = host.life

        def resume() -> None:
            if host.life == life:
                host.resume()

        self._world.after(self._world.rng.randint(100, MACHINE_PAUSE_MS_MAX), resume)

    def _move_clock(self) -> None:
        rng = self._world.rng
        host = rng.choice(self._cluster.hosts)
        host.skew_ms = rng.randint(-JUMP_MS_MAX, JUMP_MS_MAX)
        self._latest_ms = max(self._latest_ms, host.skew_ms)
        self._world.note(host.name, f"has a clock that is {host.skew_ms} ms ahead")

    def _flip(self) -> None:
        self._flips += 1

    def _start(self, host: Host) -> None:
        """Start a broker; flip the scheduled bits on its disk before."""
        while host is self._weakest and self._flips:
            self._flips -= 1
            host.flip()
        host.start()

    def _break_lane(self) -> None:
        lanes = [link for host in self._cluster.hosts for link in host.links if link.peer]
        if lanes:
            self._world.rng.choice(lanes).cut()
