"""Simulated TCP connections: each direction keeps its order, and either end may be lost.

A connection that breaks loses its answers. Of the requests that were under way, none, some or all
still arrive, and maybe long after the client has made another connection: that is where late and
repeated requests come from. A broker that dies takes all of its connections along; whoever cannot
be told, for the cable is cut, finds out by waiting in vain.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.sim.world import World

if TYPE_CHECKING:
    from barnabas.sim.host import Host


class Link:
    """One connection to a broker, of a client or of another broker."""

    def __init__(
        self,
        world: World,
        host: "Host",
        name: str,
        on_answer: Callable[[bytes], None],
        on_lost: Callable[[], None],
        *,
        may_be_late: bool = True,
        peer: bool = False,
    ) -> None:
        self.name = name
        self.peer = peer
        """Whether it leads to the listener for other brokers."""
        self._world = world
        self._host = host
        self._on_answer = on_answer
        self._on_lost = on_lost
        self._may_be_late = may_be_late
        self.is_spared: Callable[[bytes], bool] = lambda _: False
        """Which requests are lost with a connection that breaks, for they must not be late."""
        self._open = True
        self._dead = False
        self._up: deque[bytes] = deque()
        self._up_ms = self._down_ms = 0
        host.links[self] = None

    @property
    def is_open(self) -> bool:
        """Whether the client can use it, as far as the client knows."""
        return self._open

    def send(self, frame: bytes) -> None:
        """Send a request."""
        self._up.append(frame)
        self._up_ms = max(self._up_ms, self._world.now_ms + self._way_up_ms())
        self._world.after(self._up_ms - self._world.now_ms, self._arrive)

    def answer(self, content: bytes) -> None:
        """Send an answer on its way to the client."""
        self._world.seen(content)
        self._down_ms = max(self._down_ms, self._world.now_ms + self._way_down_ms())

        def deliver() -> None:
            if self._open and not self._host.wires.holds(self._host.name, self.name, deliver):
                self._on_answer(content)

        self._world.after(self._down_ms - self._world.now_ms, deliver)

    def cut(self) -> None:
        """Break, so that some of what is under way may still arrive."""
        if not self._open:
            return
        self._open = False
        world, rng = self._world, self._world.rng
        left, self._up = list(self._up), deque()
        arriving = [each for each in left[: rng.randint(0, len(left))] if not self.is_spared(each)]
        late_ms = rng.randint(0, self._host.faults.late_ms_max) if self._may_be_late else 0
        world.after(late_ms, lambda: self._arrive_late(arriving))
        world.after(self._way_down_ms(), self._on_lost)

    def reset(self) -> None:
        """Break at once, since the broker is gone; whoever is behind a cut cable hears it later."""
        self._dead = True
        if self._open and not self._host.wires.holds(self._host.name, self.name, self.reset):
            self._open = False
            self._up.clear()
            self._world.after(self._way_down_ms(), self._on_lost)

    def _arrive(self) -> None:
        if not self._up or self._host.wires.holds(self.name, self._host.name, self._arrive):
            return
        frame = self._up.popleft()
        if not self._dead:
            self._world.seen(frame)
            self._host.receive(self, frame)

    def _arrive_late(self, frames: list[bytes]) -> None:
        """Have requests of a broken connection arrive, at whoever listens there by now.

        A proxy may hold them for that long, so that not even a restart keeps them away.
        """
        host = self._host
        if host.wires.holds(self.name, host.name, lambda: self._arrive_late(frames)):
            return
        for frame in frames:
            self._world.note(self.name, "has a late request arrive")
            self._world.seen(frame)
            host.receive(self, frame)
        host.hang_up(self)

    def _way_up_ms(self) -> int:
        return self._delay_ms() + self._host.wires.extra_ms(self.name, self._host.name)

    def _way_down_ms(self) -> int:
        return self._delay_ms() + self._host.wires.extra_ms(self._host.name, self.name)

    def _delay_ms(self) -> int:
        return self._world.rng.randint(0, self._host.faults.delay_ms_max)
