"""Faults that wait for their moment: they strike where somebody has to be careful.

What goes wrong by chance rarely goes wrong between a decision and the news of it. Here that is when
a leader has asked for another ISR, and when the controller has just decided who leads or who is
in sync: whoever is concerned is cut off, stands still, or dies.
"""

from collections.abc import Callable

from barnabas.effects import Ask
from barnabas.metadata.image import PartitionImage
from barnabas.sim.cluster import Cluster
from barnabas.sim.host import Host
from barnabas.sim.world import World

ALTER_PARTITION = 56
CUT_MS = (300, 3_000)
LEFT_MS = (0, 2_500)
"""How long a leader has left that was struck."""

Kill = Callable[[Host], None]
Spoil = Callable[[list[tuple[str, str]], int], None]


class Ambush:
    """Strikes at some of the moments that matter."""

    def __init__(self, world: World, cluster: Cluster, kill: Kill, spoil: Spoil) -> None:
        self._world = world
        self._rng = world.rng
        self._cluster = cluster
        self._kill = kill
        self._spoil = spoil
        self.chance = 0.0

    def asked(self, host: Host, ask: Ask) -> None:
        """See a broker ask another for something."""
        if self.chance and ask.api_key == ALTER_PARTITION and self._rng.random() < self.chance:
            self._world.note("ambush", f"{host.name} asks for another ISR")
            self._keep_in_the_dark(host)

    def changed(self, before: PartitionImage | None, after: PartitionImage) -> None:
        """See the controller decide on a partition."""
        if not self.chance or before is None or self._rng.random() >= self.chance:
            return
        leader = self._cluster.by_id.get(after.leader)
        if leader is None:
            return
        self._world.note("ambush", f"{leader.name} leads {after.isr} in {after.leader_epoch}")
        self._rng.choice((self._end, self._end_soon, self._keep_in_the_dark, self._part))(leader)

    def _end(self, host: Host) -> None:
        self._world.after(0, lambda: self._kill(host))

    def _end_soon(self, host: Host) -> None:
        self._world.after(self._rng.randint(*LEFT_MS), lambda: self._kill(host))

    def _keep_in_the_dark(self, leader: Host) -> None:
        """Have a leader hear nothing from the controller, and part it from a follower, maybe."""
        controller = self._cluster.controller
        if controller is not None and controller is not leader:
            self._spoil([(controller.name, leader.name)], self._rng.randint(*CUT_MS))
        if self._rng.random() < 0.7:
            self._part(leader)
        if self._rng.random() < 0.7:
            self._end_soon(leader)

    def _part(self, leader: Host) -> None:
        """Cut a leader off from one of the others."""
        others = [host for host in self._cluster.hosts if host is not leader]
        other = self._rng.choice(others).name
        ways = [(leader.name, other), (other, leader.name)]
        self._spoil(ways[self._rng.choice((0, 1)) :], self._rng.randint(*CUT_MS))
