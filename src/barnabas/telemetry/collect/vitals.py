"""The collector's own metrics in Prometheus text, and its health.

The collector writes and the thread of the web server reads, so there is a lock.

Health is for the supervisor that restarts processes. A collector whose rounds have stopped is
`stalled`. One whose exporters or brokers are unreachable is `degraded`: a restart would not help.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

STALLED_AFTER_INTERVALS = 3
STALLED_AFTER_S_MIN = 60.0
PREFIX = "barnabas_collector"


class Metric(NamedTuple):
    """One metric of the page."""

    name: str
    kind: str
    text: str
    samples: list[tuple[str, float]]
    """A target, or "" for the whole collector, and the value."""


@dataclass
class Exporter:
    """The last scrape of one target."""

    is_up: bool = False
    seconds: float = 0.0
    samples: int = 0
    failures: int = 0


@dataclass
class Totals:
    """The totals of the collector; `gauges` of the spool are 0 without a spool."""

    samples: int = 0
    messages: int = 0
    refused: int = 0
    failed: int = 0
    dropped: int = 0
    spool_bytes: int = 0
    spool_messages: int = 0
    is_waiting: bool = False
    """Whether messages wait for a broker."""


@dataclass
class Vitals:
    """The present state."""

    interval_s: float = 0.0
    totals: Totals = field(default_factory=Totals)
    rounds: int = 0
    skipped: int = 0
    exporters: dict[str, Exporter] = field(default_factory=dict)
    _round_at_s: float = field(default_factory=time.monotonic)
    _lock: Lock = field(default_factory=Lock)

    def begun(self, targets: Iterable[str], skipped: int) -> None:
        """Record a round, and forget removed targets."""
        with self._lock:
            known = self.exporters
            self.exporters = {url: known.get(url) or Exporter() for url in targets}
            self.rounds += 1
            self.skipped += skipped
            self._round_at_s = time.monotonic()

    def scraped(self, url: str, seconds: float, samples: int) -> None:
        """Record a page."""
        with self._lock:
            exporter = self.exporters.setdefault(url, Exporter())
            exporter.is_up, exporter.seconds, exporter.samples = True, seconds, samples

    def failed(self, url: str, seconds: float) -> None:
        """Record a failed scrape."""
        with self._lock:
            exporter = self.exporters.setdefault(url, Exporter())
            exporter.is_up, exporter.seconds, exporter.samples = False, seconds, 0
            exporter.failures += 1

    def update(self, totals: Totals) -> None:
        """Take the present totals."""
        with self._lock:
            self.totals = totals

    def health(self) -> tuple[bool, dict[str, object]]:
        """Return the health of the collector, with a sentence."""
        with self._lock:
            silent_s = time.monotonic() - self._round_at_s
            patience_s = max(STALLED_AFTER_INTERVALS * self.interval_s, STALLED_AFTER_S_MIN)
            is_stalled = self.interval_s > 0 and silent_s > patience_s
            problems = []
            if is_stalled:
                problems.append(f"no round for {silent_s:.0f} s")
            if self.rounds and not any(each.is_up for each in self.exporters.values()):
                problems.append("no exporter answers")
            if self.totals.is_waiting:
                problems.append("messages wait for a broker")
            if self.totals.dropped or self.totals.failed:
                problems.append("messages were lost")
            status = "stalled" if is_stalled else "degraded" if problems else "ok"
            up = sum(each.is_up for each in self.exporters.values())
            answer: dict[str, object] = {
                "status": status,
                "problems": problems,
                "targets": len(self.exporters),
                "up": up,
            }
            return not is_stalled, answer

    def page(self) -> str:
        """Return all metrics as Prometheus text."""
        with self._lock:
            return "".join(_written(metric) for metric in self._metrics())

    def _metrics(self) -> list[Metric]:
        totals, each = self.totals, sorted(self.exporters.items())

        def whole(name: str, kind: str, text: str, value: float) -> Metric:
            return Metric(name, kind, text, [("", value)])

        return [
            Metric("up", "gauge", "Whether the last scrape gave a page.",
                   [(url, float(found.is_up)) for url, found in each]),
            Metric("scrape_duration_seconds", "gauge", "How long the last scrape took.",
                   [(url, found.seconds) for url, found in each]),
            Metric("scrape_samples", "gauge", "Samples of the last scrape.",
                   [(url, found.samples) for url, found in each]),
            Metric("scrape_failures_total", "counter", "Scrapes that gave no page.",
                   [(url, found.failures) for url, found in each]),
            whole("targets", "gauge", "Exporters to scrape.", len(each)),
            whole("rounds_total", "counter", "Rounds of scrapes.", self.rounds),
            whole("rounds_skipped_total", "counter", "Rounds that were skipped.", self.skipped),
            whole("samples_total", "counter", "Samples that were sent.", totals.samples),
            whole("messages_total", "counter", "Messages that were sent.", totals.messages),
            whole("refused_total", "counter", "Lines that could not be read.", totals.refused),
            whole("failed_total", "counter", "Messages that were lost.", totals.failed),
            whole("dropped_total", "counter", "Messages that the spool had no room for.",
                  totals.dropped),
            whole("spool_bytes", "gauge", "Bytes in the spool.", totals.spool_bytes),
            whole("spool_messages", "gauge", "Messages in the spool.", totals.spool_messages),
            whole("broker_waiting", "gauge", "Whether messages wait for a broker.",
                  float(totals.is_waiting)),
        ]  # fmt: skip


def _written(metric: Metric) -> str:
    name = f"{PREFIX}_{metric.name}"
    lines = [f"# HELP {name} {metric.text}", f"# TYPE {name} {metric.kind}"]
    for target, value in metric.samples:
        escaped = target.replace("\\", "\\\\").replace('"', '\\"')
        label = f'{{target="{escaped}"}}' if target else ""
        lines.append(f"{name}{label} {value:.10g}")
    return "\n".join(lines) + "\n"
