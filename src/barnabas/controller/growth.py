"""Growing topics to the replication factor that they were to have.

A topic that is made on demand while brokers are down gets replicas on the brokers that are up,
and the factor it was to have is recorded (`TopicImage.replication_factor`). The active controller
adds the missing replicas once brokers are back, as a reassignment does (`reassignment.moved`).

    made with fewer replicas --a broker is let in--> growing --all in sync--> factor forgotten (0)

The recorded factor is forgotten as soon as every partition has it, and also when an operator's
reassignment gives a partition another number of replicas below it, or cancels its growth: the
operator's decision is the newer one. After that the controller adds nothing by itself.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.controller.placement import circle_of, live_brokers, racks_of, with_more
from barnabas.controller.reassignment import moved, settled
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.image import NO_LEADER, Image, PartitionImage, TopicImage
from barnabas.metadata.records import (
    MetadataRecord,
    PartitionChanged,
    ReplicationFactorChanged,
)

PARTITIONS_AT_A_TIME = 50
"""How many partitions grow at the same time, so that copying does not starve the clients."""


class Factor(NamedTuple):
    """How many replicas a new topic gets now, and how many it is to have (0: no more)."""

    placed: int
    wanted: int


def factor_for(image: Image, copies: int) -> Factor:
    """Return with how many replicas a topic is made that is to have so many when it can."""
    placed = min(copies, max(1, len(live_brokers(image))))
    remembered = image.feature_level >= WANTED_FACTOR_LEVEL and copies > placed
    return Factor(placed, copies if remembered else 0)


def grow(
    image: Image, defaults: Mapping[str, str], at_a_time: int = PARTITIONS_AT_A_TIME
) -> list[MetadataRecord]:
    """Start to add missing replicas, to no more partitions than may grow at the same time."""
    waiting = [topic for topic in image.topics.values() if topic.replication_factor]
    room = at_a_time - sum(_growing(image, topic) for topic in waiting)
    records: list[MetadataRecord] = []
    for topic in waiting:
        if _has_its_factor(topic):
            records.append(factor_reached(topic))
        elif room > 0:
            started = _grow_topic(image, topic, defaults, room)
            records += started
            room -= len(started)
    return records


def factor_reached(topic: TopicImage) -> ReplicationFactorChanged:
    """Return the record after which the controller adds no replicas to a topic by itself."""
    return ReplicationFactorChanged(topic_id=topic.topic_id.hex())


def _has_its_factor(topic: TopicImage) -> bool:
    return all(
        len(each.replicas) >= topic.replication_factor and not each.adding and not each.removing
        for each in topic.partitions
    )


def _growing(image: Image, topic: TopicImage) -> int:
    """Return how many partitions of a topic are being copied; a broker that is down copies none."""
    return sum(
        bool(each.adding) and all(image.is_active(node) for node in each.adding)
        for each in topic.partitions
    )


def _grow_topic(
    image: Image, topic: TopicImage, defaults: Mapping[str, str], room: int
) -> list[PartitionChanged]:
    racks = racks_of(image)
    circle = circle_of(live_brokers(image), racks)
    held = Counter(node for each in topic.partitions for node in each.replicas)
    led = Counter(each.replicas[0] for each in topic.partitions)
    records: list[PartitionChanged] = []
    for number, before in enumerate(topic.partitions):
        if len(records) == room:
            break
        if _is_busy(before) or len(before.replicas) >= topic.replication_factor:
            continue
        target = with_more(before.replicas, topic.replication_factor, circle, racks, held)
        if len(target) == len(before.replicas):
            continue
        _give_lead(target, len(before.replicas), led)
        records += settled(image, topic, number, moved(before, target), defaults)
    return records


def _is_busy(partition: PartitionImage) -> bool:
    """Tell whether a partition is being moved, or has no leader to copy from."""
    return bool(partition.adding or partition.removing) or partition.leader == NO_LEADER


def _give_lead(target: list[int], present: int, led: Counter[int]) -> None:
    """Make a new replica the preferred leader where its broker leads fewer of the topic."""
    first, added = target[0], target[present:]
    fewest = min(added, key=led.__getitem__)
    if led[first] - led[fewest] > 1:
        target.remove(fewest)
        target.insert(0, fewest)
        led[first] -= 1
        led[fewest] += 1
