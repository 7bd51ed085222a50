"""Writes RESULTS.md from the JSON results, without measuring."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from bench.metrics import CPU, MEMORY_IDLE, MEMORY_LOADED, START_AGAIN, START_FRESH, Metric
from bench.results import Results, Summary
from bench.rows import ROWS

BROKER_ROW = "broker"
"""The key of samples about the broker itself: memory and start-up."""
BROKER_METRICS = (MEMORY_IDLE, MEMORY_LOADED, START_FRESH, START_AGAIN)
TITLE = "# Benchmark results"
OURS, THEIRS = "barnabas", "kafka"

INTRODUCTION = """\
Written by `make bench`; do not edit. How the rows are measured: [README.md](README.md).

Both brokers ran on the same machine with the same load, one after the other, in each round; which
one went first alternated. A cell is the median of the rounds, with the lowest and the highest in
parentheses. The ratio is Barnabas / Kafka, of the medians. Goals: throughput at least 1.0x, p99
latency and time to a stable group at most 0.5x, memory and start-up at most 0.2x. Clients and
broker share the cores, so bulk rows show the client's cost as well; "CPU-seconds a GB" shows the
broker's alone.

Records are flushed to the disk when the operating system sees fit, which is Kafka's default, unless
a row says otherwise. "Flushed every second" is `flush.ms=1000` on both, Barnabas's default for
`flush=interval`. "Flushed before the ack" is Barnabas's default (`flush=ack`) beside Kafka with
`flush.messages=1`.
"""


class Shown(Protocol):
    """The data of a row for the page."""

    @property
    def key(self) -> str:
        """The key of its samples."""

    @property
    def section(self) -> str:
        """Its table."""

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its figures."""


HEADER = ("row", "figure", "Barnabas", "Kafka", "ratio", "goal", "met")


def render(results: Results) -> str:
    """The whole page."""
    parts = [f"{TITLE}\n", INTRODUCTION, verdict(outcomes(results)), facts(results)]
    parts += [*sections(results, ROWS), broker_section(results)]
    parts += [cpu_section(results, ROWS), failures(results)]
    return joined(parts)


def joined(parts: Iterable[str]) -> str:
    """A page of its parts; empty ones are left out."""
    return "\n".join(part for part in parts if part)


def facts(results: Results) -> str:
    """Machine, commit, date, versions."""
    return table(("what", "value"), results.facts.items())


def verdict(outcomes: Iterable[bool | None]) -> str:
    """How many goals were met, which readers look for first."""
    met = [outcome for outcome in outcomes if outcome is not None]
    if not met:
        return ""
    return f"**{sum(met)} of {len(met)} goals met.**\n"


def outcomes(results: Results) -> Iterator[bool | None]:
    """Whether each figure with a goal met it; None if there is none."""
    yield from row_outcomes(results, ROWS)
    for metric in BROKER_METRICS:
        yield outcome_of(results, BROKER_ROW, metric)


def row_outcomes(results: Results, rows: Sequence[Shown]) -> Iterator[bool | None]:
    """The same for the figures of some rows."""
    for row in rows:
        for metric in row.metrics:
            yield outcome_of(results, row.key, metric)


def outcome_of(results: Results, key: str, metric: Metric) -> bool | None:
    """A figure that Barnabas failed to give has not met its goal."""
    ratio = ratio_of(results, key, metric)
    if ratio is not None:
        return metric.meets_goal(ratio)
    ours_failed = results.errors(key, OURS) and not results.summary(key, OURS, metric)
    return False if ours_failed and metric.goal is not None else None


def sections(results: Results, rows: Sequence[Shown]) -> list[str]:
    """One table for each section."""
    titles = dict.fromkeys(row.section for row in rows)
    return [section(results, title, rows) for title in titles]


def section(results: Results, title: str, rows: Sequence[Shown]) -> str:
    """One table: the rows of a section that were run."""
    lines = [
        line(results, row.key, row.title, metric)
        for row in rows
        if row.section == title and results.has(row.key)
        for metric in row.metrics
        if metric is not CPU
    ]
    return f"## {title}\n\n{table(HEADER, lines)}" if lines else ""


def broker_section(results: Results) -> str:
    """Memory and start-up."""
    if not results.has(BROKER_ROW):
        return ""
    lines = [line(results, BROKER_ROW, "the broker", metric) for metric in BROKER_METRICS]
    return f"## Memory and start-up\n\n{table(HEADER, lines)}"


def cpu_section(results: Results, rows: Sequence[Shown]) -> str:
    """The CPU cost of a GB of payload, for the bulk rows."""
    lines = [
        line(results, row.key, f"{row.section}: {row.title}", CPU)
        for row in rows
        if CPU in row.metrics and results.has(row.key)
    ]
    return f"## CPU-seconds a GB\n\n{table(HEADER, lines)}" if lines else ""


def failures(results: Results) -> str:
    """Each reason once, with the row and the broker."""
    keys = dict.fromkeys(sample.row for sample in results.samples)
    lines = [
        f"- `{key}` on {results.titles[broker]}: {error}"
        for key in keys
        for broker in results.titles
        for error in results.errors(key, broker)
    ]
    return "## Failed\n\n" + "\n".join(lines) + "\n" if lines else ""


def line(results: Results, key: str, title: str, metric: Metric) -> tuple[str, ...]:
    """One line of a table."""
    ratio = ratio_of(results, key, metric)
    return (
        title,
        f"{metric.title} ({metric.unit})",
        cell(results, key, OURS, metric),
        cell(results, key, THEIRS, metric),
        "" if ratio is None else f"{ratio:.2f}x",
        metric.goal_text,
        {None: "", True: "yes", False: "**no**"}[outcome_of(results, key, metric)],
    )


def ratio_of(results: Results, key: str, metric: Metric) -> float | None:
    """Barnabas / Kafka, if both were measured."""
    ours, theirs = (results.summary(key, broker, metric) for broker in (OURS, THEIRS))
    if ours is None or theirs is None or not theirs.median:
        return None
    return ours.median / theirs.median


def cell(results: Results, key: str, broker: str, metric: Metric) -> str:
    """Median and spread, or the reason why there is none; partial failures are marked."""
    summary = results.summary(key, broker, metric)
    failed = results.errors(key, broker)
    if summary is None:
        return "failed" if failed else ""
    return spread(summary) + (" †" if failed else "")


def spread(summary: Summary) -> str:
    """`1,234 (1,200-1,300)`; the spread is left out if all rounds agree."""
    if summary.low == summary.high:
        return number(summary.median)
    return f"{number(summary.median)} ({number(summary.low)}-{number(summary.high)})"


def number(value: float) -> str:
    """Three significant digits or all digits before the point, whichever is more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    header = tuple(header)
    rows = [header, ("---",) * len(header), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"
