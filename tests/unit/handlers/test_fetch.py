"""Tests Fetch without sessions: which batches come, how many, and how long a response waits."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages import fetch as messages
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.records import batches
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch, create_topic, fetch, fetch_request, produce, read

SIZE = len(batch(10))
"""The number of records in each batch of the topic that most tests read."""


@pytest.fixture
def filled(talk: Dialogue) -> Dialogue:
    """Five batches of ten records in topic `a`."""
    create_topic(talk, "a")
    for _ in range(5):
        produce(talk, "a", batch(10))
    return talk


def bases(result: Any) -> list[int]:
    return [header.base_offset for header, _ in batches(result.records)]


def result_of(exchange: Exchange) -> Any:
    ((result,),) = [topic.partitions for topic in exchange.answer.responses]
    return result


def test_everything_from_the_beginning(filled: Dialogue) -> None:
    result = fetch(filled, "a")
    assert bases(result) == [0, 10, 20, 30, 40]
    assert [record.offset for record in read(result.records)] == list(range(50))
    assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (
        50,
        50,
        0,
    )


@pytest.mark.parametrize(("offset", "first"), [(10, 10), (13, 10), (19, 10), (49, 40)])
def test_an_offset_inside_a_batch_brings_the_whole_batch(
    filled: Dialogue, offset: int, first: int
) -> None:
    assert bases(fetch(filled, "a", offset))[0] == first


def test_the_end_has_nothing_and_beyond_is_an_error(filled: Dialogue) -> None:
    at_end = fetch(filled, "a", 50)
    assert (at_end.error_code, at_end.records) == (0, b"")
    beyond = fetch(filled, "a", 51)
    assert (beyond.error_code, beyond.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    assert (beyond.high_watermark, beyond.log_start_offset) == (-1, -1)  # as in Kafka
    assert (at_end.aborted_transactions, beyond.aborted_transactions) == (None, None)
    assert fetch(filled, "none").aborted_transactions == []
    assert fetch(filled, "a", -1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("partition_max", "count"),
    [(0, 1), (1, 1), (SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (10 * SIZE, 5)],
)
def test_whole_batches_up_to_the_limit_and_at_least_one(
    filled: Dialogue, partition_max: int, count: int
) -> None:
    assert len(bases(fetch(filled, "a", partition_max_bytes=partition_max))) == count
    assert len(bases(fetch(filled, "a", max_bytes=partition_max))) == count


def test_limits_hold_after_a_restart_too(filled: Dialogue) -> None:
    filled.restart()
    assert len(bases(fetch(filled, "a", partition_max_bytes=1))) == 1
    assert bases(fetch(filled, "a", 13, partition_max_bytes=1)) == [10]
    assert bases(fetch(filled, "a")) == [0, 10, 20, 30, 40]


def test_the_limit_is_for_all_partitions_together(talk: Dialogue) -> None:
    create_topic(talk, "a", 3)
    for partition in range(3):
        produce(talk, "a", batch(10), partition=partition)
    request = fetch_request("a", max_bytes=SIZE + 1)
    request.topics[0].partitions = [
        messages.FetchPartition(partition=number, partition_max_bytes=1 << 20)
        for number in (2, 0, 1)
    ]
    (topic,) = talk.ask(request, 12).responses
    assert [(p.partition_index, len(p.records)) for p in topic.partitions] == [
        (2, SIZE),
        (0, 0),
        (1, 0),
    ]
    assert all(p.high_watermark == 10 for p in topic.partitions)


def test_unknown_places(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    assert fetch(talk, "none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(talk, b"n" * 16).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    request = fetch_request(topic_id, partition=7)
    assert result_of(talk.send(request)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_leader_epochs_are_checked(filled: Dialogue) -> None:
    filled.restart()
    codes = [fetch(filled, "a", leader_epoch=epoch).error_code for epoch in (-1, 0, 1, 2)]
    assert codes == [0, 74, 0, 75]


def test_read_committed_reads_everything_while_nothing_is_uncommitted(filled: Dialogue) -> None:
    committed = fetch(filled, "a", isolation_level=1)
    assert bases(committed) == [0, 10, 20, 30, 40]
    assert committed.aborted_transactions == []
    assert fetch(filled, "a").aborted_transactions is None


def test_a_fetch_waits_for_records(filled: Dialogue) -> None:
    exchange = filled.send(fetch_request("a", 50, max_wait_ms=500), 12)
    filled.pass_time(499)
    assert exchange.waiting
    produce(filled, "a")
    assert bases(result_of(exchange)) == [50]


def test_a_fetch_waits_no_longer_than_it_says(filled: Dialogue) -> None:
    exchange = filled.send(fetch_request("a", 50, max_wait_ms=500), 12)
    filled.pass_time(500)
    assert (result_of(exchange).error_code, result_of(exchange).records) == (0, b"")
    assert not filled.node.partitions[next(iter(filled.node.partitions))].watermark.watchers


def test_a_fetch_waits_for_as_many_bytes_as_it_says(filled: Dialogue) -> None:
    request = fetch_request("a", 50, max_wait_ms=500, min_bytes=2 * SIZE)
    exchange = filled.send(request, 12)
    produce(filled, "a", batch(10))
    assert exchange.waiting
    produce(filled, "a", batch(10))
    assert bases(result_of(exchange)) == [50, 60]


def test_less_than_was_asked_for_comes_when_time_is_up(filled: Dialogue) -> None:
    exchange = filled.send(fetch_request("a", 40, max_wait_ms=500, min_bytes=10**6), 12)
    assert exchange.waiting
    filled.pass_time(500)
    assert bases(result_of(exchange)) == [40]


@pytest.mark.parametrize("limits", [{"max_wait_ms": 0}, {"max_wait_ms": 500, "min_bytes": 0}])
def test_some_fetches_do_not_wait(filled: Dialogue, limits: dict[str, int]) -> None:
    assert result_of(filled.send(fetch_request("a", 50, **limits), 12)).records == b""


def test_an_error_does_not_wait(filled: Dialogue) -> None:
    exchange = filled.send(fetch_request("a", 99, max_wait_ms=500), 12)
    assert result_of(exchange).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_are_shown_once_they_are_safe(talk: Dialogue) -> None:
    create_topic(talk, "a")
    talk.hold_syncs = True
    exchange = talk.send(fetch_request("a", max_wait_ms=500), 12)
    produce(talk, "a", acks=1)
    assert exchange.waiting
    ahead = fetch(talk, "a", 1)
    assert (ahead.error_code, ahead.records) == (0, b""), "its producer knows the offset already"
    talk.release_syncs()
    assert bases(result_of(exchange)) == [0]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_deleted_topic_wakes_its_waiting_requests(talk: Dialogue, by_id: bool) -> None:
    topic_id = create_topic(talk, "a")
    topic: str | bytes = topic_id if by_id else "a"
    exchange = talk.send(fetch_request(topic, max_wait_ms=500), 13 if by_id else 12)
    assert exchange.waiting
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]))
    assert result_of(exchange).error_code == (100 if by_id else 3)


def test_batches_go_over_segments(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"storage.segment_size": "1KB"})
    create_topic(talk, "a")
    for _ in range(30):
        produce(talk, "a", batch(10))
    offset, seen = 0, 0
    while offset < 300:
        found = read(fetch(talk, "a", offset).records)
        seen += len(found)
        offset = found[-1].offset + 1
    assert seen == 300
