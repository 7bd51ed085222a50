"""One connection of a simulated broker, and the way that bytes take to it and back.

Seeds draw how unkind the edge is. Frames arrive whole or cut anywhere, several at once or one by
one; the client's socket has room for all of an answer, for a part, or for nothing yet; connections
stop reading after a few answers or after a thousand, and handle one request in an event or many.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from struct import Struct

from barnabas.sim.edge import Later, Limits, SimServer, Wire
from barnabas.sim.network import Link

_LENGTH = Struct(">i")
CUT_CHANCE = 0.2
SHORT_CHANCE = 0.1


def drawn_limits(rng: Random, turns: Random) -> Limits:
    """Draw where a broker's connections stop reading, and how long their turns are."""
    return Limits(
        receive_bytes=rng.choice((200, 4_096, 65_536)),
        queued_bytes=rng.choice((100, 1_048_576)),
        queued_answers=rng.choice((2, 1_000)),
        frames_per_event=turns.choice((1, 3, 256)),
    )


class Caller:
    """A connected client, or another broker, as the broker's server sees it."""

    def __init__(self, link: Link, server: SimServer, rng: Random, soon: Later) -> None:
        self._link = link
        self._server = server
        self._rng = rng
        self._soon = soon
        self._is_rough = rng.random() < 0.5
        """Whether frames are cut and answers sent in parts: half of the connections are fast."""
        self._wire = Wire(self._answered, self._room if self._is_rough else None)
        self._coming: deque[bytes] = deque()
        self._judges: deque[Callable[[bytes], None] | None] = deque()
        self.connection = server.accept(self._wire, link.name, peer=link.peer)

    def arrive(self, frame: bytes, judge: Callable[[bytes], None] | None) -> None:
        """Have a request arrive, maybe in parts; a judge is called with its answer."""
        if self._link.peer:
            self._judges.append(judge)
        content = _LENGTH.pack(len(frame)) + frame
        waits = bool(self._coming)
        if self._is_rough and self._rng.random() < CUT_CHANCE:
            cut = self._rng.randrange(1, len(content))
            self._coming += (content[:cut], content[cut:])
        else:
            self._coming.append(content)
        if not waits:
            self._next()

    def _next(self) -> None:
        self._wire.arrive(self._coming.popleft())
        self._server.readable(self.connection)
        if self._coming:
            self._soon(self._next)

    def _room(self) -> int:
        if self._rng.random() < SHORT_CHANCE:
            return self._rng.randrange(64)
        return 1 << 20

    def _answered(self, content: bytes) -> None:
        if self._link.peer:
            judge = self._judges.popleft()
            if judge is not None:
                judge(content)
        self._link.answer(content)
