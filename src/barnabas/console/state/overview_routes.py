"""`/api/overview`: the cluster on one page."""

from collections import Counter
from typing import Any

from starlette.routing import Route

from barnabas.admin.cluster_overview import UP
from barnabas.console.console_endpoints import Asked, ConsoleParts, get
from barnabas.console.state.broker_rows import broker_rows, controller_of
from barnabas.console.state.consumer_group_rows import group_row
from barnabas.console.state.series_json import series_json
from barnabas.console.state.topic_rows import topic_row, troubles_by_topic
from barnabas.console.web.json_answers import number
from barnabas.monitor.states import ClusterState, GroupState, GroupStatus

SHOWN = 8
SERIES = ("records_per_s", "bytes_in_per_s", "bytes_out_per_s", "lag", "produce_p99_s")
GRAVITY = {
    GroupStatus.REWOUND: 5,
    GroupStatus.STOPPED: 4,
    GroupStatus.STALLED: 3,
    GroupStatus.BEHIND: 2,
    GroupStatus.UNKNOWN: 1,
    GroupStatus.OK: 0,
}


def overview_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes of the overview."""

    def overview(asked: Asked) -> object:
        state = parts.state(asked)
        series = parts.snapshots.source.cluster_series()
        return {**overview_json(state), "history": series_json(series, *SERIES)}

    def quorum(asked: Asked) -> object:
        state = parts.state(asked)
        found = state.overview.quorum
        return {
            "taken_ms": state.taken_ms,
            "controller": controller_of(state),
            **({} if found is None else found.as_json()),
        }

    return [get(parts, "/api/overview", overview), get(parts, "/api/quorum", quorum)]


def overview_json(state: ClusterState) -> dict[str, Any]:
    """Return the state of the cluster in short."""
    found = state.overview
    troubles = troubles_by_topic(state)
    return {
        "taken_ms": state.taken_ms,
        "took_ms": state.took_ms,
        "interval_s": state.interval_s,
        "cluster_id": found.cluster_id,
        "controller": controller_of(state),
        "feature_level": found.feature_level,
        "health": state.health.as_json(),
        "troubles": list(state.troubles),
        "throughput": {
            "records_per_s": number(state.records_per_s),
            "bytes_in_per_s": number(state.bytes_in_per_s),
            "bytes_out_per_s": number(state.bytes_out_per_s),
            "produce_p99_s": number(state.produce_p99_s, 6),
            "fetch_p99_s": number(state.fetch_p99_s, 6),
        },
        "disk": _disk(state),
        "counts": {
            "brokers": len(found.brokers),
            "brokers_up": sum(each.state == UP for each in found.brokers),
            "topics": sum(not each.is_internal for each in state.topics.values()),
            "partitions": found.partitions.total,
            "groups": len(state.groups),
            "members": sum(len(each.members) for each in state.groups.values()),
        },
        "partitions": {
            "offline": len(found.partitions.offline),
            "under_min_isr": len(found.partitions.under_min_isr),
            "under_replicated": len(found.partitions.under_replicated),
            "reassigning": len(found.partitions.reassigning),
            "not_led_as_preferred": len(found.partitions.not_led_as_preferred),
        },
        "groups_by_status": _by_status(state),
        "worst_groups": [group_row(each) for each in _worst_groups(state)],
        "hottest_topics": [
            topic_row(each, troubles.get(each.name)) for each in _hottest_topics(state)
        ],
        "brokers": broker_rows(state),
    }


def _disk(state: ClusterState) -> dict[str, Any]:
    """Return the fullest disk, and the time until the first disk is full."""
    used = [1 - each.disk_free for each in state.overview.brokers if each.disk_free is not None]
    full = [each.full_in_s for each in state.disks.values() if each.full_in_s is not None]
    return {
        "used_ratio": number(max(used), 4) if used else None,
        "full_in_s": number(min(full)) if full else None,
    }


def _by_status(state: ClusterState) -> dict[str, int]:
    counts = Counter(group.status for group in state.groups.values())
    return {status.value: counts[status] for status in GroupStatus}


def _worst_groups(state: ClusterState) -> list[Any]:
    def gravity(group: GroupState) -> tuple[float, ...]:
        return GRAVITY[group.status], group.lag_s or 0, group.lag or 0

    behind = [
        each
        for each in state.groups.values()
        if gravity(each) > (GRAVITY[GroupStatus.UNKNOWN], 0, 0)
    ]
    return sorted(behind, key=gravity, reverse=True)[:SHOWN]


def _hottest_topics(state: ClusterState) -> list[Any]:
    busy = [each for each in state.topics.values() if each.records_per_s]
    return sorted(busy, key=lambda each: each.records_per_s or 0, reverse=True)[:SHOWN]
