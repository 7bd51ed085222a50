"""Simulated links between machines: each direction can be cut or slow.

A cut loses no data, because TCP retransmits it. Data sent during a cut arrives after it, if the
connection still exists; a peer that waits too long closes the connection.
"""

from collections.abc import Callable

from barnabas.sim.world import World

Way = tuple[str, str]
"""A direction from one place to another: each is the name of a broker or a client."""


class LinkFaults:
    """The state of the links between all places."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cuts: dict[Way, list[Callable[[], None]]] = {}
        self._slow_ms: dict[Way, int] = {}

    def cut(self, source: str, target: str) -> None:
        """Stop all data from one place to another."""
        if (source, target) not in self._cuts:
            self._world.note("wires", f"{source} is cut off from {target}")
            self._cuts[source, target] = []

    def slow(self, source: str, target: str, delay_ms: int) -> None:
        """Delay all data from one place to another."""
        self._world.note("wires", f"{source} is {delay_ms} ms from {target}")
        self._slow_ms[source, target] = delay_ms

    def restore(self, source: str, target: str) -> None:
        """Restore a link; data that waited arrives first."""
        self._slow_ms.pop((source, target), None)
        waiting = self._cuts.pop((source, target), None)
        if waiting is not None:
            self._world.note("wires", f"{source} reaches {target} again")
            for action in waiting:  # at once, so that later data arrives after it
                action()

    def restore_all(self) -> None:
        """Restore all links."""
        for source, target in [*self._cuts, *self._slow_ms]:
            self.restore(source, target)

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether a link is cut."""
        return (source, target) in self._cuts

    def extra_ms(self, source: str, target: str) -> int:
        """Return the additional delay of a link."""
        return self._slow_ms.get((source, target), 0)

    def hold_if_cut(self, source: str, target: str, action: Callable[[], None]) -> bool:
        """Hold an action back while the link is cut; return whether it is held."""
        waiting = self._cuts.get((source, target))
        if waiting is None:
            return False
        waiting.append(action)
        return True
