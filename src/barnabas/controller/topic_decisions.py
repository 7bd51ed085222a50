"""Decides on topic requests: create, add partitions, delete.

Each function reads the image and returns the records that a request needs, or raises the `ApiError`
that refuses it. The image itself does not change here.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from barnabas.controller.placement import circle_of, spread
from barnabas.metadata import topic_config
from barnabas.metadata.image import Image, metric_name
from barnabas.metadata.metadata_records import PartitionsAdded, TopicCreated, TopicDeleted
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId

NAME_LENGTH_MAX = 249
NAME = re.compile(r"[a-zA-Z0-9._-]+")
PARTITIONS_MAX = 100_000
METADATA_TOPIC = "__cluster_metadata"
"""The quorum's own log; no topic may have its name."""
_NO_RACKS: Mapping[int, str] = MappingProxyType({})


def check_name(name: str) -> None:
    """Refuse a name that is not valid for a topic or for its folder."""
    if not name or name in {".", ".."}:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic cannot be called {name!r}; choose a name"
        )
    if len(name) > NAME_LENGTH_MAX:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"a topic's name has at most {NAME_LENGTH_MAX} characters, not {len(name)}",
        )
    if NAME.fullmatch(name) is None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"a topic's name is made of letters, digits, '.', '_' and '-'; {name!r} is not",
        )


def create_topic(
    image: Image,
    name: str,
    replicas: Sequence[Sequence[int]],
    config: Mapping[str, str],
    defaults: Mapping[str, str],
    rng: Random,
    *,
    replication_factor: int = 0,
) -> TopicCreated:
    """Return the record that creates a topic with the given placement.

    A replication factor says how many replicas it should get later; 0 means those it gets now.
    """
    check_name(name)
    if name == METADATA_TOPIC:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is the brokers' own log")
    if name in image.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
    # `a.b` and `a_b` would collide in metric names, as in Kafka.
    other = image.metric_names.get(metric_name(name))
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {name!r} collides with {other!r}: '.' and '_' count as the same",
        )
    topic_config.resolve(config, defaults)
    return TopicCreated(
        name=name,
        topic_id=rng.randbytes(16).hex(),
        replicas=[list(partition) for partition in replicas],
        config=dict(config),
        replication_factor=replication_factor,
    )


def place(
    partitions: int,
    replication_factor: int,
    nodes: Sequence[NodeId],
    racks: Mapping[int, str] = _NO_RACKS,
    start: int = 0,
) -> list[list[int]]:
    """Spread replicas evenly over the brokers, starting at one that the caller draws."""
    if replication_factor > 0 and not 0 < partitions <= PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}",
        )
    if not 0 < replication_factor <= len(nodes):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs that many brokers; "
            f"there {'is' if len(nodes) == 1 else 'are'} {len(nodes)}",
        )
    return spread(partitions, replication_factor, circle_of(nodes, racks), racks, start)


def check_placement(assignments: Mapping[int, Sequence[int]], nodes: Sequence[NodeId]) -> None:
    """Refuse a client's placement that has gaps, duplicates or unknown brokers."""
    if sorted(assignments) != list(range(len(assignments))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps"
        )
    for partition, replicas in assignments.items():
        known = all(replica in nodes for replica in replicas)
        if not replicas or not known or len(set(replicas)) != len(replicas):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} needs replicas among the brokers {list(nodes)}, each once",
            )


def add_partitions(
    image: Image,
    name: str,
    total: int,
    placement: Sequence[Sequence[int]] | None,
    nodes: Sequence[NodeId],
    racks: Mapping[int, str] = _NO_RACKS,
) -> PartitionsAdded:
    """Return the record that grows a topic to a number of partitions.

    Without a placement from the client the new partitions are spread over the nodes.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    present = len(topic.partitions)
    if total <= present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {name!r} has {present} partitions; it can only grow, not become {total}",
        )
    if placement is not None:
        if len(placement) != total - present:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{total - present} partitions are added but {len(placement)} are placed",
            )
        check_placement(dict(enumerate(placement)), nodes)
        return PartitionsAdded(topic_id=topic.topic_id.hex(), replicas=[list(r) for r in placement])
    first = topic.partitions[0]
    replica_count = len(first.replicas) - len(first.adding)
    if topic.replication_factor:  # the controller adds the missing replicas later
        replica_count = min(topic.replication_factor, max(1, len(nodes)))
    circle = circle_of(nodes, racks)
    # Continue the circle from the broker where the topic started, if that broker is known.
    start = circle.index(first.replicas[0]) if first.replicas[0] in circle else 0
    replicas = place(total, replica_count, nodes, racks, start)[present:]
    return PartitionsAdded(topic_id=topic.topic_id.hex(), replicas=replicas)


def delete_topic(image: Image, name: str) -> TopicDeleted:
    """Return the record that deletes a topic."""
    topic = image.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return TopicDeleted(topic_id=topic.topic_id.hex())
