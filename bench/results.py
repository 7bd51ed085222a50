"""The results of a run as plain data: samples, their summary, and the JSON file that holds them."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from bench.metrics import Metric


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One row on one broker in one round; failed if `error` is set."""

    row: str
    broker: str
    round: int
    figures: dict[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of several rounds combined."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Self:
        """Median and extremes of at least one value."""
        return cls(median=median(values), low=min(values), high=max(values))


@dataclass(kw_only=True)
class Results:
    """All data of the report."""

    facts: dict[str, str]
    """Machine, commit, date, versions: shown unchanged."""
    titles: dict[str, str]
    """Measured brokers, with the names to show."""
    samples: list[Sample] = field(default_factory=list)

    def summary(self, row: str, broker: str, metric: Metric) -> Summary | None:
        """The rounds that succeeded, or None."""
        values = [
            sample.figures[metric.key]
            for sample in self.samples
            if (sample.row, sample.broker) == (row, broker) and metric.key in sample.figures
        ]
        return Summary.of(values) if values else None

    def errors(self, row: str, broker: str) -> list[str]:
        """The reasons for failed rounds of a row, each once."""
        found = (s.error for s in self.samples if (s.row, s.broker) == (row, broker) and s.error)
        return list(dict.fromkeys(found))

    def has(self, row: str) -> bool:
        """Whether the row was run at all."""
        return any(sample.row == row for sample in self.samples)

    def save(self, path: Path) -> None:
        """Write all samples as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the result of `save`."""
        found: dict[str, Any] = json.loads(path.read_text())
        samples = [Sample(**sample) for sample in found["samples"]]
        return cls(facts=found["facts"], titles=found["titles"], samples=samples)
