"""Schedules faults from the seed, for the first part of a run."""

from collections.abc import Callable

from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.scenario import Scenario
from barnabas.sim.world import World

PAUSES_MS = ((100, 3_000), (6_500, 10_000))
"""Some pauses are shorter than session and transaction timeouts, some are longer."""
AWAY_MS_MAX = 8_000
DOWN_MS_MAX = 1_500
FULL_MS_MAX = 2_500


class FaultSchedule:
    """Schedules the faults of clients; subclasses add the faults of brokers."""

    def __init__(self, world: World, scenario: Scenario, faults: Faults) -> None:
        self._world = world
        self._scenario = scenario
        self._machine = faults
        self._are_on = False

    def start_faults(self) -> None:
        """Start the faults."""
        self._are_on = True
        faults = self._machine
        for host in self._scenario.cluster.hosts:
            host.faults = faults
        scenario, rng = self._scenario, self._world.rng
        self._every(faults.break_gap_ms, self._break_connection)
        self._every(
            faults.pause_gap_ms,
            lambda: rng.choice(scenario.actors).pause(rng.randint(*rng.choice(PAUSES_MS))),
        )
        self._every(
            faults.client_crash_gap_ms,
            lambda: rng.choice(scenario.actors).crash(rng.randint(1, AWAY_MS_MAX)),
        )
        self._every(faults.zombie_gap_ms, scenario.raise_zombie)

    def stop_faults(self) -> None:
        """Stop the faults; clients that are down restart by themselves."""
        self._world.note("world", "has no more faults")
        self._are_on = False
        for host in self._scenario.cluster.hosts:
            host.faults = Faults()
        for zombie in self._scenario.zombies:
            zombie.closing = True

    def _every(self, gap_ms: int, fault: Callable[[], None]) -> None:
        """Schedule a fault repeatedly."""
        if not gap_ms:
            return

        def happen() -> None:
            if self._are_on:
                fault()
                self._every(gap_ms, fault)

        self._world.after(self._world.rng.randint(1, 2 * gap_ms), happen)

    def _break_connection(self) -> None:
        """Break a connection, usually one with pending requests, which can be lost."""
        actors, rng = self._scenario.actors, self._world.rng
        asking = [actor for actor in actors if actor.is_waiting]
        rng.choice(asking if asking and rng.random() < 0.8 else actors).lose_connection()


class LoneFaultSchedule(FaultSchedule):
    """Schedules the faults of a single broker and its clients."""

    def __init__(self, world: World, scenario: Scenario, faults: Faults) -> None:
        super().__init__(world, scenario, faults)
        (self._host,) = scenario.cluster.hosts

    def start_faults(self) -> None:
        """Start the faults."""
        super().start_faults()
        faults = self._machine
        self._host.on_power_cut_in_sync = self._cut_power
        self._every(faults.power_cut_gap_ms, self._cut_power)
        self._every(faults.kill_gap_ms, lambda: self._stop_broker(power_cut=False))
        self._every(faults.stop_gap_ms, self._stop_cleanly)
        self._every(faults.full_disk_gap_ms, self._fill_disk)

    def stop_faults(self) -> None:
        """Stop the faults; the broker restarts by itself."""
        super().stop_faults()
        self._empty_disk()

    def _cut_power(self) -> None:
        self._stop_broker(power_cut=True)

    def _stop_broker(self, *, power_cut: bool) -> None:
        host = self._host
        if host.node is not None and self._are_on:
            host.kill(power_cut=power_cut)
            self._world.after(self._world.rng.randint(1, DOWN_MS_MAX), host.start)

    def _stop_cleanly(self) -> None:
        if self._host.node is not None:
            self._host.stop(lambda: self._stop_broker(power_cut=False))

    def _fill_disk(self) -> None:
        self._world.note("broker", "has a full disk")
        self._host.disk.room = 0
        self._world.after(self._world.rng.randint(100, FULL_MS_MAX), self._empty_disk)

    def _empty_disk(self) -> None:
        if self._host.disk.room is not None:
            self._world.note("broker", "has room on its disk again")
            self._host.disk.room = None
