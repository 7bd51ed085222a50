"""The end offsets of partitions over time, to tell when an offset was passed.

A history holds only the samples at which the end had changed, so that an idle partition costs
nothing. The lag in time of a group is the age of the first sample whose end passed its commit: it
is right within one interval, also when producers stop.
"""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping

from barnabas.admin.scopes import Place

POINTS_MAX = 360
POINTS_MIN = 60
POINTS_OF_ALL = 2_000_000
"""How many samples all partitions may hold together; beyond, each holds fewer."""
STARTS_MAX = 60


class EndHistory:
    """The end offsets of one partition."""

    __slots__ = ("ends", "times_ms")

    def __init__(self) -> None:
        self.times_ms = array("q")
        self.ends = array("q")

    def add(self, at_ms: int, end: int, points_max: int = POINTS_MAX) -> None:
        """Take a sample; an end that went back begins the history anew."""
        if self.ends and end == self.ends[-1]:
            return
        if self.ends and end < self.ends[-1]:
            del self.times_ms[:], self.ends[:]
        self.times_ms.append(at_ms)
        self.ends.append(end)
        surplus = len(self.ends) - points_max
        if surplus > 0:
            del self.times_ms[:surplus], self.ends[:surplus]

    def passed_ms(self, offset: int) -> int | None:
        """Return when the end was first seen beyond an offset; None if before all samples."""
        index = bisect_right(self.ends, offset)
        return self.times_ms[index] if 0 < index < len(self.ends) else None

    def end_at(self, at_ms: int) -> int | None:
        """Return the end at a time; None if before all samples."""
        index = bisect_right(self.times_ms, at_ms)
        return self.ends[index - 1] if index else None


class StartHistory:
    """The log start offset of one partition; retention moves it in steps, a segment at a time."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: deque[tuple[int, int]] = deque(maxlen=STARTS_MAX)

    def add(self, at_ms: int, start: int) -> None:
        """Take a sample."""
        if self._points and start < self._points[-1][1]:
            self._points.clear()
        if not self._points or start != self._points[-1][1]:
            self._points.append((at_ms, start))

    def per_s(self, now_ms: int) -> float | None:
        """Return how fast the start advances, over the whole history."""
        since_ms, first = self._points[0]
        elapsed_ms = now_ms - since_ms
        return None if elapsed_ms <= 0 else (self._points[-1][1] - first) * 1000 / elapsed_ms


class Sample:
    """The offsets and sizes of all partitions at one time."""

    __slots__ = ("at_ms", "ends", "sizes", "starts")

    def __init__(
        self,
        at_ms: int,
        starts: Mapping[Place, int],
        ends: Mapping[Place, int],
        sizes: Mapping[Place, int],
    ) -> None:
        self.at_ms = at_ms
        self.starts = starts
        self.ends = ends
        self.sizes = sizes


def points_max(partitions: int) -> int:
    """Return how many samples each partition may hold."""
    return max(POINTS_MIN, min(POINTS_MAX, POINTS_OF_ALL // max(1, partitions)))
