"""`/api/topics`: the list of topics, and single topics."""

from starlette.routing import Route

from barnabas.console.console_endpoints import Asked, ConsoleParts, get
from barnabas.console.state.series_json import series_json
from barnabas.console.state.topic_rows import (
    partition_row,
    reading_group,
    topic_row,
    topic_rows,
    troubles_by_topic,
)
from barnabas.console.web.list_queries import Row
from barnabas.console.web.problems import not_found
from barnabas.monitor.states import ClusterState

PARTITIONS_SHOWN_MAX = 10_000


def topic_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes of topics that read; `/api/topics/{name}` comes after all others."""

    def listed(asked: Asked) -> object:
        if asked.query.get("internal", "0") == "0":
            return parts.page(asked, "topics", _own_rows)
        return parts.page(asked, "all topics", topic_rows)

    def one(asked: Asked) -> object:
        state = parts.state(asked)
        name = asked.name(state.topics)
        topic = state.topics.get(name)
        if topic is None:
            raise not_found(
                f"There is no topic {name}; `barnabas topic create {name}` creates it, and new "
                f"topics appear here after {state.interval_s:.0f} s"
            )
        groups = [state.groups[each] for each in topic.groups if each in state.groups]
        return {
            **topic_row(topic, troubles_by_topic(state).get(name)),
            "taken_ms": state.taken_ms,
            "partition_list": [partition_row(each) for each in topic.partitions],
            "group_list": [reading_group(each, name) for each in groups],
            "history": series_json(parts.snapshots.source.topic_series(name), "records_per_s"),
        }

    return [get(parts, "/api/topics", listed), get(parts, "/api/topics/{name:path}", one)]


def _own_rows(state: ClusterState) -> list[Row]:
    return [row for row in topic_rows(state) if not row["is_internal"]]
