"""A histogram of durations that costs a request two list operations.

A bucket is as wide as half of a power of two: the number of bits of the squared value is its index.
Every second bound is a power of two, and those are the buckets that Prometheus gets. Quantiles are
of the last one to two minutes, as Kafka's are of the last few.
"""

from collections.abc import Sequence

BUCKETS = 110
"""Enough for values up to 2 to the power of 54."""
US_PER_S = 1_000_000
NS_PER_US = 1_000
SHOWN_FROM, SHOWN_UNTIL = 6, 25
"""Prometheus gets buckets from 64 us to 33 s."""


class Histogram:
    """Counts of values by size, and their sum."""

    __slots__ = ("_minute_ago", "_two_minutes_ago", "counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.total = 0
        self._minute_ago = [0] * BUCKETS
        self._two_minutes_ago = self._minute_ago

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    def observe(self, value: int) -> None:
        """Count a value, which is 0 or more."""
        self.counts[(value * value).bit_length()] += 1
        self.total += value

    def pass_minute(self) -> None:
        """Move the window of the quantiles."""
        self._two_minutes_ago, self._minute_ago = self._minute_ago, self.counts[:]

    def quantiles(self, wanted: Sequence[float]) -> list[float] | None:
        """Return quantiles of the last one to two minutes; None where there were no values."""
        then = self._two_minutes_ago
        recent = [now - before for now, before in zip(self.counts, then, strict=True)]
        total = sum(recent)
        return [_at(recent, each * total) for each in wanted] if total else None


def _at(counts: Sequence[int], rank: float) -> float:
    """Return the value with a rank, on the assumption that a bucket's values lie evenly in it."""
    before = 0
    for index, count in enumerate(counts):
        if before + count >= rank and count:
            low = 0.0 if index == 0 else 2.0 ** ((index - 1) / 2)
            high = 0.0 if index == 0 else 2.0 ** (index / 2)
            return low + (high - low) * max(0.0, rank - before) / count
        before += count
    return 0.0
