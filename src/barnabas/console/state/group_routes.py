"""`/api/groups`: the list of groups, and single groups."""

from starlette.routing import Route

from barnabas.console.console_endpoints import Asked, ConsoleParts, get
from barnabas.console.state.consumer_group_rows import (
    group_partition_row,
    group_row,
    group_rows,
    member_row,
)
from barnabas.console.state.series_json import series_json
from barnabas.console.web.list_queries import Row
from barnabas.console.web.problems import bad_input, not_found
from barnabas.monitor.states import ClusterState, GroupStatus


def group_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes of groups that read; `/api/groups/{name}` comes after all others."""

    def listed(asked: Asked) -> object:
        status = asked.query.get("status", "")
        if not status:
            return parts.page(asked, "groups", group_rows)
        if status not in set(GroupStatus):
            known = ", ".join(GroupStatus)
            raise bad_input(f"status {status[:40]!r} is none of {known}")

        def with_status(state: ClusterState) -> list[Row]:
            return [row for row in group_rows(state) if row["status"] == status]

        return parts.page(asked, f"groups {status}", with_status)

    def one(asked: Asked) -> object:
        state = parts.state(asked)
        name = asked.name(state.groups)
        group = state.groups.get(name)
        if group is None:
            raise not_found(f"There is no group {name}; `barnabas group list` lists all groups")
        series = parts.snapshots.source.group_series(name)
        return {
            **group_row(group),
            "taken_ms": state.taken_ms,
            "coordinator": group.coordinator,
            "assignor": group.assignor,
            "member_list": [member_row(each) for each in group.members],
            "partition_list": [group_partition_row(each) for each in group.partitions],
            "history": series_json(series, "lag", "lag_s"),
        }

    return [get(parts, "/api/groups", listed), get(parts, "/api/groups/{name:path}", one)]
