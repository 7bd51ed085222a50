"""Logs what holds up the event loop: a line for each event that takes longer than a limit.

An event is one callback of the loop. Its steps are timed, too: each request, each timer, sending to
a client, carrying out effects, a garbage collection. The line names the event and its longest step,
and says how much of the time was spent on the processor: the rest was spent waiting, for a system
call or for another thread that held the interpreter lock.

It is off unless `performance.slow_event_time` is set. Then the server gets a loop that times its
callbacks, connections that time their requests, and timers that time their actions. If it is off,
nothing in this module is called.
"""

import asyncio
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from barnabas.effects import Effect
from barnabas.logs import get

KEPT_MAX = 100
NS_PER_MS = 1_000_000

P = ParamSpec("P")
R = TypeVar("R")
Facts = dict[str, object]

log = get("barnabas.server")


class SlowEvent(NamedTuple):
    """An event and its longest step."""

    what: str
    duration_ms: float
    cpu_ms: float
    step: str
    """The name of the step; empty if no step was timed."""
    step_ms: float
    facts: Mapping[str, object]
    """About the step: for a request its API, its client and its size."""


class SlowEvents:
    """The events that took longer than a limit: their number, and the last ones."""

    def __init__(
        self,
        limit_ms: float,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._limit_ms = limit_ms
        self._clock_ns = clock_ns
        self._cpu_ns = cpu_ns
        self.count = 0
        """How many events took longer than the limit."""
        self.longest = SlowEvent("", 0.0, 0.0, "", 0.0, {})
        """The longest event, even if it is below the limit."""
        self.last: deque[SlowEvent] = deque(maxlen=KEPT_MAX)
        self._thread = 0
        """The thread that runs an event now; 0 if none does."""
        self._step_ns = 0
        self._step, self._facts = "", Facts()
        self._collection_ns = 0

    def start(self) -> None:
        """Start timing garbage collections."""
        gc.callbacks.append(self._on_collection)

    def close(self) -> None:
        """Stop timing garbage collections."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def run(self, callback: Callable[..., object], *arguments: object) -> None:
        """Run one callback of the loop."""
        self._step, self._step_ns, self._facts = "", 0, {}
        self._thread = threading.get_ident()
        started_ns, cpu_ns = self._clock_ns(), self._cpu_ns()
        try:
            callback(*arguments)
        finally:
            self._thread = 0
            took_ms = (self._clock_ns() - started_ns) / NS_PER_MS
            if took_ms >= self._limit_ms or took_ms > self.longest.duration_ms:
                cpu_ms = (self._cpu_ns() - cpu_ns) / NS_PER_MS
                step_ms = self._step_ns / NS_PER_MS
                # For an event of the node, the callback is `Server.run_event` with its argument.
                name = name_of(arguments[0] if arguments and callable(arguments[0]) else callback)
                self._note(SlowEvent(name, took_ms, cpu_ms, self._step, step_ms, self._facts))

    def step(
        self,
        describe: Callable[[], tuple[str, Facts]],
        action: Callable[P, R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        """Run a part of an event; describe it if it was the longest so far."""
        started_ns = self._clock_ns()
        try:
            return action(*arguments, **named)
        finally:
            took_ns = self._clock_ns() - started_ns
            if took_ns > self._step_ns:
                self._step_ns = took_ns
                self._step, self._facts = describe()

    def run_timer(self, action: Callable[[], None]) -> None:
        """Run the action of a timer."""
        self.step(lambda: (name_of(action), {}), action)

    def carrying_out(
        self, carry_out: Callable[[Sequence[Effect]], None]
    ) -> Callable[[Sequence[Effect]], None]:
        """Return a function that carries out effects as a step."""

        def timed(effects: Sequence[Effect]) -> None:
            self.step(lambda: _describe(effects), carry_out, effects)

        return timed

    def _note(self, event: SlowEvent) -> None:
        if event.duration_ms > self.longest.duration_ms:
            self.longest = event
        if event.duration_ms < self._limit_ms:
            return
        self.count += 1
        self.last.append(event)
        step = {"step": event.step, "step_ms": round(event.step_ms, 1)} if event.step else {}
        log.warning(
            "an event held up the loop",
            what=event.what,
            duration_ms=round(event.duration_ms, 1),
            cpu_ms=round(event.cpu_ms, 1),
            **step,
            **event.facts,
        )

    def _on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        """Time a garbage collection, which stops the event loop on any thread."""
        now_ns = self._clock_ns()
        if phase == "start":
            self._collection_ns = now_ns
            return
        took_ns = now_ns - self._collection_ns
        facts: Facts = {"generation": info["generation"], "collected": info["collected"]}
        if self._thread != threading.get_ident():
            took_ms = took_ns / NS_PER_MS
            if took_ms >= self._limit_ms:
                self._note(SlowEvent("garbage collection", took_ms, took_ms, "", 0.0, facts))
        elif took_ns > self._step_ns:
            self._step_ns = took_ns
            self._step, self._facts = "garbage collection", facts


class WatchedLoop:
    """An event loop whose callbacks are timed; everything else is the loop's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, events: SlowEvents) -> None:
        self._loop = loop
        self._run = events.run

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the loop has
        return getattr(self._loop, name)

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> asyncio.Handle:
        """Call back in the next turn."""
        return self._loop.call_soon(self._run, callback, *arguments)

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *arguments: object
    ) -> asyncio.Handle:
        """Call back in the next turn, from another thread."""
        return self._loop.call_soon_threadsafe(self._run, callback, *arguments)

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *arguments: object
    ) -> asyncio.TimerHandle:
        """Call back after a delay."""
        return self._loop.call_later(delay_s, self._run, callback, *arguments)

    def add_reader(
        self, descriptor: int, callback: Callable[..., object], *arguments: object
    ) -> None:
        """Call back whenever a descriptor is readable."""
        self._loop.add_reader(descriptor, self._run, callback, *arguments)

    def add_writer(
        self, descriptor: int, callback: Callable[..., object], *arguments: object
    ) -> None:
        """Call back whenever a descriptor is writable."""
        self._loop.add_writer(descriptor, self._run, callback, *arguments)


def name_of(callback: Callable[..., object]) -> str:
    """Return the name of a callback, with the functions that it wraps."""
    if isinstance(callback, partial):
        callback = callback.func
    name = str(getattr(callback, "__qualname__", type(callback).__name__))
    enclosed = []
    for cell in getattr(callback, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:  # it was never filled
            continue
        if callable(content) and content is not callback and hasattr(content, "__qualname__"):
            enclosed.append(content.__qualname__)
    return f"{name} ({', '.join(enclosed)})" if enclosed else name


def _describe(effects: Sequence[Effect]) -> tuple[str, Facts]:
    kinds = sorted({type(effect).__name__ for effect in effects})
    return "effects", {"effects": ", ".join(kinds), "count": len(effects)}
