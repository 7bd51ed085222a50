"""Limits how often lines of the same event are logged.

A client, a disk or another broker can cause the same line thousands of times a second. Of each
event a certain number is written in ten seconds. The next line that is written says how many were
left out; where none comes, a line of its own says so.
"""

import time
from collections.abc import Callable

WINDOW_S = 10.0
EVENTS_MAX = 1_000
"""How many events are known at a time; their words are written in the code, so there are few."""


class _Window:
    """The lines of one event since the beginning of a window."""

    __slots__ = ("began_s", "left_out", "lines")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.left_out = 0


class LogLimits:
    """The lines of all events."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.lines_max = 0
        """How many lines of an event are written in ten seconds; 0 means all of them."""
        self._clock_s = clock_s
        self._windows: dict[str, _Window] = {}

    def admit(self, event: str) -> int | None:
        """Return how many lines of an event were left out before this one; None to leave it out."""
        if not self.lines_max:
            return 0
        now_s = self._clock_s()
        window = self._windows.get(event)
        if window is None:
            if len(self._windows) >= EVENTS_MAX:
                self._windows.clear()
            window = self._windows[event] = _Window(now_s)
        if now_s - window.began_s >= WINDOW_S:
            window.began_s, window.lines = now_s, 0
        if window.lines >= self.lines_max:
            window.left_out += 1
            return None
        window.lines += 1
        left_out, window.left_out = window.left_out, 0
        return left_out

    def take_over(self) -> dict[str, int]:
        """Return how many lines of which events were left out, in windows that are over.

        They count as told.
        """
        now_s, found = self._clock_s(), {}
        for event, window in list(self._windows.items()):
            if now_s - window.began_s >= WINDOW_S:
                del self._windows[event]
                if window.left_out:
                    found[event] = window.left_out
        return found
