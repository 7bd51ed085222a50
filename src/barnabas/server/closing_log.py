"""Logs why connections were closed, at a bounded rate.

A client that reaches a port can cause thousands of refused connections in a second, and each would
write a line. So only some lines are written in a second, and the next line says how many were not.
"""

from collections.abc import Callable

from barnabas.logs import get

LINES_A_SECOND = 100
MS_A_SECOND = 1_000

log = get("barnabas.server")


class ClosingLog:
    """The lines about connections that the broker closes because of what their clients sent."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._since_ms = clock_ms()
        self._lines = 0
        """How many were written since then, which is at most a second ago."""
        self._unlogged = 0

    def write(self, event: str, client: str, **facts: object) -> None:
        """Write a line, unless there were many in this second."""
        now_ms = self._clock_ms()
        if now_ms - self._since_ms >= MS_A_SECOND:
            self._since_ms, self._lines = now_ms, 0
        if self._lines >= LINES_A_SECOND:
            self._unlogged += 1
            return
        self._lines += 1
        if self._unlogged:
            facts["unlogged"], self._unlogged = self._unlogged, 0
        log.warning(event, client=client, **facts)
