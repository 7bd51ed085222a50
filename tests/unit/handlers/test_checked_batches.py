"""Tests Produce for batches whose every record must be read: limits, and batches that wait."""

from typing import Any

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.partitions import batch_checking as checking
from barnabas.node.partitions.batch_checking import Outcome, Waiting
from barnabas.node.partitions.batch_validation import RECORDS_MAX, UNPACKED_BYTES_MIN
from barnabas.protocol import scanning
from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records import TRANSACTIONAL, Record, build, parse_header, repacked
from tests.support.talk.batches import make_marker
from tests.support.talk.dialogue import START_MS, Dialogue, Exchange
from tests.support.talk.requests import (
    batch,
    create_topic,
    delete_topic,
    fetch,
    produce,
    read,
    send_produce,
)

COMPACTED = {"cleanup.policy": "compact"}
MANY = 5_000


def claiming(count: int, body: bytes, codec: Codec = Codec.ZSTD) -> bytearray:
    """Return a batch whose header claims a number of records, with any bytes for them."""
    content = build([Record(0, START_MS, b"k", b"")])
    content[23:27] = (count - 1).to_bytes(4, "big")
    content[57:61] = count.to_bytes(4, "big")
    return repacked(content, parse_header(content), codec, compress(codec, body))


def many(count: int = MANY, *, key: bytes | None = b"k", **options: Any) -> bytearray:
    return batch(count, key=key, **options)


def result_of(exchange: Exchange) -> Any:
    ((result,),) = [t.partition_responses for t in exchange.answer.responses]
    return result


def offsets(talk: Dialogue, topic: str = "a") -> list[int]:
    limit = 1 << 26
    found = fetch(talk, topic, partition_max_bytes=limit, max_bytes=limit)
    return [record.offset for record in read(found.records)]


@pytest.mark.parametrize("config", [COMPACTED, {"compression.type": "lz4"}])
def test_a_batch_of_more_records_than_are_opened_is_too_large(
    talk: Dialogue, config: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(talk, "a", config=config)
    unpacked: list[bytes] = []
    monkeypatch.setattr(scanning, "decompress", lambda *given: unpacked.append(given[1]))
    result = produce(talk, "a", claiming(RECORDS_MAX + 1, bytes(1_000)))
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "send smaller batches" in result.error_message
    assert not unpacked


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_bomb_is_refused_and_not_parsed(
    talk: Dialogue, codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    monkeypatch.setattr(scanning.RecordCheck, "look", None)
    result = produce(talk, "a", claiming(1_000_000, bytes(UNPACKED_BYTES_MIN * 2), codec))
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert talk.node.find("a", 0).log.end_offset == 0


def test_more_records_than_the_bytes_can_hold_are_refused_before_they_are_parsed(
    talk: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    monkeypatch.setattr(scanning.RecordCheck, "look", None)
    result = produce(talk, "a", claiming(1_000, bytes(6_999)))
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_RECORD,
        "6999 bytes cannot hold 1000 records",
    )


def test_the_limit_of_bytes_grows_with_that_of_a_batch(talk: Dialogue) -> None:
    create_topic(talk, "a", config={**COMPACTED, "max.message.bytes": "4000000"})
    value = bytes(UNPACKED_BYTES_MIN * 2)
    content = build([Record(0, START_MS, b"k", value)], codec=Codec.ZSTD)
    assert produce(talk, "a", content).error_code == 0
    create_topic(talk, "b", config=COMPACTED)
    assert produce(talk, "b", content).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("codec", Codec)
def test_what_comes_behind_a_batch_that_is_checked_is_queued(
    talk: Dialogue, codec: Codec, fast_path: bool
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    create_topic(talk, "b", config=COMPACTED)
    talk.hold_scans, talk.fast_path = True, fast_path
    exchanges = [
        send_produce(talk, "a", many(codec=codec, producer=(7, 0, 0))),
        send_produce(talk, "a", batch(2, producer=(7, 0, MANY))),
        send_produce(talk, "a", many(codec=codec, producer=(7, 0, MANY + 2))),
        send_produce(talk, "a", batch(1), acks=1),
    ]
    assert [exchange.waiting for exchange in exchanges] == [True] * 4
    assert produce(talk, "b", batch(1)).base_offset == 0  # another partition does not wait
    assert len(talk.scans) == 1
    events = 0
    while talk.step_scan():
        events += 1
        waiting = [exchange.waiting for exchange in exchanges]
        assert waiting == sorted(waiting)  # answered in order
    assert events >= 2 * MANY // 1_000
    results = [result_of(exchange) for exchange in exchanges]
    assert [(r.error_code, r.base_offset) for r in results] == [
        (0, 0),
        (0, MANY),
        (0, MANY + 2),
        (0, 2 * MANY + 2),
    ]
    assert offsets(talk) == list(range(2 * MANY + 3))
    assert produce(talk, "a", batch(1)).base_offset == 2 * MANY + 3  # no batch waits any more
    assert talk.node.checking.waiting_bytes == 0


def test_a_queued_batch_is_a_copy(talk: Dialogue) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    exchange = send_produce(talk, "a", many())  # a dialogue overwrites what it has sent
    talk.release_scans()
    assert result_of(exchange).error_code == 0
    assert offsets(talk) == list(range(MANY))


def test_a_refused_batch_lets_those_behind_it_continue(talk: Dialogue) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    refused = send_produce(talk, "a", many(key=None))
    behind = send_produce(talk, "a", batch(2))
    talk.release_scans()
    result = result_of(refused)
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in result.record_errors] == list(range(MANY))
    assert result_of(behind).base_offset == 0


def test_a_retry_is_not_checked_again(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(talk, "a", config=COMPACTED)
    content = many(producer=(7, 0, 0))
    assert produce(talk, "a", content).base_offset == 0
    looks: list[int] = []
    really = scanning.RecordCheck.look

    def look(check: scanning.RecordCheck, units: int) -> bool:
        looks.append(units)
        return really(check, units)

    monkeypatch.setattr(scanning.RecordCheck, "look", look)
    assert produce(talk, "a", content).base_offset == 0
    assert len(looks) <= 1


def test_a_topic_that_is_deleted_while_a_batch_waits_for_it(talk: Dialogue) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    exchange = send_produce(talk, "a", many())
    delete_topic(talk, "a")
    create_topic(talk, "a", config=COMPACTED)
    talk.release_scans()
    assert result_of(exchange).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets(talk) == []


def test_another_leader_meanwhile_is_reported(talk: Dialogue) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    exchange = send_produce(talk, "a", many())
    talk.node.find("a", 0).leader_epoch += 1
    talk.release_scans()
    assert result_of(exchange).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_producer_that_is_gone_has_its_batch_written(talk: Dialogue) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    exchange = send_produce(talk, "a", many())
    exchange.abandon()
    talk.release_scans()
    assert offsets(talk) == list(range(MANY))


def test_producers_get_a_retriable_error_if_too_much_waits(
    talk: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    monkeypatch.setattr(checking, "WAITING_BYTES_MAX", len(many()) + 100)
    talk.hold_scans = True
    first = send_produce(talk, "a", many(producer=(7, 0, 0)))
    refused = send_produce(talk, "a", many(producer=(7, 0, MANY)))
    assert result_of(refused).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    talk.release_scans()
    assert result_of(first).error_code == 0
    behind = produce(talk, "a", batch(1, producer=(7, 0, 2 * MANY)))
    assert behind.error_code == ErrorCode.NOT_ENOUGH_REPLICAS  # as the one before it
    assert produce(talk, "a", many(producer=(7, 0, MANY))).base_offset == MANY


def test_timestamps_of_very_many_records_are_checked_in_order(talk: Dialogue) -> None:
    create_topic(talk, "a", config={"message.timestamp.before.max.ms": "1000"})
    old = batch(MANY, start_ms=START_MS - 3_000)
    talk.hold_scans = True
    exchange = send_produce(talk, "a", old)
    assert exchange.waiting
    talk.release_scans()
    result = result_of(exchange)
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in result.record_errors] == list(range(2_000))


@pytest.mark.parametrize(("producer_id", "taken"), [(7, False), (8, True)])
def test_a_batch_whose_transaction_ends_while_it_waits_comes_too_late(
    talk: Dialogue, producer_id: int, taken: bool
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    partition = talk.node.find("a", 0)
    talk.hold_scans = True
    content = memoryview(many(producer=(7, 0, 0), attributes=TRANSACTIONAL))
    outcomes: list[Outcome] = []
    waiting = Waiting(content, parse_header(content), START_MS, outcomes.append)
    talk.node.checking.enter(partition, "client", waiting)
    talk.settle()
    partition.leader.append_marker(bytearray(make_marker(producer_id, commit=False)), 1)
    talk.release_scans()
    (outcome,) = outcomes
    assert (outcome is content) == taken
    if isinstance(outcome, ApiError):
        assert outcome.code is ErrorCode.INVALID_TXN_STATE


def test_a_defect_does_not_delay_later_requests(
    talk: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(talk, "a", config=COMPACTED)
    talk.hold_scans = True
    first, second = send_produce(talk, "a", many()), send_produce(talk, "a", batch(1))

    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(checking, "checking", fail)
        talk.step_scan()
    talk.release_scans()
    assert result_of(first).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert result_of(second).base_offset == 0
    assert talk.notices[-1].event == "checking a batch failed"
