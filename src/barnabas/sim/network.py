"""Simulates TCP connections: each direction keeps its order, and either end may be lost.

A connection that breaks loses its responses. Of the requests in flight, none, some or all still
arrive, maybe long after the client has reconnected: that is where late and repeated requests come
from. When a broker dies, all of its connections break. A client behind a cut link does not learn of
it, and finds out by a timeout.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.model.callers import Principal
from barnabas.sim.world import World

if TYPE_CHECKING:
    from barnabas.sim.host import Host


class Link:
    """A connection to a broker, from a client or from another broker."""

    def __init__(
        self,
        world: World,
        host: "Host",
        name: str,
        on_answer: Callable[[bytes], None],
        on_lost: Callable[[], None],
        *,
        may_arrive_late: bool = True,
        peer: bool = False,
    ) -> None:
        self.name = name
        self.peer = peer
        """Whether it leads to the inter-broker listener."""
        self._world = world
        self._host = host
        self._on_answer = on_answer
        self._on_lost = on_lost
        self._may_be_late = may_arrive_late
        self.is_lost_on_break: Callable[[bytes], bool] = lambda _: False
        """Selects requests that are lost with a broken connection, because they must not arrive
        late.
        """
        self.on_answered: Callable[[bytes], None] = lambda _: None
        """Called with each response when the broker sends it, even if the client never gets it."""
        self.principal: Principal | None = None
        """The principal of the client; None for an anonymous client, or a broker."""
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
        """Send a response to the client."""
        self._world.seen(content)
        self.on_answered(content)
        self._down_ms = max(self._down_ms, self._world.now_ms + self._way_down_ms())

        def deliver() -> None:
            if self._open and not self._host.link_faults.hold_if_cut(
                self._host.name, self.name, deliver
            ):
                self._on_answer(content)

        self._world.after(self._down_ms - self._world.now_ms, deliver)

    def cut(self) -> None:
        """Break the connection; requests in flight may still arrive."""
        if not self._open:
            return
        self._open = False
        world, rng = self._world, self._world.rng
        left, self._up = list(self._up), deque()
        arriving = [
            each for each in left[: rng.randint(0, len(left))] if not self.is_lost_on_break(each)
        ]
        late_ms = rng.randint(0, self._host.faults.late_ms_max) if self._may_be_late else 0
        world.after(late_ms, lambda: self._arrive_late(arriving))
        world.after(self._way_down_ms(), self._on_lost)

    def reset(self) -> None:
        """Break at once, because the broker is gone; a client behind a cut link learns it later."""
        self._dead = True
        if self._open and not self._host.link_faults.hold_if_cut(
            self._host.name, self.name, self.reset
        ):
            self._open = False
            self._up.clear()
            self._world.after(self._way_down_ms(), self._on_lost)

    def _arrive(self) -> None:
        if not self._up or self._host.link_faults.hold_if_cut(
            self.name, self._host.name, self._arrive
        ):
            return
        frame = self._up.popleft()
        if not self._dead:
            self._world.seen(frame)
            self._host.receive(self, frame)

    def _arrive_late(self, frames: list[bytes]) -> None:
        """Let requests of a broken connection arrive at the broker process that runs then.

        A proxy may hold them for so long that they even arrive after a restart.
        """
        host = self._host
        if host.link_faults.hold_if_cut(self.name, host.name, lambda: self._arrive_late(frames)):
            return
        for frame in frames:
            self._world.note(self.name, "has a late request delivered")
            self._world.seen(frame)
            host.receive(self, frame)
        host.disconnect(self)

    def _way_up_ms(self) -> int:
        return self._delay_ms() + self._host.link_faults.extra_ms(self.name, self._host.name)

    def _way_down_ms(self) -> int:
        return self._delay_ms() + self._host.link_faults.extra_ms(self._host.name, self.name)

    def _delay_ms(self) -> int:
        return self._world.rng.randint(0, self._host.faults.delay_ms_max)
