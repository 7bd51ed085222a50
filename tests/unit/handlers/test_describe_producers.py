"""Tests DescribeProducers: the producers of a partition, and their open transactions."""

from typing import Any

from barnabas.model.errors import ErrorCode
from barnabas.node.coordination.marker_writing import Marker, write_marker
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import batch, create_topic, produce


def ask(talk: Dialogue, topic: str, *partitions: int) -> list[Any]:
    wanted = TopicRequest(name=topic, partition_indexes=list(partitions))
    (answer,) = talk.ask(DescribeProducersRequest(topics=[wanted])).topics
    assert answer.name == topic
    assert [p.partition_index for p in answer.partitions] == list(partitions)
    found: list[Any] = answer.partitions
    return found


def producers(result: Any) -> dict[int, tuple[int, int, int, int, int]]:
    return {
        p.producer_id: (
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in result.active_producers
    }


def test_every_producer_of_a_partition(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    produce(talk, "a")
    produce(talk, "a", batch(3, producer=(5, 2, 0)))
    partition = talk.node.find("a", 0)
    content = batch(2, producer=(6, 1, 4), attributes=TRANSACTIONAL)
    partition.leader.append(memoryview(content), talk.now_ms)
    write_marker(talk.node, "a", 0, Marker(7, 8, True, 9), START_MS + 50)
    talk.settle()
    expected = {
        5: (2, 2, START_MS + 2, -1, -1),
        6: (1, 5, START_MS + 1, -1, 4),
        7: (8, -1, START_MS + 50, 9, -1),
    }
    first, second = ask(talk, "a", 0, 1)
    assert (first.error_code, producers(first)) == (0, expected)
    assert (second.error_code, producers(second)) == (0, {})
    talk.restart(crash=True)
    assert producers(ask(talk, "a", 0)[0]) == expected


def test_places_that_are_not_there(talk: Dialogue) -> None:
    create_topic(talk, "a")
    fine, unknown = ask(talk, "a", 0, 3)
    assert (fine.error_code, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert ask(talk, "none", 0)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (invalid,) = ask(talk, "../a", 0)
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'../a'" in invalid.error_message
