"""Rows of topics and their partitions."""

from collections.abc import Mapping
from typing import Any

from barnabas.console.web.json_answers import number
from barnabas.monitor.states import ClusterState, GroupState, PartitionState, TopicState

OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under_min_isr", "under_replicated"


def topic_rows(state: ClusterState) -> list[Mapping[str, Any]]:
    """Return the rows of all topics, in the order of their names."""
    troubles = troubles_by_topic(state)
    return [topic_row(topic, troubles.get(name)) for name, topic in sorted(state.topics.items())]


def topic_row(topic: TopicState, trouble: str | None) -> dict[str, Any]:
    """Return the row of a topic."""
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "records": topic.records,
        "size_bytes": topic.size_bytes,
        "records_per_s": number(topic.records_per_s),
        "bytes_per_s": number(topic.bytes_per_s),
        "groups": len(topic.groups),
        "trouble": trouble,
    }


def troubles_by_topic(state: ClusterState) -> dict[str, str]:
    """Return the worst trouble of each topic that has one."""
    partitions = state.overview.partitions
    found: dict[str, str] = {}
    for trouble, places in (
        (UNDER_REPLICATED, partitions.under_replicated),
        (UNDER_MIN_ISR, partitions.under_min_isr),
        (OFFLINE, partitions.offline),
    ):
        found |= dict.fromkeys((topic for topic, _ in places), trouble)
    return found


def partition_row(each: PartitionState) -> dict[str, Any]:
    """Return the row of a partition."""
    return {
        "number": each.number,
        "leader": each.leader,
        "replicas": list(each.replicas),
        "in_sync": list(each.in_sync),
        "offline": list(each.offline),
        "start": each.start,
        "end": each.end,
        "size_bytes": each.size_bytes,
        "records_per_s": number(each.records_per_s),
    }


def reading_group(group: GroupState, topic: str) -> dict[str, Any]:
    """Return how far a group is behind in one topic."""
    parts = [each for each in group.partitions if each.topic == topic]
    lags = [each.lag for each in parts if each.lag is not None]
    ages = [each.lag_s for each in parts if each.lag_s is not None]
    return {
        "name": group.name,
        "lag": sum(lags) if lags else None,
        "lag_s": number(max(ages)) if ages else None,
        "status": group.status.value,
    }
