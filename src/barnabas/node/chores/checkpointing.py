"""Checkpoints the recovery point and the high watermark of each log, for a start after a crash.

With thousands of partitions even the list takes long, so it is made in steps. Each offset is valid
by itself: of a log that grows meanwhile, recovery checks more than it needs to.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.model.steps import Steps, Work
from barnabas.node.chores import resume_points

if TYPE_CHECKING:
    from barnabas.node.node import Node

LANE = "checkpoints"
UNITS = 5
"""The cost of one partition."""

Offsets = dict[TopicPartition, int]


class Points(NamedTuple):
    """Offsets by topic id and partition number: topic names are used again."""

    recovery_points: Offsets
    """Everything below these offsets was synced."""
    high_watermarks: Offsets
    """Everything below these offsets is known to be committed."""


def checkpoint(node: "Node") -> Steps[Callable[[], None]]:
    """Collect recovery points and take resume points; return the function that stores them."""
    work = Work()
    yield from resume_points.take(list(node.partitions.values()), work)
    points = yield from current_points(node, work)
    return lambda: store_points(node, points)


def current_points(node: "Node", work: Work) -> Steps[Points]:
    """Return the offsets of all partitions.

    Those of partitions that are not open yet are as the last process stored them.
    """
    left = node.local.left_behind
    found = Points(dict(left.recovery_points), dict(left.high_watermarks))
    for topic_id, replicas in list(node.by_topic_id.items()):
        name = topic_id.hex()
        for number, partition in list(replicas.items()):
            key = TopicPartition(name, number)
            found.recovery_points[key] = partition.log.flushed_offset
            found.high_watermarks[key] = partition.high_watermark
            if work.spend(UNITS):
                yield None
    return found


def store_points(node: "Node", points: Points) -> None:
    """Store the offsets."""
    node.checkpoints.write_recovery_points(points.recovery_points)
    node.checkpoints.write_high_watermarks(points.high_watermarks)
