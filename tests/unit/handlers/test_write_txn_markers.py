"""Tests WriteTxnMarkers: which markers are accepted, which are refused, and when it responds."""

from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.markers import EndMarker, parse_marker
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import TRANSACTIONAL, batches
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch

VERSIONS = (1, 2)


def write(talk: Dialogue, producer: int, epoch: int = 0, partition: int = 0) -> None:
    content = batch(producer=(producer, epoch, 0), attributes=TRANSACTIONAL)
    talk.node.find("a", partition).leader.append(memoryview(content), talk.now_ms)
    talk.settle()


def marker(
    producer: int,
    *partitions: int,
    topic: str = "a",
    epoch: int = 0,
    commit: bool = True,
    coordinator_epoch: int = 0,
    version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
    )


def codes(answer: Any) -> dict[int, dict[tuple[str, int], int]]:
    return {
        result.producer_id: {
            (topic.name, partition.partition_index): partition.error_code
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in answer.markers
    }


def ask(talk: Dialogue, *markers: WritableTxnMarker, version: int = 2) -> Any:
    return codes(talk.ask(WriteTxnMarkersRequest(markers=list(markers)), version))


@pytest.mark.parametrize("version", VERSIONS)
def test_markers_end_transactions(talk: Dialogue, version: int) -> None:
    create_topic(talk, "a", 2)
    for partition in (0, 1):
        write(talk, 7, partition=partition)
        write(talk, 8, partition=partition)
    found = ask(
        talk,
        marker(7, 0, 1, coordinator_epoch=4),
        marker(8, 1, commit=False),
        version=version,
    )
    assert found == {7: {("a", 0): 0, ("a", 1): 0}, 8: {("a", 1): 0}}
    first, second = talk.node.find("a", 0), talk.node.find("a", 1)
    assert (first.log.producers.open_transaction(8), first.last_stable_offset) == (1, 1)
    assert (second.log.producers.open_transaction(8), second.last_stable_offset) == (None, 4)
    stored = [(h, b) for h, b in batches(fetch(talk, "a").records) if h.is_control]
    assert [parse_marker(b, h) for h, b in stored] == [EndMarker(1, 4)]


def test_each_partition_is_answered_by_itself(talk: Dialogue) -> None:
    create_topic(talk, "a")
    found = ask(talk, marker(7, 0, 5), marker(7, 0, topic="none"), marker(8, 5))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == {
        7: {("a", 0): 0, ("a", 5): unknown, ("none", 0): unknown},
        8: {("a", 5): unknown},
    }


def test_late_markers_are_refused(talk: Dialogue) -> None:
    create_topic(talk, "a")
    write(talk, 7, epoch=3)
    assert ask(talk, marker(7, 0, epoch=2)) == {7: {("a", 0): ErrorCode.INVALID_PRODUCER_EPOCH}}
    same = marker(7, 0, epoch=3, version=2)
    assert ask(talk, same) == {7: {("a", 0): ErrorCode.INVALID_PRODUCER_EPOCH}}
    raised = marker(7, 0, epoch=4, version=2, coordinator_epoch=2)
    assert ask(talk, raised) == {7: {("a", 0): 0}}
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert ask(talk, marker(7, 0, epoch=4, coordinator_epoch=1)) == {7: {("a", 0): fenced}}


def test_version_1_knows_no_transaction_version(talk: Dialogue) -> None:
    create_topic(talk, "a")
    write(talk, 7, epoch=3)
    assert ask(talk, marker(7, 0, epoch=3, version=2), version=1) == {7: {("a", 0): 0}}


def test_the_answer_waits_until_every_marker_is_safe(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    create_topic(talk, "quick", config={"flush": "interval"})
    talk.hold_syncs = True
    exchange = talk.send(
        WriteTxnMarkersRequest(markers=[marker(7, 0, 1), marker(7, 0, topic="quick")])
    )
    assert exchange.waiting
    talk.release_syncs()
    assert codes(exchange.answer) == {7: {("a", 0): 0, ("a", 1): 0, ("quick", 0): 0}}


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_to_write(talk: Dialogue, version: int) -> None:
    assert ask(talk, version=version) == {}
    assert ask(talk, marker(7), version=version) == {}
