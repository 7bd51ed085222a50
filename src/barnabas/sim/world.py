"""The simulated world: one event queue, one clock, one random generator and the trace.

Everything random comes from `World.rng` and everything timed from `World.now_ms`, so that a seed
and a commit replay a run byte for byte. `digest` tells whether two runs were the same: it covers
every line of the trace and every frame that crossed the network.
"""

import heapq
from collections.abc import Callable
from hashlib import blake2b
from random import Random

from barnabas.model.ports import Buffer

EVENTS_MAX = 200_000


class InvariantError(AssertionError):
    """Something happened that must never happen."""


class World:
    """Owns time and chance."""

    def __init__(self, seed: int, *, keep_trace: bool = False) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now_ms = 0
        self.events = 0
        self.trace: list[str] = []
        self._keep_trace = keep_trace
        self._digest = blake2b(digest_size=16)
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._ticket = 0

    @property
    def digest(self) -> str:
        """A fingerprint of everything that has happened so far."""
        return self._digest.hexdigest()

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have something happen later; what was scheduled first happens first."""
        self._ticket += 1
        heapq.heappush(self._queue, (self.now_ms + max(0, delay_ms), self._ticket, action))

    def run_until(self, done: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Play events until a condition holds; fail where it does not by the limit."""
        while not done():
            if not self._queue or self._queue[0][0] > limit_ms:
                raise InvariantError(f"by {limit_ms} ms it is still not so that {what}")
            self._step()

    def note(self, who: str, what: str) -> None:
        """Write a line of the trace."""
        line = f"{self.now_ms:>7} {who:<12} {what}"
        self._digest.update(line.encode())
        if self._keep_trace:
            self.trace.append(line)

    def tell(self, who: str, what: Callable[[], str]) -> None:
        """Write a line that only a reader of the trace wants: it is made where there is one."""
        if self._keep_trace:
            self.trace.append(f"{self.now_ms:>7} {who:<12} {what()}")

    def seen(self, frame: Buffer) -> None:
        """Count a frame's bytes into the digest."""
        self._digest.update(frame)

    def _step(self) -> None:
        at_ms, _, action = heapq.heappop(self._queue)
        self.now_ms = at_ms
        self.events += 1
        if self.events > EVENTS_MAX:
            raise InvariantError(f"more than {EVENTS_MAX} events: somebody turns in circles")
        action()
