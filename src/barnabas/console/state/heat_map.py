"""`/api/heatmap`: partitions and brokers as a grid, the hottest cells first.

Values are the size of a replica in bytes, the records that arrive each second, or the largest lag
of any group. Followers have the value of their leader.
"""

import heapq
from collections.abc import Callable, Mapping

from starlette.routing import Route

from barnabas.admin.scopes import Place
from barnabas.console.console_endpoints import Asked, ConsoleParts, get
from barnabas.console.web.json_answers import number
from barnabas.console.web.problems import bad_input
from barnabas.monitor.states import ClusterState, PartitionState

CELLS_MAX = 5_000
KINDS = ("size", "records", "lag")

Value = Callable[[PartitionState], float | None]


def heat_map_routes(parts: ConsoleParts) -> list[Route]:
    """Return the route of the heat map."""

    def heat_map(asked: Asked) -> object:
        by = asked.query.get("by", "size")
        if by not in KINDS:
            raise bad_input(f"by {by[:40]!r} is none of {', '.join(KINDS)}")
        return heat_map_json(parts.state(asked), by)

    return [get(parts, "/api/heatmap", heat_map)]


def heat_map_json(state: ClusterState, by: str) -> dict[str, object]:
    """Return the hottest cells of the grid, with the topics and brokers that they name."""
    value = _value(state, by)
    partitions = (each for topic in state.topics.values() for each in topic.partitions)
    cells = (
        (worth, each.topic, broker, each.number, broker == each.leader)
        for each in partitions
        if (worth := value(each)) is not None
        for broker in each.replicas
    )
    hottest = heapq.nlargest(CELLS_MAX, cells)
    topics = sorted({topic for _, topic, *_ in hottest})
    known = {each.id for each in state.overview.brokers}
    brokers = sorted(known | {broker for _, _, broker, *_ in hottest})
    topic_index = {name: index for index, name in enumerate(topics)}
    broker_index = {broker: index for index, broker in enumerate(brokers)}
    return {
        "taken_ms": state.taken_ms,
        "by": by,
        "topics": topics,
        "brokers": brokers,
        "cells": [
            [topic_index[topic], broker_index[broker], partition, number(worth), is_leader]
            for worth, topic, broker, partition, is_leader in hottest
        ],
    }


def _value(state: ClusterState, by: str) -> Value:
    if by == "size":
        return lambda each: each.size_bytes
    if by == "records":
        return lambda each: each.records_per_s
    lags = _largest_lags(state)
    return lambda each: lags.get((each.topic, each.number))


def _largest_lags(state: ClusterState) -> Mapping[Place, int]:
    found: dict[Place, int] = {}
    for group in state.groups.values():
        for each in group.partitions:
            if each.lag is not None:
                place = each.topic, each.number
                found[place] = max(each.lag, found.get(place, 0))
    return found
