"""Tests Produce to very many partitions: some batches at once, the rest in later events."""

from typing import Any

import pytest

from barnabas.handlers.produce_fetch.produce import BATCHES_AN_EVENT
from barnabas.node.partitions import batch_checking as checking
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch, create_topic, produce

UNKNOWN_TOPIC_OR_PARTITION, INVALID_RECORD = 3, 87
COUNT = BATCHES_AN_EVENT + 50


def send(talk: Dialogue, sequence: int, indexes: range = range(COUNT), acks: int = -1) -> Exchange:
    """Send a batch of one record to each partition, from an idempotent producer."""
    content = bytes(batch(1, producer=(7, 0, sequence)))
    data = [PartitionProduceData(index=index, records=content) for index in indexes]
    topic = TopicProduceData(name="a", partition_data=data)
    return talk.send(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), 9)


def results_of(exchange: Exchange) -> list[Any]:
    ((results),) = [topic.partition_responses for topic in exchange.answer.responses]
    return list(results)


def written(talk: Dialogue) -> list[int]:
    return [talk.node.find("a", index).log.end_offset for index in range(COUNT)]


@pytest.fixture
def parts(talk: Dialogue) -> Dialogue:
    create_topic(talk, "a", partitions=COUNT)
    talk.hold_scans = True
    return talk


@pytest.mark.parametrize("acks", [1, -1])
def test_an_event_appends_to_so_many_partitions_and_no_more(parts: Dialogue, acks: int) -> None:
    exchange = send(parts, 0, acks=acks)
    assert written(parts) == [1] * BATCHES_AN_EVENT + [0] * 50
    assert exchange.waiting
    assert len(parts.scans) == 50
    parts.release_scans()
    assert [(r.index, r.error_code, r.base_offset) for r in results_of(exchange)] == [
        (index, 0, 0) for index in range(COUNT)
    ]
    assert parts.node.checking.waiting_bytes == 0


def test_the_next_request_comes_behind_what_still_waits(parts: Dialogue) -> None:
    first, second = send(parts, 0), send(parts, 1)
    last = COUNT - 1
    parts.fast_path = True
    single = send(parts, 2, range(last, COUNT))
    assert [each.waiting for each in (first, second, single)] == [True] * 3
    parts.release_scans()
    assert [r.base_offset for r in results_of(second)] == [1] * COUNT
    assert [(r.error_code, r.base_offset) for r in results_of(single)] == [(0, 2)]
    assert written(parts) == [2] * last + [3]


def test_a_request_that_is_sent_again_is_appended_once(parts: Dialogue) -> None:
    again = [send(parts, 0), send(parts, 0)]
    parts.release_scans()
    for exchange in again:
        assert [(r.error_code, r.base_offset) for r in results_of(exchange)] == [(0, 0)] * COUNT
    assert written(parts) == [1] * COUNT


def test_refusals_are_in_their_places(parts: Dialogue) -> None:
    content = bytes(batch(1))
    data = [PartitionProduceData(index=index, records=content) for index in range(COUNT)]
    data[-3] = PartitionProduceData(index=COUNT + 7, records=content)
    data[-2] = PartitionProduceData(index=COUNT - 2, records=None)
    data[-1] = PartitionProduceData(index=COUNT - 1, records=b"short")
    topic = TopicProduceData(name="a", partition_data=data)
    exchange = parts.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)
    parts.release_scans()
    *taken, unknown, empty, short = results_of(exchange)
    assert [result.error_code for result in taken] == [0] * (COUNT - 3)
    assert (unknown.index, unknown.error_code) == (COUNT + 7, UNKNOWN_TOPIC_OR_PARTITION)
    assert (empty.error_code, short.error_code) == (INVALID_RECORD, INVALID_RECORD)


def test_batches_for_which_there_is_no_room_to_wait_are_appended_at_once(
    parts: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(batch(1, producer=(7, 0, 0)))
    monkeypatch.setattr(checking, "WAITING_BYTES_MAX", 10 * size)
    exchange = send(parts, 0)
    assert sum(written(parts)) == COUNT - 10
    parts.release_scans()
    assert [result.error_code for result in results_of(exchange)] == [0] * COUNT


def test_other_clients_have_their_turn_between(parts: Dialogue) -> None:
    exchange = send(parts, 0)
    assert produce(parts, "a", batch(1), partition=0).base_offset == 1
    assert exchange.waiting
    while exchange.waiting:
        before = sum(written(parts))
        parts.step_scan()
        assert sum(written(parts)) - before <= 1
