"""Builds requests about committed offsets in any version, and unwraps the responses."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.messages import offset_commit, offset_fetch, txn_offset_commit
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.talk.dialogue import Dialogue

TOPIC_IDS_FROM = 10
SEVERAL_FROM = 8

At = tuple[str | bytes, int]
"""A partition of a topic, by the topic's name or, in versions that have them, its id."""


class Position(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


def find_coordinator(talk: Dialogue, key: str = "g") -> None:
    """Create the internal topic."""
    answer = talk.ask(FindCoordinatorRequest(coordinator_keys=[key]))
    assert answer.coordinators[0].error_code == 0


def commit_request(
    group: str,
    positions: Mapping[At, int | Position],
    *,
    member: str = "",
    epoch: int = -1,
    instance: str | None = None,
    retention_ms: int = -1,
) -> offset_commit.OffsetCommitRequest:
    """Return a request to commit."""
    topics = [
        offset_commit.OffsetCommitRequestTopic(
            **_named(topic),
            partitions=[
                offset_commit.OffsetCommitRequestPartition(**_fields(partition, position))
                for partition, position in parts.items()
            ],
        )
        for topic, parts in _by_topic(positions).items()
    ]
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=topics,
    )


def transactional_request(
    group: str,
    positions: Mapping[At, int | Position],
    producer: tuple[int, int],
    *,
    transactional_id: str = "t",
    member: str = "",
    epoch: int = -1,
) -> txn_offset_commit.TxnOffsetCommitRequest:
    """Return a request to commit in a transaction."""
    topics = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=str(topic),
            partitions=[
                txn_offset_commit.TxnOffsetCommitRequestPartition(**_fields(partition, position))
                for partition, position in parts.items()
            ],
        )
        for topic, parts in _by_topic(positions).items()
    ]
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=epoch,
        member_id=member,
        topics=topics,
    )


def fetch_group(
    group: str, places: Iterable[At] | None, *, member: str | None = None, epoch: int = -1
) -> offset_fetch.OffsetFetchRequestGroup:
    """Return the part of the request for one group; without places, for all partitions."""
    topics = None
    if places is not None:
        topics = [
            offset_fetch.OffsetFetchRequestTopics(**_named(topic), partition_indexes=list(parts))
            for topic, parts in _by_topic(dict.fromkeys(places)).items()
        ]
    return offset_fetch.OffsetFetchRequestGroup(
        group_id=group, member_id=member, member_epoch=epoch, topics=topics
    )


def fetch_request(
    group: offset_fetch.OffsetFetchRequestGroup, version: int, *, stable: bool = False
) -> offset_fetch.OffsetFetchRequest:
    """Return a request for one group's offsets."""
    if version >= SEVERAL_FROM:
        return offset_fetch.OffsetFetchRequest(groups=[group], require_stable=stable)
    topics = None
    if group.topics is not None:
        topics = [
            offset_fetch.OffsetFetchRequestTopic(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in group.topics
        ]
    return offset_fetch.OffsetFetchRequest(
        group_id=group.group_id, topics=topics, require_stable=stable
    )


def delete_request(group: str, places: Iterable[tuple[str, int]]) -> OffsetDeleteRequest:
    """Return a request to delete offsets."""
    topics = [
        OffsetDeleteRequestTopic(
            name=str(topic),
            partitions=[OffsetDeleteRequestPartition(partition_index=part) for part in parts],
        )
        for topic, parts in _by_topic(dict.fromkeys(places)).items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def codes(answer: Any) -> dict[At, int]:
    """Return the error code of each partition in a response."""
    return {
        (_name_in(topic), part.partition_index): part.error_code
        for topic in answer.topics
        for part in topic.partitions
    }


def positions(answer: Any) -> dict[At, Position]:
    """Return the offsets in a response without errors."""
    assert not set(codes(answer).values()) - {0}
    return {
        (_name_in(topic), part.partition_index): Position(
            part.committed_offset, part.committed_leader_epoch, part.metadata
        )
        for topic in answer.topics
        for part in topic.partitions
    }


def committed(
    talk: Dialogue, group: str, places: Iterable[At] | None = None, version: int = 9
) -> dict[At, Position]:
    """Return the committed offsets of a group."""
    answer = talk.ask(fetch_request(fetch_group(group, places), version), version)
    only = answer.groups[0] if version >= SEVERAL_FROM else answer
    assert only.error_code == 0
    return positions(only)


def _name_in(topic: Any) -> str | bytes:
    topic_id: bytes = getattr(topic, "topic_id", NO_TOPIC_ID)
    name: str = topic.name
    return name or topic_id


def _named(topic: str | bytes) -> dict[str, Any]:
    return {"name": topic} if isinstance(topic, str) else {"topic_id": topic}


def _fields(partition: int, position: int | Position) -> dict[str, Any]:
    at = Position(position) if isinstance(position, int) else position
    return {
        "partition_index": partition,
        "committed_offset": at.offset,
        "committed_leader_epoch": at.leader_epoch,
        "committed_metadata": at.metadata,
    }


def _by_topic(places: Mapping[At, Any]) -> dict[str | bytes, dict[int, Any]]:
    topics: dict[str | bytes, dict[int, Any]] = {}
    for (topic, partition), value in places.items():
        topics.setdefault(topic, {})[partition] = value
    return topics
