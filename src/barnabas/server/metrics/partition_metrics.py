"""The metrics of partitions: a series for each, or sums by topic where there are very many."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from barnabas.node.partitions.partition import Partition
from barnabas.server.metrics import metric_families as metrics
from barnabas.server.metrics.exposition_text import Texts, Writer
from barnabas.server.metrics.metric_families import Family

MS_PER_S = 1_000
TEXTS_BETWEEN = 20
"""After so many partitions without a line an empty text is yielded."""

Value = Callable[[Partition], float]


class Column(NamedTuple):
    """One metric of partitions."""

    family: Family
    value: Value


def is_under_replicated(partition: Partition) -> bool:
    """Tell whether a replica is out of sync, apart from those that are being added."""
    placed = partition.placed
    return len(placed.isr) < len(placed.replicas) - len(placed.adding)


def is_at_min_isr(partition: Partition) -> bool:
    """Tell whether acks=all is refused after one more loss."""
    in_sync = partition.in_sync
    return in_sync is not None and len(in_sync.isr) == in_sync.effective_min_isr


OF_LEADERS = (
    Column(metrics.REPLICAS_COUNT, lambda partition: len(partition.replicas)),
    Column(metrics.IN_SYNC_COUNT, lambda partition: len(partition.isr)),
    Column(metrics.IS_UNDER_REPLICATED, is_under_replicated),
    Column(metrics.IS_UNDER_MIN_ISR, lambda partition: partition.leader.is_under_min_isr),
    Column(metrics.IS_AT_MIN_ISR, is_at_min_isr),
    Column(
        metrics.STABLE_LAG,
        lambda partition: partition.high_watermark - partition.last_stable_offset,
    ),
)
OF_REPLICAS = (
    Column(metrics.LOG_SIZE, lambda partition: partition.log.size),
    Column(metrics.LOG_SEGMENTS, lambda partition: len(partition.log.segments)),
    Column(metrics.LOG_START, lambda partition: partition.log.start_offset),
    Column(metrics.LOG_END, lambda partition: partition.log.end_offset),
)


def by_partition(writer: Writer, partitions: Sequence[Partition]) -> Texts:
    """Write a series for each partition."""
    named: list[tuple[Partition, str]] = []
    for number, partition in enumerate(partitions):
        topic, index = partition.name
        named.append((partition, f'topic="{topic}",partition="{index}"'))
        if number % TEXTS_BETWEEN == 0:
            yield ""
    led = [pair for pair in named if pair[0].leads]
    for column in OF_LEADERS:
        yield from _series(writer, column, led)
    for column in OF_REPLICAS:
        yield from _series(writer, column, named)


def _series(writer: Writer, column: Column, named: Sequence[tuple[Partition, str]]) -> Texts:
    family, value = column
    yield writer.head(family)
    start = writer.start(family)
    for partition, labels in named:
        yield f"{start}{{{labels}}} {int(value(partition))}\n"


def by_topic(writer: Writer, partitions: Sequence[Partition]) -> Texts:
    """Write sums by topic."""
    for columns, leaders_only in ((OF_LEADERS, True), (OF_REPLICAS, False)):
        sums: dict[str, list[int]] = {}
        for number, partition in enumerate(partitions):
            if leaders_only and not partition.leads:
                continue
            totals = sums.setdefault(partition.name.topic, [0] * len(columns))
            for place, column in enumerate(columns):
                totals[place] += int(column.value(partition))
            if number % TEXTS_BETWEEN == 0:
                yield ""
        for place, column in enumerate(columns):
            yield writer.head(column.family)
            start = writer.start(column.family)
            for topic, totals in sums.items():
                yield f'{start}{{topic="{topic}"}} {totals[place]}\n'


def exceptions(writer: Writer, partitions: Sequence[Partition], now_ms: int, wall_ms: int) -> Texts:
    """Write the series of partitions that have something to report."""
    for family, age_ms, clock_ms in (
        (metrics.REPLICA_LAG, replica_lag_ms, now_ms),
        (metrics.OPEN_TRANSACTION, transaction_age_ms, wall_ms),
    ):
        yield writer.head(family)
        start = writer.start(family)
        for number, partition in enumerate(partitions):
            duration_ms = age_ms(partition, clock_ms)
            if duration_ms > 0:
                topic, index = partition.name
                yield (
                    f'{start}{{topic="{topic}",partition="{index}"}} {duration_ms / MS_PER_S:g}\n'
                )
            elif number % TEXTS_BETWEEN == 0:
                yield ""


def replica_lag_ms(partition: Partition, now_ms: int) -> int:
    """Return for how long the slowest follower of a partition has been behind; 0 if none is."""
    in_sync = partition.in_sync
    if in_sync is None:
        return 0
    end_offset = partition.log.end_offset
    since = [
        follower.caught_up_ms
        for follower in in_sync.followers.values()
        if follower.end_offset < end_offset
    ]
    return max(0, now_ms - min(since)) if since else 0


def transaction_age_ms(partition: Partition, wall_ms: int) -> int:
    """Return the age of the oldest open transaction of a partition that is led here."""
    began_ms = partition.log.producers.oldest_open_ms() if partition.leads else None
    return 0 if began_ms is None else max(1, wall_ms - began_ms)


class Sums:
    """What all partitions of the broker amount to."""

    def __init__(self) -> None:
        self.leaders = self.under_replicated = self.under_min_isr = self.at_min_isr = 0
        self.reassigning = self.damaged = self.max_lag = 0
        self.is_refused_by_disk = False
        """Whether the disk refuses appends."""

    def count(self, partitions: Sequence[Partition]) -> Iterator[str]:
        """Look at all partitions; yield empty texts meanwhile."""
        for number, partition in enumerate(partitions):
            self._add(partition)
            if number % TEXTS_BETWEEN == 0:
                yield ""

    def _add(self, partition: Partition) -> None:
        placed, health = partition.placed, partition.health
        self.damaged += health.may_lack_records
        self.is_refused_by_disk |= health.append_failures.are_refused
        if partition.leads:
            self.leaders += 1
            self.under_replicated += is_under_replicated(partition)
            self.under_min_isr += partition.leader.is_under_min_isr
            self.at_min_isr += is_at_min_isr(partition)
            self.reassigning += bool(placed.adding or placed.removing)
        else:
            behind = partition.follower.leader_high_watermark - partition.log.end_offset
            self.max_lag = max(self.max_lag, behind)
