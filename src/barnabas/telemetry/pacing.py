"""When to send what: the recorded gaps between samples, divided by the speed.

The clock is handed in, so that an hour of replay is a moment in a test.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from barnabas.telemetry.messages import Snapshot
from barnabas.telemetry.readings import Reading, Refusal

MAX_SPEED = 0.0
"""Stands for "as fast as possible"."""
NAP_S = 0.25
"""The longest sleep at a stretch: whoever waits wants to draw progress meanwhile."""


class Clock(Protocol):
    """The time that pacing goes by."""

    def now_s(self) -> float:
        """Return seconds that only grow."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so long."""
        ...


class RealClock:
    """The computer's own."""

    def now_s(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Pacer:
    """Holds each sample back until its time has come."""

    def __init__(
        self, speed: float, clock: Clock, while_waiting: Callable[[], None] = lambda: None
    ) -> None:
        """Take a speed: 1 is real time, 10 ten times as fast, `MAX_SPEED` without waiting."""
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


def repeated(
    source: Callable[[], Iterable[Reading]], times: int, *, start_ms: int | None = None
) -> Iterator[Reading]:
    """Run through a recording several times, each one following on the one before.

    Times are moved so that the first sample lies at `start_ms`, where one is given, and so that
    no round repeats an instant of another.
    """
    shift_ms: int | None = None if start_ms is not None else 0
    for _ in range(times):
        first_ms = last_ms = before_last_ms = None
        for reading in source():
            if isinstance(reading, Refusal):
                yield reading
                continue
            if first_ms is None:
                first_ms = reading.timestamp_ms
                if shift_ms is None:
                    assert start_ms is not None
                    shift_ms = start_ms - first_ms
            if last_ms is None or reading.timestamp_ms > last_ms:
                before_last_ms, last_ms = last_ms, reading.timestamp_ms
            yield moved(reading, shift_ms or 0)
        if first_ms is None or last_ms is None:
            return
        gap_ms = last_ms - before_last_ms if before_last_ms is not None else 1000
        shift_ms = (shift_ms or 0) + last_ms - first_ms + max(gap_ms, 1)


def moved(snapshot: Snapshot, by_ms: int) -> Snapshot:
    """Return the same values at another time."""
    if not by_ms:
        return snapshot
    return replace(snapshot, timestamp_ms=snapshot.timestamp_ms + by_ms)
