"""The results of a benchmark: counts, rates and percentiles, as text and JSON.

Percentiles use every single measurement: the value at rank ceil(p * n), so the p99 of a hundred
measurements is the ninety-ninth.
"""

import math
from array import array
from dataclasses import dataclass, field

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(slots=True)
class Latencies:
    """Measurements in milliseconds, eight bytes each."""

    values_ms: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, seconds: float) -> None:
        """Add one measurement."""
        self.values_ms.append(seconds * 1000)

    def percentiles(self) -> dict[str, float]:
        """Return the usual percentiles; empty without measurements."""
        ordered = sorted(self.values_ms)
        return {
            name: round(at(ordered, share), 3) for name, share in PERCENTILES.items() if ordered
        }


def at(ordered: list[float], share: float) -> float:
    """Return the percentile of a sorted list."""
    rank = max(1, math.ceil(share * len(ordered)))
    return ordered[rank - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one benchmark."""

    name: str
    records: int
    bytes: int
    seconds: float
    failed: int = 0
    latency_ms: dict[str, float] = field(default_factory=dict)

    @property
    def records_per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_second(self) -> float:
        """Million bytes of keys and values per second."""
        return self.bytes / 1e6 / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "benchmark": self.name,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 6),
            "failed": self.failed,
            "records_per_second": round(self.records_per_second, 1),
            "megabytes_per_second": round(self.megabytes_per_second, 3),
            "latency_ms": self.latency_ms,
        }

    def lines(self) -> list[str]:
        """Return the result as text."""
        text = [
            f"{self.name}: {self.records:,} records in {self.seconds:.2f} s, "
            f"{self.records_per_second:,.0f} records/s, {self.megabytes_per_second:.1f} MB/s"
        ]
        if self.failed:
            text.append(f"  FAILED: {self.failed:,} records")
        if self.latency_ms:
            shown = "  ".join(f"{name} {value:.2f}" for name, value in self.latency_ms.items())
            text.append(f"  latency ms: {shown}")
        return text


class Pace:
    """Spreads work evenly over time, at a rate."""

    def __init__(self, per_second: float | None, started_s: float) -> None:
        self._per_second = per_second
        self._started_s = started_s

    def wait_s(self, done: int, now_s: float) -> float:
        """Return how long to wait before the next piece; delays are made up for later."""
        if self._per_second is None:
            return 0.0
        return max(0.0, self._started_s + done / self._per_second - now_s)
