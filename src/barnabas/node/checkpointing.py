"""What a start after a crash begins with: up to where each log is safe, and was committed.

With thousands of partitions even the list takes long, so it is made in steps. Each number stands
for itself: a log that moves on meanwhile is only checked further than it need be.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.model.steps import Steps, Work
from barnabas.node import resume_points

if TYPE_CHECKING:
    from barnabas.node.node import Node

LANE = "checkpoints"
UNITS = 5
"""What it costs to take note of a partition."""

Offsets = dict[TopicPartition, int]


class Points(NamedTuple):
    """Offsets by the ids of topics and the numbers of partitions: names are used again."""

    recovery_points: Offsets
    """Below these, everything was synced."""
    high_watermarks: Offsets
    """Below these, everything is known to be committed."""


def checkpoint(node: "Node") -> Steps[Callable[[], None]]:
    """Note where each log is safe and where recovery can begin; return what stores it."""
    work = Work()
    yield from resume_points.take(list(node.partitions.values()), work)
    points = yield from current_points(node, work)
    return lambda: store_points(node, points)


def current_points(node: "Node", work: Work) -> Steps[Points]:
    """Return the offsets of all partitions.

    Those that were not opened yet are still where the last process left them.
    """
    left = node.local.left_behind
    found = Points(dict(left.recovery_points), dict(left.high_watermarks))
    for topic_id, copies in list(node.by_topic_id.items()):
        name = topic_id.hex()
        for number, partition in list(copies.items()):
            key = TopicPartition(name, number)
            found.recovery_points[key] = partition.log.flushed_offset
            found.high_watermarks[key] = partition.high_watermark
            if work.spend(UNITS):
                yield None
    return found


def store_points(node: "Node", points: Points) -> None:
    """Write the offsets down."""
    node.checkpoints.write_recovery_points(points.recovery_points)
    node.checkpoints.write_high_watermarks(points.high_watermarks)
