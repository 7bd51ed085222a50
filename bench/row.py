"""A benchmark row: a topic, a load on it, and the figures that count."""

from dataclasses import dataclass

from bench.access import Listener, Setup
from bench.brokers import Flush
from bench.loads import Load
from bench.metrics import Metric


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload for both brokers."""

    key: str
    section: str
    title: str
    load: Load
    metrics: tuple[Metric, ...]
    partitions: int = 1
    flush: Flush = Flush.LATER
    internal_topics: tuple[str, ...] = ()
    """The broker's internal topics that have the same flush policy while the row runs."""
    has_output: bool = False
    """Whether there is a second topic to write to."""
    setup: Setup = Setup.PLAIN
    """What the broker is set up with."""
    listener: Listener = Listener.PLAINTEXT
    """Where its clients connect."""
    warm_gb: int = 3
    """The memory to touch before: more than the row writes, or the faster broker pays."""
