"""Paces a replay: the recorded gaps between samples, divided by the speed.

The clock is a parameter, so that an hour of replay takes no time in a test.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from barnabas.telemetry.samples.readings import Reading, Refusal
from barnabas.telemetry.samples.sample_messages import Snapshot

LONE_SAMPLE_GAP_MS = 1_000
MAX_SPEED = 0.0
"""The speed that means "as fast as possible"."""
NAP_S = 0.25
"""The longest single sleep, so that the caller can show its progress meanwhile."""


class Clock(Protocol):
    """The clock for pacing."""

    def now_s(self) -> float:
        """Return monotonic seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        ...


class RealClock:
    """The computer's clock."""

    def now_s(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Pacer:
    """Delays each sample until it is due."""

    def __init__(
        self, speed: float, clock: Clock, while_waiting: Callable[[], None] = lambda: None
    ) -> None:
        """Take a speed: 1 is real time, 10 is ten times as fast, `MAX_SPEED` never waits."""
        self._speed = speed
        self._clock = clock
        self._while_waiting = while_waiting
        self._origin: tuple[float, int] | None = None

    def wait_for(self, timestamp_ms: int) -> None:
        """Return when a sample of this time is due; one from the past is due at once."""
        if self._speed == MAX_SPEED:
            return
        if self._origin is None:
            self._origin = (self._clock.now_s(), timestamp_ms)
        began_s, first_ms = self._origin
        due_s = began_s + (timestamp_ms - first_ms) / 1000 / self._speed
        while (left_s := due_s - self._clock.now_s()) > 0:
            self._while_waiting()
            self._clock.sleep(min(left_s, NAP_S))


@dataclass(frozen=True)
class Span:
    """The time that a recording covers, with the gap after its last sample."""

    first_ms: int
    last_ms: int
    gap_ms: int

    @property
    def period_ms(self) -> int:
        """The distance of a second round from the first."""
        return self.last_ms - self.first_ms + self.gap_ms


def measure(readings: Iterable[Reading]) -> Span | None:
    """Return the span of a recording; None if it has no readable sample."""
    times = sorted({each.timestamp_ms for each in readings if not isinstance(each, Refusal)})
    if not times:
        return None
    gap_ms = times[-1] - times[-2] if len(times) > 1 else LONE_SAMPLE_GAP_MS
    return Span(times[0], times[-1], gap_ms)


def repeated(
    source: Callable[[], Iterable[Reading]],
    times: int = 1,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
) -> Iterator[Reading]:
    """Replay a recording several times, each round after the previous one.

    With `start_ms` or `end_ms`, times are moved so that the first sample is at `start_ms`, or the
    last one at `end_ms`; no two rounds have the same times. Unreadable lines are yielded in the
    first round only.
    """
    if times == 1 and start_ms is None and end_ms is None:
        yield from source()
        return
    span = measure(source())
    if span is None:
        yield from source()
        return
    shift_ms = 0
    if start_ms is not None:
        shift_ms = start_ms - span.first_ms
    elif end_ms is not None:
        shift_ms = end_ms - span.last_ms - (times - 1) * span.period_ms
    for turn in range(times):
        for reading in source():
            if not isinstance(reading, Refusal):
                yield moved(reading, shift_ms + turn * span.period_ms)
            elif turn == 0:
                yield reading


def moved(snapshot: Snapshot, by_ms: int) -> Snapshot:
    """Return the same values at another time."""
    if not by_ms:
        return snapshot
    return replace(snapshot, timestamp_ms=snapshot.timestamp_ms + by_ms)
