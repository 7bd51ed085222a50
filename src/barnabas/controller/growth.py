"""Adds missing replicas to topics that were created while too few brokers were up.

Such a topic gets replicas on the brokers that are up, and its wanted replication factor is recorded
(`TopicImage.replication_factor`). The active controller adds the missing replicas when brokers come
back, as a reassignment does (`reassignment.moved`).

    created with too few --a broker is unfenced--> growing --all in sync--> factor cleared (0)

The recorded factor is cleared when every partition has it. It is also cleared when an operator's
reassignment gives a partition another number of replicas below it, or cancels its growth: the
operator's decision is the newer one. After that the controller adds no replicas by itself.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.controller.placement import circle_of, live_brokers, racks_of, with_more
from barnabas.controller.reassignment import moved, settled
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.image import NO_LEADER, Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import (
    MetadataRecord,
    PartitionChanged,
    ReplicationFactorChanged,
)

PARTITIONS_AT_A_TIME = 50
"""How many partitions grow at the same time, so that replication does not slow clients down."""


class Factor(NamedTuple):
    """How many replicas a new topic gets now, and how many it gets later (0: the same)."""

    placed: int
    wanted: int


def factor_for(image: Image, wanted: int) -> Factor:
    """Return how many replicas a new topic gets, given the number it should have."""
    placed = min(wanted, max(1, len(live_brokers(image))))
    remembered = image.feature_level >= WANTED_FACTOR_LEVEL and wanted > placed
    return Factor(placed, wanted if remembered else 0)


def grow(
    image: Image, defaults: Mapping[str, str], at_a_time: int = PARTITIONS_AT_A_TIME
) -> list[MetadataRecord]:
    """Start to add missing replicas, within the limit of partitions that grow at a time."""
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
    """Return how many partitions of a topic have replicas that catch up on live brokers."""
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
    """Whether a partition is being reassigned, or has no leader to replicate from."""
    return bool(partition.adding or partition.removing) or partition.leader == NO_LEADER


def _give_lead(target: list[int], present: int, led: Counter[int]) -> None:
    """Make a new replica the preferred leader if its broker leads fewer of the topic."""
    first, added = target[0], target[present:]
    fewest = min(added, key=led.__getitem__)
    if led[first] - led[fewest] > 1:
        target.remove(fewest)
        target.insert(0, fewest)
        led[first] -= 1
        led[fewest] += 1
