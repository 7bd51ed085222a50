"""A benchmark row: a topic, a load on it, and the figures that count."""

from dataclasses import dataclass

from bench.brokers import Flush
from bench.loads import Load
from bench.metrics import Metric


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of work for both brokers."""

    key: str
    section: str
    title: str
    load: Load
    metrics: tuple[Metric, ...]
    partitions: int = 1
    flush: Flush = Flush.LATER
    internal_topics: tuple[str, ...] = ()
    """Topics of the broker's own that have the same flush policy while the row runs."""
    has_output: bool = False
    """Whether there is a second topic to write to."""
    warm_gb: int = 3
    """Free memory that is touched before: more than the row writes, or the faster broker pays."""
