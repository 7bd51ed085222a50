"""Tests ListOffsets by time, if that takes more than an event."""

from typing import Any

import pytest

from barnabas.handlers.produce_fetch import list_offsets
from barnabas.model.errors import ErrorCode
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.records import Record, build
from tests.support.talk.batches import make_batch
from tests.support.talk.dialogue import START_MS, Dialogue, Exchange
from tests.support.talk.requests import (
    create_topic,
    delete_topic,
    list_offset,
    produce,
)

LATEST = -1
RECORDS = 5_000
LAST_MS = START_MS + RECORDS - 1


@pytest.fixture(scope="module")
def large() -> bytes:
    """Return a batch of many records, a millisecond apart."""
    return bytes(build([Record(n, START_MS + n, None, b"value") for n in range(RECORDS)]))


def ask_for(talk: Dialogue, partitions: int, timestamp: int, *, version: int = 11) -> Exchange:
    wanted = [
        ListOffsetsPartition(partition_index=n, timestamp=timestamp) for n in range(partitions)
    ]
    topic = ListOffsetsTopic(name="a", partitions=wanted)
    return talk.send(ListOffsetsRequest(topics=[topic]), version)


def answers(exchange: Exchange) -> list[Any]:
    (topic,) = exchange.answer.topics
    return list(topic.partitions)


def test_a_look_up_in_many_partitions_lets_others_have_turns(talk: Dialogue, large: bytes) -> None:
    create_topic(talk, "a", 10)
    for number in range(10):
        produce(talk, "a", large, partition=number)
    talk.hold_scans = True
    exchange = ask_for(talk, 10, LAST_MS)
    events = 0
    while talk.step_scan():
        events += 1
        assert exchange.waiting
        assert list_offset(talk, "a", LATEST) == (0, RECORDS, -1)  # another client is served
    assert events >= 20
    assert [(r.error_code, r.offset, r.timestamp) for r in answers(exchange)] == [
        (0, RECORDS - 1, LAST_MS)
    ] * 10


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_large_batch_is_not_unpacked_within_an_event(talk: Dialogue, codec: Codec) -> None:
    create_topic(talk, "a")
    content = [Record(n, START_MS + n, None, b"value" * 10) for n in range(RECORDS)]
    produce(talk, "a", build(content, codec=codec))
    talk.hold_scans = True
    exchange = ask_for(talk, 1, START_MS + 1)
    assert exchange.waiting
    talk.release_scans()
    assert [r.offset for r in answers(exchange)] == [1]


def deleted_meanwhile(talk: Dialogue, large: bytes) -> Exchange:
    """Look up a time in a topic that is deleted while the scan runs."""
    create_topic(talk, "a")
    produce(talk, "a", large)
    talk.hold_scans = True
    exchange = ask_for(talk, 1, LAST_MS)
    talk.step_scan()
    delete_topic(talk, "a")
    return exchange


def test_a_topic_that_is_deleted_meanwhile_is_not_known_any_more(
    talk: Dialogue, large: bytes
) -> None:
    exchange = deleted_meanwhile(talk, large)
    talk.release_scans()
    assert [r.error_code for r in answers(exchange)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_topic_that_is_recreated_meanwhile_is_examined_again(
    talk: Dialogue, large: bytes
) -> None:
    exchange = deleted_meanwhile(talk, large)
    create_topic(talk, "a")
    produce(talk, "a", bytes(make_batch(3, timestamp=LAST_MS + 5)))
    talk.release_scans()
    assert [(r.error_code, r.offset, r.timestamp) for r in answers(exchange)] == [
        (0, 0, LAST_MS + 5)
    ]


def test_a_client_that_is_gone_ends_its_look_up(talk: Dialogue, large: bytes) -> None:
    create_topic(talk, "a")
    produce(talk, "a", large)
    talk.hold_scans = True
    exchange = ask_for(talk, 1, LAST_MS)
    assert talk.node.looked_up == 1
    exchange.abandon()
    assert talk.step_scan() is False
    assert talk.node.looked_up == 0


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (4, ErrorCode.LEADER_NOT_AVAILABLE),
        (5, ErrorCode.OFFSET_NOT_AVAILABLE),
        (11, ErrorCode.OFFSET_NOT_AVAILABLE),
    ],
)
def test_the_client_gets_a_retriable_error_if_too_many_requests_wait(
    talk: Dialogue, large: bytes, monkeypatch: pytest.MonkeyPatch, version: int, code: int
) -> None:
    monkeypatch.setattr(list_offsets, "WAITING_MAX", 3)
    create_topic(talk, "a", 2)
    for number in range(2):
        produce(talk, "a", large, partition=number)
    talk.hold_scans = True
    first = ask_for(talk, 2, LAST_MS)
    refused = ask_for(talk, 2, LAST_MS, version=version)
    assert [r.error_code for r in answers(refused)] == [code, code]
    assert [r.error_code for r in answers(ask_for(talk, 2, LATEST))] == [0, 0]
    talk.release_scans()
    assert [r.offset for r in answers(first)] == [RECORDS - 1] * 2
    again = ask_for(talk, 2, LAST_MS)
    assert [r.offset for r in answers(again)] == [RECORDS - 1] * 2
