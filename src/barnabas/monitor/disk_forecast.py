"""How full the disks of brokers are, and when they will be full."""

from collections import deque
from collections.abc import Mapping, Sequence

from barnabas.monitor.lag_rules import NEVER
from barnabas.monitor.states import DiskState
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult

SPAN_MS = 3_600_000
"""The speed is that of the last hour."""
APART_MS = 60_000
"""How far apart the remembered values are."""


class DiskForecast:
    """The free bytes of each broker's fullest disk over the last hour."""

    def __init__(self) -> None:
        self._points: dict[int, deque[tuple[int, int]]] = {}

    def states(
        self, at_ms: int, disks: Mapping[int, Sequence[DescribeLogDirsResult] | str]
    ) -> dict[int, DiskState]:
        """Return the state of the disks of all brokers that answered."""
        found = {}
        for broker, answer in disks.items():
            sizes = [] if isinstance(answer, str) else [each for each in answer if _is_known(each)]
            if sizes:
                fullest = min(sizes, key=lambda each: each.usable_bytes / each.total_bytes)
                found[broker] = DiskState(
                    total_bytes=fullest.total_bytes,
                    free_bytes=fullest.usable_bytes,
                    full_in_s=self._full_in_s(broker, at_ms, fullest.usable_bytes),
                )
        return found

    def _full_in_s(self, broker: int, at_ms: int, free: int) -> float | None:
        points = self._points.setdefault(broker, deque(maxlen=SPAN_MS // APART_MS + 1))
        while points and points[0][0] < at_ms - SPAN_MS:
            points.popleft()
        since_ms, before = points[0] if points else (at_ms, free)
        if not points or at_ms - points[-1][0] >= APART_MS:
            points.append((at_ms, free))
        if at_ms - since_ms < APART_MS:
            return None
        shrink = (before - free) / (at_ms - since_ms)
        return free / shrink / 1000 if shrink > 0 else NEVER


def _is_known(each: DescribeLogDirsResult) -> bool:
    return each.total_bytes > 0 and each.usable_bytes >= 0
