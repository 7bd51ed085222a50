"""Finds the end offsets of partitions: asks their leaders for them, as a client would."""

from collections.abc import Iterable, Mapping
from functools import partial

from barnabas.handlers.answers import all_of
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LANE = "end offsets"
CONSUMER = -1
LATEST = -1
NO_LEADER = -1

EndOffsets = Mapping[TopicPartition, int | ErrorCode]
"""The end offset of each partition, or the error code with which its leader refuses."""


def end_offsets(node: Node, partitions: Iterable[TopicPartition]) -> Pending[EndOffsets]:
    """Return the offsets after the last records that consumers can read."""
    found: dict[TopicPartition, int | ErrorCode] = {}
    by_leader: dict[NodeId, list[TopicPartition]] = {}
    for place in partitions:
        leader = _leader_of(node, place)
        if leader is None or leader == NO_LEADER:
            found[place] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            by_leader.setdefault(leader, []).append(place)
    asked: list[EndOffsets | Pending[EndOffsets]] = [
        _ask(node, leader, places) for leader, places in by_leader.items()
    ]
    return all_of(asked).map(partial(_joined, found))


def _leader_of(node: Node, place: TopicPartition) -> NodeId | None:
    topic = node.image.topics.get(place.topic)
    if topic is None or place.partition >= len(topic.partitions):
        return None
    return NodeId(topic.partitions[place.partition].leader)


def _ask(node: Node, leader: NodeId, places: list[TopicPartition]) -> Pending[EndOffsets]:
    topics: dict[str, ListOffsetsTopic] = {}
    for name, number in places:
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsPartition(partition_index=number, timestamp=LATEST))
    request = ListOffsetsRequest(replica_id=CONSUMER, topics=list(topics.values()))
    answer: Pending[EndOffsets] = Pending()

    def lost(error: Exception) -> None:
        code = error.code if isinstance(error, ApiError) else ErrorCode.NETWORK_EXCEPTION
        answer.complete(dict.fromkeys(places, code))

    node.peers.ask(leader, request, lane=LANE).map(_offsets_in).when_done(answer.complete, lost)
    return answer


def _offsets_in(response: ListOffsetsResponse) -> EndOffsets:
    return {
        TopicPartition(topic.name, part.partition_index): (
            ErrorCode(part.error_code) if part.error_code else part.offset
        )
        for topic in response.topics
        for part in topic.partitions
    }


def _joined(found: EndOffsets, more: list[EndOffsets]) -> EndOffsets:
    joined = dict(found)
    for offsets in more:
        joined.update(offsets)
    return joined
