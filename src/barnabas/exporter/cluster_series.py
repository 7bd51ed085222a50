"""The state of a cluster as series for Prometheus, with the names that stock dashboards use.

Names are those of kafka_exporter and kafka-lag-exporter; what they have no word for begins with
`barnabas_`. A value that is unknown is left out: there is no -1, and no lag is negative.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from barnabas.admin.cluster_overview import FENCED
from barnabas.exporter.series_text import COUNTER, GAUGE, Family, Line
from barnabas.monitor.states import ClusterState, GroupPartitionState, GroupState, PartitionState

PARTITION = ("topic", "partition")
GROUP_PARTITION = ("consumergroup", "topic", "partition")
LAG_TIME = ("cluster_name", "group")
TOPIC_PARTITION = "kafka_topic_partition"
GROUP = "kafka_consumergroup"


def families(state: ClusterState, cluster_name: str) -> Iterator[Family]:
    """Return all families of a state; `cluster_name` is a label of the lag in time."""
    yield from _cluster(state)
    yield from _topics(state)
    yield from _partitions(state)
    yield from _group_offsets(state)
    yield from _group_times(state, cluster_name)
    yield from _group_forecasts(state)


def _cluster(state: ClusterState) -> Iterator[Family]:
    brokers = state.overview.brokers
    yield Family(
        "kafka_brokers",
        GAUGE,
        "Brokers that are not fenced.",
        lines=[((), sum(each.state != FENCED for each in brokers))],
    )
    yield Family(
        "kafka_broker_info",
        GAUGE,
        "Always 1; the address of each broker.",
        ("id", "address"),
        [((str(each.id), each.address), 1) for each in brokers],
    )
    yield Family(
        "barnabas_cluster_verdict",
        GAUGE,
        "Always 1; healthy, degraded or unavailable.",
        ("verdict",),
        [((state.health.verdict.value,), 1)],
    )


def _topics(state: ClusterState) -> Iterator[Family]:
    yield Family(
        "kafka_topic_partitions",
        GAUGE,
        "Partitions of a topic.",
        ("topic",),
        [((name,), len(topic.partitions)) for name, topic in state.topics.items()],
    )


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition with its labels."""

    labels: tuple[str, str]
    at: PartitionState


def _partitions(state: ClusterState) -> Iterator[Family]:
    rows = [
        PartitionRow((name, str(each.number)), each)
        for name, topic in state.topics.items()
        for each in topic.partitions
    ]

    def family(suffix: str, text: str, lines: list[Line]) -> Family:
        return Family(f"{TOPIC_PARTITION}_{suffix}", GAUGE, text, PARTITION, lines)

    yield family(
        "current_offset",
        "High watermark.",
        [(row.labels, row.at.end) for row in rows if row.at.end is not None],
    )
    yield family(
        "oldest_offset",
        "Log start offset.",
        [(row.labels, row.at.start) for row in rows if row.at.start is not None],
    )
    yield family(
        "in_sync_replica",
        "Replicas in sync.",
        [(row.labels, len(row.at.in_sync)) for row in rows],
    )
    yield family(
        "leader",
        "Id of the broker that leads.",
        [(row.labels, row.at.leader) for row in rows if row.at.leader is not None],
    )
    yield family(
        "leader_is_preferred",
        "1 if the first replica leads.",
        [(row.labels, int(row.at.leader in row.at.replicas[:1])) for row in rows],
    )
    yield family("replicas", "Replicas.", [(row.labels, len(row.at.replicas)) for row in rows])
    yield family(
        "under_replicated_partition",
        "1 if replicas are out of sync.",
        [(row.labels, int(len(row.at.in_sync) < len(row.at.replicas))) for row in rows],
    )


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A partition of a group with its labels."""

    labels: tuple[str, str, str]
    at: GroupPartitionState


def _rows(groups: Mapping[str, GroupState]) -> list[GroupRow]:
    return [
        GroupRow((name, each.topic, str(each.number)), each)
        for name, group in groups.items()
        for each in group.partitions
        if each.committed is not None
    ]


def _group_offsets(state: ClusterState) -> Iterator[Family]:
    rows = _rows(state.groups)
    yield Family(
        f"{GROUP}_members",
        GAUGE,
        "Members of a group.",
        ("consumergroup",),
        [((name,), len(group.members)) for name, group in state.groups.items()],
    )
    yield Family(
        f"{GROUP}_current_offset",
        GAUGE,
        "Committed offset.",
        GROUP_PARTITION,
        [(row.labels, row.at.committed or 0) for row in rows],
    )
    yield Family(
        f"{GROUP}_lag",
        GAUGE,
        "Records between the committed offset and the end.",
        GROUP_PARTITION,
        [(row.labels, row.at.lag) for row in rows if row.at.lag is not None],
    )
    by_topic = [(key, list(found)) for key, found in groupby(rows, lambda row: row.labels[:2])]
    yield Family(
        f"{GROUP}_current_offset_sum",
        GAUGE,
        "Sum of the committed offsets of a topic.",
        ("consumergroup", "topic"),
        [(key, sum(row.at.committed or 0 for row in found)) for key, found in by_topic],
    )
    yield Family(
        f"{GROUP}_lag_sum",
        GAUGE,
        "Sum of the lags of a topic.",
        ("consumergroup", "topic"),
        [
            (key, sum(row.at.lag or 0 for row in found))
            for key, found in by_topic
            if any(row.at.lag is not None for row in found)
        ],
    )


def _group_times(state: ClusterState, cluster_name: str) -> Iterator[Family]:
    yield Family(
        f"{GROUP}_group_lag_seconds",
        GAUGE,
        "How long ago the end passed the committed offset.",
        (*LAG_TIME, *PARTITION),
        [
            ((cluster_name, *row.labels), row.at.lag_s)
            for row in _rows(state.groups)
            if row.at.lag_s is not None
        ],
    )
    yield Family(
        f"{GROUP}_group_max_lag_seconds",
        GAUGE,
        "The largest lag of a group in seconds.",
        LAG_TIME,
        [
            ((cluster_name, name), group.lag_s)
            for name, group in state.groups.items()
            if group.lag_s is not None
        ],
    )


def _group_forecasts(state: ClusterState) -> Iterator[Family]:
    groups = state.groups.items()
    yield Family(
        "barnabas_group_eta_seconds",
        GAUGE,
        "When a group has no lag at the present speeds; +Inf if it does not get smaller.",
        ("group",),
        [((name,), group.eta_s) for name, group in groups if group.eta_s is not None],
    )
    yield Family(
        "barnabas_group_retention_margin_seconds",
        GAUGE,
        "When retention deletes records that a group has not read; +Inf if it does not.",
        ("group",),
        [
            ((name,), group.retention_margin_s)
            for name, group in groups
            if group.retention_margin_s is not None
        ],
    )
    yield Family(
        "barnabas_group_records_lost_total",
        COUNTER,
        "Records that were deleted before a group read them.",
        ("group",),
        [((name,), sum(each.lost_records for each in group.partitions)) for name, group in groups],
    )
    yield Family(
        "barnabas_group_status",
        GAUGE,
        "Always 1; ok, behind, stalled, stopped, rewound or unknown.",
        ("group", "status"),
        [((name, group.status.value), 1) for name, group in groups],
    )
