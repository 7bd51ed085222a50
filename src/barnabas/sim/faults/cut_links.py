"""Simulated links between machines: each direction can be cut or slow.

A cut loses no data, because TCP retransmits it. Data sent during a cut arrives after it, if the
connection still exists; a peer that waits too long closes the connection.
"""

from collections.abc import Callable

from barnabas.sim.world import World

Way = tuple[str, str]
"""From one place to another: a broker's name, or a client's."""


class Wires:
    """How every place can be reached from every other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cuts: dict[Way, list[Callable[[], None]]] = {}
        self._slow_ms: dict[Way, int] = {}

    def cut(self, source: str, target: str) -> None:
        """Let nothing through from one place to another."""
        if (source, target) not in self._cuts:
            self._world.note("wires", f"{source} does not reach {target}")
            self._cuts[source, target] = []

    def slow(self, source: str, target: str, delay_ms: int) -> None:
        """Have everything take that much longer."""
        self._world.note("wires", f"{source} is {delay_ms} ms from {target}")
        self._slow_ms[source, target] = delay_ms

    def mend(self, source: str, target: str) -> None:
        """Let everything through again, first what has waited."""
        self._slow_ms.pop((source, target), None)
        waiting = self._cuts.pop((source, target), None)
        if waiting is not None:
            self._world.note("wires", f"{source} reaches {target} again")
            for action in waiting:  # at once: what is sent from now on comes after it
                action()

    def mend_all(self) -> None:
        """Have every cable as it should be."""
        for source, target in [*self._cuts, *self._slow_ms]:
            self.mend(source, target)

    def is_cut(self, source: str, target: str) -> bool:
        """Tell whether nothing gets through."""
        return (source, target) in self._cuts

    def extra_ms(self, source: str, target: str) -> int:
        """Return how much longer the way takes than it should."""
        return self._slow_ms.get((source, target), 0)

    def holds(self, source: str, target: str, action: Callable[[], None]) -> bool:
        """Keep what cannot get through now until it can; tell whether that was so."""
        waiting = self._cuts.get((source, target))
        if waiting is None:
            return False
        waiting.append(action)
        return True
