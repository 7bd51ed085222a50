"""Tests which batches must not be written before others, and for how long that is remembered."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.coordination import verifications
from barnabas.node.coordination.verifications import Verifications
from barnabas.protocol.records import BatchHeader, parse_header
from barnabas.storage.producers import SEQUENCE_MASK, ProducerStates
from tests.support.talk.batches import make_batch

NOW = 1000


def header(sequence: int, epoch: int = 0, producer: int = 7) -> BatchHeader:
    return parse_header(make_batch(1, producer=(producer, epoch, sequence)))


class Partition:
    """The verification state of a partition, empty at first."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.verifications = Verifications()

    def ask(self, sequence: int, epoch: int = 0, *, new: bool = False) -> None:
        self.verifications.note(header(sequence, epoch), self.states, NOW, starts_at_zero=new)

    def takes(self, sequence: int, epoch: int = 0) -> bool:
        try:
            self.verifications.check(header(sequence, epoch), self.states)
        except ApiError as error:
            return error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return True


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_only_the_lowest_that_asked_may_be_written(partition: Partition) -> None:
    for sequence in (5, 3, 4):
        partition.ask(sequence)
    assert [n for n in range(7) if partition.takes(n)] == [0, 1, 2, 3]


def test_a_higher_epoch_counts_from_its_own_lowest(partition: Partition) -> None:
    partition.ask(3)
    partition.ask(8, epoch=1)
    partition.ask(2)
    assert [n for n in range(7, 11) if partition.takes(n, epoch=1)] == [7, 8]
    assert partition.takes(9), "another epoch is checked elsewhere"


def test_sequences_wrap_around_after_the_highest(partition: Partition) -> None:
    partition.ask(SEQUENCE_MASK)
    assert partition.takes(SEQUENCE_MASK)
    assert not partition.takes(0)


def test_of_a_producer_that_is_not_known_0_comes_first(partition: Partition) -> None:
    partition.ask(5, new=True)
    assert [n for n in range(7) if partition.takes(n)] == [0]
    partition.states.record(header(4), 0)
    assert partition.takes(5), "batches that follow one in the log need no check"


def test_what_the_log_has_does_not_hold_others_up(partition: Partition) -> None:
    for sequence in range(3):
        partition.states.record(header(sequence), sequence)
    for sequence in range(3):
        partition.ask(sequence)
    assert partition.takes(3)


def test_what_was_written_or_is_long_ago_is_forgotten(partition: Partition) -> None:
    partition.ask(3)
    partition.verifications.expire(NOW)
    assert not partition.takes(4)
    partition.verifications.expire(NOW + 1)
    assert partition.takes(4)
    partition.ask(3)
    partition.verifications.forget(7)
    assert partition.takes(4)


def test_only_so_many_are_remembered(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifications, "PRODUCERS_MAX", 2)
    for producer in range(4):
        asked = header(0, producer=producer)
        partition.verifications.note(asked, partition.states, NOW, starts_at_zero=False)
    assert list(partition.verifications.by_id) == [2, 3]
