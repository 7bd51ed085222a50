"""Tests idempotent producers (KIP-98): a retried batch is stored once, and gaps are refused."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, produce, send_produce

SEQUENCE_MAX = (1 << 31) - 1


@pytest.fixture(params=["handler", "fast path"])
def talk(tmp_path: Path, request: pytest.FixtureRequest) -> Dialogue:
    """The fast path and the normal path of a request must give the same results."""
    made = Dialogue(tmp_path)
    made.fast_path = request.param == "fast path"
    return made


def send(talk: Dialogue, sequence: int, count: int = 1, *, epoch: int = 0) -> tuple[int, int]:
    result = produce(talk, "a", batch(count, producer=(7, epoch, sequence)))
    return result.error_code, result.base_offset


@pytest.fixture
def producer(talk: Dialogue) -> Dialogue:
    """Seven batches of two records have arrived."""
    create_topic(talk, "a")
    for number in range(7):
        assert send(talk, 2 * number, 2) == (0, 2 * number)
    return talk


def test_each_of_the_last_five_is_known_again(producer: Dialogue) -> None:
    for number in range(2, 7):
        assert send(producer, 2 * number, 2) == (0, 2 * number)
    assert fetch(producer, "a").high_watermark == 14
    assert send(producer, 14) == (0, 14)


def test_what_is_older_is_out_of_order(producer: Dialogue) -> None:
    assert send(producer, 2, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


@pytest.mark.parametrize(("sequence", "count"), [(15, 1), (13, 1), (12, 3), (0, 1)])
def test_what_does_not_follow_is_out_of_order(
    producer: Dialogue, sequence: int, count: int
) -> None:
    assert send(producer, sequence, count) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(producer, 14) == (0, 14)


def test_epochs_go_up_and_start_at_0(producer: Dialogue) -> None:
    assert send(producer, 14, epoch=1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(producer, 0, epoch=1) == (0, 14)
    assert send(producer, 14, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert send(producer, 1, epoch=1) == (0, 15)


def test_sequences_wrap(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert send(talk, SEQUENCE_MAX - 1, 2) == (0, 0)
    assert send(talk, 0, 2) == (0, 2)
    assert send(talk, SEQUENCE_MAX - 1, 2) == (0, 0)


def test_a_batch_may_reach_over_the_end_of_the_sequences(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert send(talk, SEQUENCE_MAX, 3) == (0, 0)
    assert send(talk, 2) == (0, 3)
    assert send(talk, SEQUENCE_MAX, 3) == (0, 0)


def test_an_unknown_producer_may_start_anywhere(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert send(talk, 1234, epoch=3) == (0, 0)
    assert send(talk, 1235, epoch=3) == (0, 1)


@pytest.mark.parametrize("crash", [False, True])
def test_producers_are_remembered_over_restarts(producer: Dialogue, crash: bool) -> None:
    producer.restart(crash=crash)
    for number in range(2, 7):
        assert send(producer, 2 * number, 2) == (0, 2 * number)
    assert send(producer, 15) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(producer, 14) == (0, 14)


def test_a_repeated_batch_waits_for_the_disk_as_the_first_did(talk: Dialogue) -> None:
    create_topic(talk, "a")
    talk.hold_syncs = True
    first = send_produce(talk, "a", batch(producer=(7, 0, 0)))
    again = send_produce(talk, "a", batch(producer=(7, 0, 0)))
    assert (first.waiting, again.waiting) == (True, True)
    talk.release_syncs()
    for exchange in (first, again):
        ((result,),) = [t.partition_responses for t in exchange.answer.responses]
        assert (result.error_code, result.base_offset) == (0, 0)
    assert fetch(talk, "a").high_watermark == 1


def test_partitions_know_producers_each_by_itself(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    for partition in (0, 1):
        result = produce(talk, "a", batch(producer=(7, 0, 0)), partition=partition)
        assert (result.error_code, result.base_offset) == (0, 0)
