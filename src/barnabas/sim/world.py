"""Runs the simulated world: one event queue, one clock, one random generator and the trace.

Everything random comes from `World.rng` and everything timed from `World.now_ms`, so that a seed
and a commit replay a run byte for byte. `digest` shows whether two runs were the same: it covers
every line of the trace and every frame that crossed the network.
"""

import heapq
from collections.abc import Callable
from hashlib import blake2b
from random import Random

from barnabas.model.ports import Buffer

EVENTS_MAX = 200_000


class InvariantError(AssertionError):
    """An invariant of the simulation is violated."""


class World:
    """The event queue, the clock, the random generator and the trace."""

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
        """A digest of everything that has happened so far."""
        return self._digest.hexdigest()

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action; actions for the same time run in the order of their scheduling."""
        self._ticket += 1
        heapq.heappush(self._queue, (self.now_ms + max(0, delay_ms), self._ticket, action))

    def run_until(self, done: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Run events until a condition holds; raise if it does not hold by the limit."""
        while not done():
            if not self._queue or self._queue[0][0] > limit_ms:
                raise InvariantError(f"after {limit_ms} ms this is still not true: {what}")
            self._step()

    def note(self, who: str, what: str) -> None:
        """Write a line of the trace."""
        line = f"{self.now_ms:>7} {who:<12} {what}"
        self._digest.update(line.encode())
        if self._keep_trace:
            self.trace.append(line)

    def note_lazily(self, who: str, what: Callable[[], str]) -> None:
        """Write a line that only the trace needs; it is formatted only if the trace is kept."""
        if self._keep_trace:
            self.trace.append(f"{self.now_ms:>7} {who:<12} {what()}")

    def seen(self, frame: Buffer) -> None:
        """Add a frame to the digest."""
        self._digest.update(frame)

    def _step(self) -> None:
        at_ms, _, action = heapq.heappop(self._queue)
        self.now_ms = at_ms
        self.events += 1
        if self.events > EVENTS_MAX:
            raise InvariantError(f"more than {EVENTS_MAX} events: the simulation does not end")
        action()
