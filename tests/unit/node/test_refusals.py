"""Tests which batches cannot follow because an earlier one was refused, and for how long."""

from barnabas.model.errors import ErrorCode
from barnabas.node.partitions.rejected_batches import REMEMBERED_MS, Refusals
from barnabas.protocol.records import BatchHeader, parse_header
from tests.support.talk.batches import make_batch

FULL = ErrorCode.KAFKA_STORAGE_ERROR
NOW = 1000


def header(sequence: int, producer: int = 5, epoch: int = 0) -> BatchHeader:
    return parse_header(make_batch(1, producer=(producer, epoch, sequence)))


def refused() -> Refusals:
    refusals = Refusals()
    refusals.note(header(7), FULL, NOW)
    return refusals


def test_what_comes_behind_a_refused_batch() -> None:
    assert refused().reason(header(8), NOW) is FULL


def test_the_refused_batch_itself_has_no_excuse() -> None:
    assert refused().reason(header(7), NOW) is None


def test_others_have_no_excuse() -> None:
    assert refused().reason(header(8, producer=6), NOW) is None
    assert refused().reason(header(8, epoch=1), NOW) is None


def test_an_excuse_is_good_for_a_while() -> None:
    assert refused().reason(header(8), NOW + REMEMBERED_MS - 1) is FULL
    assert refused().reason(header(8), NOW + REMEMBERED_MS) is None


def test_the_first_refusal_counts() -> None:
    refusals = refused()
    refusals.note(header(8), ErrorCode.NOT_ENOUGH_REPLICAS, NOW)
    assert refusals.reason(header(9), NOW) is FULL
    refusals.note(header(7), ErrorCode.NOT_ENOUGH_REPLICAS, NOW + 5)
    assert refusals.reason(header(9), NOW) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_producers_without_an_id_are_not_remembered() -> None:
    refusals = Refusals()
    refusals.note(header(-1, producer=-1), FULL, NOW)
    assert refusals.by_id == {}


def test_a_new_leader_keeps_all_followers_in_sync_for_a_while() -> None:
    refusals = Refusals()
    refusals.took_lead(NOW)
    assert refusals.reason(header(8), NOW) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert refusals.reason(header(8), NOW + REMEMBERED_MS) is None
    assert refusals.reason(header(8), NOW - 1) is None


def test_its_own_refusals_come_first() -> None:
    refusals = refused()
    refusals.took_lead(NOW)
    assert refusals.reason(header(8), NOW) is FULL
