"""Puts the metrics of a broker together, part by part, as they are when they are asked for."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

from barnabas.groups.group_machine import GroupMachine
from barnabas.model.version import __version__
from barnabas.node.chores.maintenance import Maintenance
from barnabas.node.partitions.partition import Partition
from barnabas.node.topic_traffic import TopicTraffic
from barnabas.server.metrics import metric_families as metrics
from barnabas.server.metrics.broker_state import broker_state
from barnabas.server.metrics.exposition_text import Texts, Writer, slices
from barnabas.server.metrics.metadata_metrics import controller_texts, quorum_texts
from barnabas.server.metrics.metered_server import MeteredServer
from barnabas.server.metrics.metric_families import Family, Names
from barnabas.server.metrics.partition_metrics import (
    TEXTS_BETWEEN,
    Sums,
    by_partition,
    by_topic,
    exceptions,
)
from barnabas.server.metrics.process_metrics import process_facts
from barnabas.server.metrics.request_metrics import request_texts

TRAFFIC: tuple[tuple[Family, Callable[[TopicTraffic], int]], ...] = (
    (metrics.MESSAGES_IN, lambda traffic: traffic.messages_in),
    (metrics.BYTES_IN, lambda traffic: traffic.bytes_in),
    (metrics.BYTES_OUT, lambda traffic: traffic.bytes_out),
    (metrics.PRODUCES, lambda traffic: traffic.produces),
    (metrics.FAILED_PRODUCES, lambda traffic: traffic.failed_produces),
    (metrics.FETCHES, lambda traffic: traffic.fetches),
    (metrics.FAILED_FETCHES, lambda traffic: traffic.failed_fetches),
)
TOTALS_ONLY: tuple[tuple[Family, Callable[[TopicTraffic], int]], ...] = (
    (metrics.REPLICATION_IN, lambda traffic: traffic.replication_bytes_in),
    (metrics.REPLICATION_OUT, lambda traffic: traffic.replication_bytes_out),
    (metrics.BYTES_REJECTED, lambda traffic: traffic.bytes_rejected),
    (metrics.STORAGE_ERRORS, lambda traffic: traffic.storage_errors),
)
GROUP_STATES = {
    "Stable": metrics.GROUPS_STABLE,
    "PreparingRebalance": metrics.GROUPS_PREPARING,
    "Assigning": metrics.GROUPS_PREPARING,
    "CompletingRebalance": metrics.GROUPS_COMPLETING,
    "Reconciling": metrics.GROUPS_COMPLETING,
    "Empty": metrics.GROUPS_EMPTY,
    "Dead": metrics.GROUPS_DEAD,
}
"""Kafka has these gauges; states of consumer groups count where a classic group would be."""


class BrokerMetrics:
    """The metrics of one broker."""

    def __init__(self, server: MeteredServer, maintenance: Maintenance) -> None:
        self._server = server
        self._node = server.node
        self._maintenance = maintenance
        self._series_max = server.node.settings.observability.partition_series_max

    def main(self, names: Names) -> Texts:
        """Return the metrics of the broker, in slices."""
        writer = Writer(names)
        partitions = list(self._node.partitions.values())
        has_few = len(partitions) <= self._series_max
        parts = (
            self._traffic(writer),
            self._replicas(writer, partitions),
            (by_partition if has_few else by_topic)(writer, partitions),
            self._ages(writer, partitions),
            controller_texts(writer, self._node),
            quorum_texts(writer, self._server),
            request_texts(writer, self._server),
            self._groups(writer),
            self._rest(writer),
        )
        return slices(chain.from_iterable(parts))

    def of_partitions(self, names: Names) -> Texts:
        """Return the series of partitions, in slices."""
        partitions = list(self._node.partitions.values())
        return slices(by_partition(Writer(names), partitions))

    def _traffic(self, writer: Writer) -> Texts:
        traffic = self._node.traffic
        if traffic is None:
            return
        total, topics = traffic.total(), list(traffic)
        yield ""
        for family, value in TRAFFIC:
            start = writer.start(family)
            yield f"{writer.head(family)}{start} {value(total)}\n"
            for topic, numbers in topics:
                yield f'{start}{{topic="{topic}"}} {value(numbers)}\n'
        for family, value in TOTALS_ONLY:
            yield from writer.one(family, value(total))

    def _replicas(self, writer: Writer, partitions: list[Partition]) -> Texts:
        sums, replicas = Sums(), self._node.replicas
        yield from sums.count(partitions)
        for family, value in (
            (metrics.LEADERS, sums.leaders),
            (metrics.REPLICAS, len(partitions)),
            (metrics.OFFLINE_REPLICAS, self._node.local.offline_replicas),
            (metrics.REASSIGNING, sums.reassigning),
            (metrics.UNDER_REPLICATED, sums.under_replicated),
            (metrics.UNDER_MIN_ISR, sums.under_min_isr),
            (metrics.AT_MIN_ISR, sums.at_min_isr),
            (metrics.ISR_SHRINKS, replicas.isr_shrinks),
            (metrics.ISR_EXPANDS, replicas.isr_expands),
            (metrics.FAILED_ISR_UPDATES, replicas.failed_isr_updates),
            (metrics.DAMAGED, sums.damaged),
            (metrics.OFFLINE_DIRECTORIES, sums.is_refused_by_disk),
        ):
            yield from writer.one(family, value)
        yield from writer.labelled(metrics.MAX_LAG, [(["Replica"], sums.max_lag)])

    def _ages(self, writer: Writer, partitions: list[Partition]) -> Texts:
        timers = self._node.timers
        return exceptions(writer, partitions, timers.now_ms, timers.wall_ms)

    def _groups(self, writer: Writer) -> Texts:
        by_state: Counter[Family] = Counter()
        count = 0
        for shard in self._node.coordinators.groups.shards():
            machine = shard.machine
            assert isinstance(machine, GroupMachine)
            for group in list(machine.groups.values()):
                count += 1
                family = GROUP_STATES.get(str(group.state))
                if family is not None:
                    by_state[family] += 1
                if count % TEXTS_BETWEEN == 0:
                    yield ""
        yield from writer.one(metrics.GROUPS, count)
        for family in dict.fromkeys(GROUP_STATES.values()):
            yield from writer.one(family, by_state[family])
        counts = self._node.group_counts
        yield from writer.one(metrics.REBALANCES, counts.rebalances)
        yield from writer.one(metrics.OFFSET_COMMITS, counts.offset_commits)

    def _rest(self, writer: Writer) -> Texts:
        node, server = self._node, self._server
        yield from self._connections(writer)
        yield from writer.one(metrics.FETCH_SESSIONS, len(node.sessions))
        yield from writer.one(metrics.BROKER_STATE, broker_state(node))
        yield from writer.one(metrics.LOOP_STALLS, server.stalls)
        yield from writer.one(metrics.LOOP_STALL_MAX, server.longest_event_s)
        yield from writer.one(metrics.SCRUBBED, self._maintenance.scrubbing.scrubbed_bytes)
        try:
            total, free = node.disk.space(node.settings.broker.data_dir)
        except OSError:
            pass
        else:
            yield from writer.one(metrics.DISK_FREE, free)
            yield from writer.one(metrics.DISK_TOTAL, total)
        yield from _process(writer)
        yield from writer.labelled(metrics.BUILD_INFO, [([__version__, str(node.node_id)], 1)])

    def _connections(self, writer: Writer) -> Texts:
        by_listener: Counter[str] = Counter()
        for number, named in enumerate(list(self._server.connections.values())):
            by_listener[named.name] += 1
            if number % TEXTS_BETWEEN == 0:
                yield ""
        counted = (([name, "0"], count) for name, count in sorted(by_listener.items()))
        yield from writer.labelled(metrics.CONNECTIONS, counted)
        limit = min(
            self._node.settings.performance.max_connections,
            self._server.shares.connections_beside(len(self._node.partitions)),
        )
        yield from writer.one(metrics.CONNECTIONS_LIMIT, limit)
        refused = (([reason], count) for reason, count in self._server.refused.by_limit.items())
        yield from writer.labelled(metrics.CONNECTIONS_REFUSED, refused)


def _process(writer: Writer) -> Iterator[str]:
    facts = process_facts()
    for family, value in (
        (metrics.CPU_SECONDS, facts.cpu_seconds),
        (metrics.RESIDENT, facts.resident_bytes),
        (metrics.OPEN_FILES, facts.open_files),
        (metrics.FILES_MAX, facts.files_max),
        (metrics.DISK_READ, facts.read_bytes),
        (metrics.DISK_WRITE, facts.written_bytes),
    ):
        if value is not None:
            yield from writer.one(family, value)
