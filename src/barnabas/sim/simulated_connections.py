"""Connects one client to a simulated broker, and cuts or delays the bytes between them.

The seed draws the limits. Frames arrive whole or cut anywhere, several at once or one by one. The
client's socket has room for the whole response, for a part of it, or for nothing yet. Connections
stop reading after a few responses or after a thousand, and handle one request per event or many.
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


def draw_limits(rng: Random, turns: Random) -> Limits:
    """Draw when a broker's connections stop reading, and how much they do per event."""
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
        self._call_soon = soon
        self._is_rough = rng.random() < 0.5
        """Whether frames are cut and responses sent in parts. Half of the connections are fast."""
        self._wire = Wire(self._answered, self._room if self._is_rough else None)
        self._coming: deque[bytes] = deque()
        self._response_checks: deque[Callable[[bytes], None] | None] = deque()
        self.connection = server.accept(
            self._wire, link.name, peer=link.peer, principal=link.principal
        )

    def arrive(self, frame: bytes, check_response: Callable[[bytes], None] | None) -> None:
        """Schedule the arrival of a request, maybe in parts; `check_response` gets its response."""
        if self._link.peer:
            self._response_checks.append(check_response)
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
            self._call_soon(self._next)

    def _room(self) -> int:
        if self._rng.random() < SHORT_CHANCE:
            return self._rng.randrange(64)
        return 1 << 20

    def _answered(self, content: bytes) -> None:
        if self._link.peer:
            check_response = self._response_checks.popleft()
            if check_response is not None:
                check_response(content)
        self._link.answer(content)
