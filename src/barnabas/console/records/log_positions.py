"""Offsets of partitions: their first and last, and those at a time, asked of their leaders."""

from collections.abc import Iterable, Mapping

from barnabas.admin.topic_requests import leaders_of
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.cluster_wire import Node, Wire, require

LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
TIMEOUT_MS = 10_000
PASSING = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
}
"""Codes of partitions whose leader is away for a moment: the others are answered all the same."""


def log_ranges(
    wire: Wire, topic: str, partitions: Iterable[int], isolation: int = READ_UNCOMMITTED
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the first and the next offset of partitions that have a leader."""
    wanted = list(partitions)
    leaders = leaders_of(wire, topic)
    starts = offsets_at(wire, topic, dict.fromkeys(wanted, EARLIEST), leaders, isolation)
    ends = offsets_at(wire, topic, dict.fromkeys(wanted, LATEST), leaders, isolation)
    both = starts.keys() & ends.keys()
    return {each: starts[each] for each in both}, {each: ends[each] for each in both}


def offsets_at(
    wire: Wire,
    topic: str,
    times: Mapping[int, int],
    leaders: Mapping[int, Node | None],
    isolation: int = READ_UNCOMMITTED,
) -> dict[int, int]:
    """Return the first offset of each partition at or after a time; -1 if all are older."""
    by_leader: dict[Node, list[ListOffsetsPartition]] = {}
    for partition, timestamp in times.items():
        leader = leaders.get(partition)
        if leader is not None:
            wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            by_leader.setdefault(leader, []).append(wanted)
    found: dict[int, int] = {}
    for node, asked in by_leader.items():
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=topic, partitions=asked)],
            timeout_ms=TIMEOUT_MS,
        )
        for each in wire.ask(node, request, ListOffsetsResponse).topics[0].partitions:
            if each.error_code in PASSING:
                continue
            require(each.error_code, f"The offsets of {topic}-{each.partition_index}")
            found[each.partition_index] = each.offset
    return found
