"""Rows of groups, their members and their partitions."""

import math
from collections.abc import Mapping
from typing import Any

from barnabas.console.web.json_answers import number
from barnabas.monitor.states import ClusterState, GroupMember, GroupPartitionState, GroupState

NEVER = "never"
TREND_MAX = 60


def group_rows(state: ClusterState) -> list[Mapping[str, Any]]:
    """Return the rows of all groups, in the order of their names."""
    return [group_row(group) for _, group in sorted(state.groups.items())]


def group_row(group: GroupState) -> dict[str, Any]:
    """Return the row of a group."""
    return {
        "name": group.name,
        "type": group.type,
        "state": group.state,
        "status": group.status.value,
        "members": len(group.members),
        "topics": len({each.topic for each in group.partitions}),
        "lag": group.lag,
        "lag_s": number(group.lag_s),
        "eta_s": eta_json(group.eta_s),
        "retention_margin_s": number(group.retention_margin_s),
        "read_per_s": number(group.read_per_s),
        "lag_trend": list(group.lag_trend)[-TREND_MAX:],
    }


def eta_json(eta_s: float | None) -> float | str | None:
    """Return when a lag will be gone: seconds, `never`, or null if it is unknown."""
    return NEVER if eta_s is not None and math.isinf(eta_s) else number(eta_s)


def member_row(member: GroupMember) -> dict[str, Any]:
    """Return the row of a member."""
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "host": member.host,
        "partitions": [{"topic": topic, "partition": each} for topic, each in member.partitions],
    }


def group_partition_row(each: GroupPartitionState) -> dict[str, Any]:
    """Return the row of a partition of a group."""
    return {
        "topic": each.topic,
        "partition": each.number,
        "committed": each.committed,
        "end": each.end,
        "lag": each.lag,
        "lag_s": number(each.lag_s),
        "read_per_s": number(each.read_per_s),
        "retention_margin_s": number(each.retention_margin_s),
        "lost_records": each.lost_records,
        "status": each.status.value,
        "member_id": each.member_id,
        "client_id": each.client_id,
    }
