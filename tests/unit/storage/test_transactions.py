"""Tests transactions in the producer state of a partition: which are open, and since when."""

import struct

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.crc import crc32c
from barnabas.protocol.markers import EndMarker, parse_marker
from barnabas.protocol.records import TRANSACTIONAL, parse_header
from barnabas.storage import producer_snapshots
from barnabas.storage.aborted import Aborted
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.producers import NOTHING_UNSTABLE, ProducerStates, SentBatch
from barnabas.storage.recovery import open_log
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, make_marker

FOLDER = "data/orders/0"


class Told:
    """Producer states that get batches one after the other."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.end = 0

    def write(self, producer: int, sequence: int, epoch: int = 0, count: int = 1) -> int:
        batch = make_batch(count, producer=(producer, epoch, sequence), attributes=TRANSACTIONAL)
        return self._follow(batch, count)

    def finish(
        self, producer: int, epoch: int = 0, *, commit: bool, coordinator_epoch: int = 0
    ) -> Aborted | None:
        batch = make_marker(producer, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
        aborted = self.states.follow(parse_header(batch), self.end, batch)
        self.end += 1
        return aborted

    def refusal(self, producer: int, sequence: int, epoch: int = 0, attributes: int = 0) -> int:
        batch = make_batch(producer=(producer, epoch, sequence), attributes=attributes)
        return refused(lambda: self.states.check(parse_header(batch)))

    def marker_refusal(self, epoch: int, version: int, coordinator_epoch: int = 0) -> int:
        batch = make_marker(7, epoch, commit=True, coordinator_epoch=coordinator_epoch)
        header = parse_header(batch)
        marker = parse_marker(batch, header)
        return refused(lambda: self.states.check_marker(header, marker, version))

    def _follow(self, batch: memoryview, count: int) -> int:
        offset = self.end
        assert self.states.follow(parse_header(batch), offset, batch) is None
        self.end += count
        return offset


def refused(act: object) -> int:
    assert callable(act)
    try:
        act()
    except ApiError as error:
        return error.code
    return 0


def test_the_first_batch_opens_a_transaction_and_the_marker_ends_it() -> None:
    told = Told()
    told.write(7, 0, count=3)
    told.write(7, 3)
    assert told.states.open_transactions() == {7: 0}
    assert told.finish(7, commit=True) is None
    assert told.states.open_transactions() == {}
    told.write(7, 4)
    assert told.states.open_transactions() == {7: 5}


def test_an_abort_says_from_where_to_where_and_what_is_stable_after_it() -> None:
    told = Told()
    told.write(7, 0)
    told.write(8, 0)
    told.write(9, 0)
    assert told.finish(8, commit=False) == Aborted(8, 1, 3, 0)
    assert told.finish(7, commit=False) == Aborted(7, 0, 4, 2)
    assert told.finish(9, commit=False) == Aborted(9, 2, 5, 6)


def test_a_marker_without_a_transaction_ends_nothing_and_is_remembered() -> None:
    told = Told()
    assert told.finish(7, epoch=4, commit=False, coordinator_epoch=3) is None
    known = told.states.by_id[7]
    assert (known.epoch, known.coordinator_epoch, known.last_timestamp) == (4, 3, 1_000)
    assert told.states.ended == []


def test_what_is_stable_waits_for_the_marker_to_be_safe() -> None:
    told = Told()
    assert told.states.first_unstable == NOTHING_UNSTABLE
    told.write(7, 0)
    told.write(8, 0)
    told.finish(7, commit=True)  # at 2
    told.states.settle(2)
    assert told.states.first_unstable == 0
    told.states.settle(3)
    assert told.states.first_unstable == 1
    told.finish(8, commit=False)
    told.write(9, 0)
    told.states.settle(4)
    assert told.states.first_unstable == 4
    told.finish(9, commit=False)
    assert told.states.first_unstable == 4
    told.states.settle(6)
    assert told.states.first_unstable == NOTHING_UNSTABLE


def test_a_longer_transaction_that_ends_first_still_holds_back_until_it_is_safe() -> None:
    told = Told()
    told.write(7, 0)
    told.finish(7, commit=True)  # 0 to 1
    told.write(8, 0)
    told.states.settle(1)
    assert told.states.first_unstable == 0
    told.states.settle(2)
    assert told.states.first_unstable == 2


def test_sequences_continue_across_transactions_of_one_epoch() -> None:
    told = Told()
    told.write(7, 0, count=2)
    told.finish(7, commit=True)
    assert told.refusal(7, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert told.refusal(7, 2) == 0
    batch = make_batch(2, producer=(7, 0, 0), attributes=TRANSACTIONAL)
    assert told.states.check(parse_header(batch)) == SentBatch(0, 1, 0, 1)


def test_a_marker_that_raises_the_epoch_restarts_sequences() -> None:
    told = Told()
    told.write(7, 0)
    told.finish(7, epoch=1, commit=True)
    assert told.refusal(7, 1, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert told.refusal(7, 0, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert told.refusal(7, 1, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert told.refusal(7, 1, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert told.refusal(7, 0, epoch=1, attributes=TRANSACTIONAL) == 0
    told.write(7, 0, epoch=1)
    assert told.states.by_id[7].batches == [SentBatch(0, 0, 2, 2)]


def test_a_batch_outside_of_the_open_transaction_is_refused() -> None:
    told = Told()
    told.write(7, 0)
    assert told.refusal(7, 1) == ErrorCode.INVALID_TXN_STATE
    assert told.refusal(7, 1, attributes=TRANSACTIONAL) == 0
    assert told.refusal(7, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert told.refusal(7, 0, epoch=1) == ErrorCode.INVALID_TXN_STATE
    told.finish(7, commit=True)
    assert told.refusal(7, 1) == 0


def test_a_new_epoch_continues_with_the_open_transaction() -> None:
    told = Told()
    told.write(7, 0)
    told.write(7, 0, epoch=1)
    assert told.states.open_transactions() == {7: 0}
    assert told.finish(7, epoch=1, commit=False) == Aborted(7, 0, 2, 3)


def test_batches_of_coordinators_open_transactions_and_leave_sequences_alone() -> None:
    told = Told()
    told.write(7, 0)
    told.write(7, -1)
    assert told.states.by_id[7].batches == [SentBatch(0, 0, 0, 0)]
    assert told.refusal(7, 1, attributes=TRANSACTIONAL) == 0
    told.write(8, -1)
    assert told.states.open_transactions() == {7: 0, 8: 2}
    assert told.states.by_id[8].batches == []


@pytest.mark.parametrize(
    ("epoch", "version", "code"),
    [
        (1, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 0, 0),
        (3, 0, 0),
        (1, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 2, 0),
    ],
)
def test_markers_of_an_older_epoch_are_refused(epoch: int, version: int, code: int) -> None:
    told = Told()
    told.write(7, 0, epoch=2)
    assert told.marker_refusal(epoch, version) == code


@pytest.mark.parametrize("version", [0, 2])
def test_a_marker_may_be_written_again(version: int) -> None:
    told = Told()
    told.write(7, 0)
    told.finish(7, epoch=1, commit=True)
    assert told.marker_refusal(1, version) == 0
    assert told.marker_refusal(0, version) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_markers_of_an_older_coordinator_are_refused() -> None:
    told = Told()
    assert told.marker_refusal(0, 0, coordinator_epoch=0) == 0
    told.finish(7, commit=True, coordinator_epoch=5)
    assert told.marker_refusal(0, 0, coordinator_epoch=5) == 0
    assert (
        told.marker_refusal(0, 0, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    told.write(7, 0, epoch=1)  # the coordinator's epoch outlives the producer's
    assert (
        told.marker_refusal(2, 2, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )


def test_unknown_kinds_of_markers_end_nothing() -> None:
    told = Told()
    told.write(7, 0)
    states = told.states
    batch = make_marker(7, 9, commit=True)
    assert states._end(parse_header(batch), 1, EndMarker(3, 0)) is None
    assert states.open_transactions() == {7: 0}


def test_a_producer_with_an_open_transaction_never_expires() -> None:
    told = Told()
    told.write(7, 0)
    told.write(8, 0)
    told.finish(8, commit=True)
    told.states.expire(1 << 50)
    assert set(told.states.by_id) == {7}


def test_a_snapshot_keeps_open_transactions() -> None:
    told = Told()
    told.write(8, 0)
    told.finish(8, commit=True, coordinator_epoch=6)
    told.write(9, 0)
    told.write(8, 1)
    told.write(7, -1)
    again = producer_snapshots.decode(producer_snapshots.encode(told.states))
    assert list(again.open_transactions().items()) == [(9, 2), (8, 3), (7, 4)]
    assert again.first_unstable == 2
    assert again.by_id[8].coordinator_epoch == 6
    assert again.by_id[8].batches == told.states.by_id[8].batches


def test_snapshots_from_before_transactions_are_read() -> None:
    body = struct.pack(">I", 1) + struct.pack(">qhqqH", 7, 3, 99, -1, 1)
    body += struct.pack(">iiqq", 4, 5, 10, 11)
    states = producer_snapshots.decode(struct.pack(">hI", 1, crc32c(body)) + body)
    known = states.by_id[7]
    assert (known.epoch, known.last_timestamp, known.batches) == (3, 99, [SentBatch(4, 5, 10, 11)])
    assert (known.transaction_start, known.coordinator_epoch) == (-1, -1)
    assert states.first_unstable == NOTHING_UNSTABLE


def filled(disk: MemoryDisk) -> Log:
    """Return a log of small segments: 7 committed, 8 aborted, 9 has an open transaction."""
    log = open_log(disk, FOLDER, LogSettings(segment_bytes=250)).log
    for sequence in range(3):
        for producer in (7, 8, 9):
            batch = make_batch(producer=(producer, 0, sequence), attributes=TRANSACTIONAL)
            append(log, batch)
    append(log, make_marker(7, 1, commit=True))
    append(log, make_marker(8, commit=False))
    append(log, make_batch(producer=(9, 0, 3), attributes=TRANSACTIONAL))
    return log


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_knows_what_was_open(clean: bool) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    assert len(log.segments) > 3
    if clean:
        log.flush()
        log.close()
    again = open_log(disk, FOLDER, LogSettings(segment_bytes=250), clean=clean).log
    assert again.producers.open_transactions() == {9: 2}
    assert (again.producers.first_unstable, again.producers.ended) == (2, [])
    assert again.aborted(0, 99) == [Aborted(8, 1, 10, 2)]
    for producer in (7, 8, 9):
        known, before = again.producers.by_id[producer], log.producers.by_id[producer]
        assert (known.epoch, known.batches) == (before.epoch, before.batches)
    assert again.producers.by_id[7].batches == []


def test_a_truncation_opens_again_what_the_cut_markers_had_ended() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.truncate(10)
    assert log.producers.open_transactions() == {8: 1, 9: 2}
    assert log.aborted(0, 99) == []
    log.truncate(9)
    assert log.producers.open_transactions() == {7: 0, 8: 1, 9: 2}
    append(log, make_marker(8, commit=False))
    assert log.aborted(0, 99) == [Aborted(8, 1, 9, 0)]
    log.truncate(1)
    assert log.producers.open_transactions() == {7: 0}
    again = open_log(disk, FOLDER, LogSettings(segment_bytes=250)).log
    assert again.aborted(0, 99) == []
    assert again.producers.first_unstable == 0
