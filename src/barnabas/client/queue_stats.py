"""How full a queue is."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.link_failures import converted
from barnabas.model.errors import ErrorCode
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.share_group_requests import (
    EARLIEST,
    LATEST,
    Progress,
    describe,
    log_offsets,
    start_offsets,
)
from barnabas.wire.wire_failures import RefusedError

UNKNOWN_PROGRESS = Progress(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStats:
    """One partition of a queue."""

    partition: int
    start: int
    """The first offset that is not done; the first of the log before any member came."""
    end: int
    """The offset of the next message."""
    depth: int
    """How many messages are not done, those in flight included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """A queue as one group sees it."""

    topic: str
    group: str
    state: str
    """The state of the group; "Dead" before any member came."""
    members: int
    depth: int
    """How many messages are not done, those in flight included."""
    in_flight: int | None
    """How many messages members hold; None, since no Kafka API says so."""
    partitions: tuple[PartitionStats, ...]


def queue_stats(properties: Mapping[str, object], topic: str, group: str) -> QueueStats:
    """Ask the brokers."""
    with converted(), Wire(properties) as wire:
        ends = log_offsets(wire, topic, LATEST)
        firsts = log_offsets(wire, topic, EARLIEST)
        state, members, progress = "Dead", 0, {}
        try:
            found = describe(wire, group)
            state, members = found.group_state, len(found.members)
            progress = start_offsets(wire, group, {topic: list(ends)})
        except RefusedError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
    parts = tuple(
        _partition(number, firsts[number], end, progress.get((topic, number), UNKNOWN_PROGRESS))
        for number, end in ends.items()
    )
    return QueueStats(
        topic=topic,
        group=group,
        state=state,
        members=members,
        depth=sum(each.depth for each in parts),
        in_flight=None,
        partitions=parts,
    )


def _partition(number: int, first: int, end: int, progress: Progress) -> PartitionStats:
    start = first if progress.start is None else max(first, progress.start)
    depth = end - start if progress.lag is None else progress.lag
    return PartitionStats(partition=number, start=start, end=end, depth=max(0, depth))
