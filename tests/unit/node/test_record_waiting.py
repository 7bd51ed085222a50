"""Tests waiting for records without Fetch: enough bytes, a deadline, a deleted partition."""

import pytest

from barnabas.metadata.image import PartitionImage
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.record_waiting import Ended, Position, RecordWait, wait_for_records
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch, make_marker
from tests.support.talk.edge import START_MS, Edge

BATCH_BYTES = len(make_batch())


class Waiter:
    """Two topics, and a wait for both of them."""

    def __init__(self) -> None:
        self.edge = Edge(MemoryDisk()).start()
        self.created = [self.edge.create("a"), self.edge.create("b", number=2)]
        self.partitions = [
            self.edge.node.partitions[TopicPartition(name, 0)] for name in ("a", "b")
        ]
        self.ended: list[Ended] = []

    def wait(
        self, *offsets: int, min_bytes: int = 1, timeout_ms: int = 500, committed_only: bool = False
    ) -> Pending[Ended]:
        pending = wait_for_records(
            self.edge.node.timers,
            [Position(*each) for each in zip(self.partitions, offsets, strict=False)],
            min_bytes=min_bytes,
            timeout_ms=timeout_ms,
            committed_only=committed_only,
        )
        pending.when_done(self.ended.append)
        return pending

    def append(self, number: int = 0, **options: object) -> None:
        batch = make_batch(timestamp=START_MS, **options)  # type: ignore[arg-type]
        self.partitions[number].leader.append(batch, START_MS)
        self.edge.settle()

    @property
    def is_left_alone(self) -> bool:
        """Return whether no partition and no timer refers to a wait."""
        return not any(each.watermark.watchers for each in self.partitions)


@pytest.fixture
def waiter() -> Waiter:
    return Waiter()


def test_records_that_are_there_end_the_wait_at_once(waiter: Waiter) -> None:
    waiter.append()
    waiter.wait(0)
    assert waiter.ended == [Ended.READY]
    assert waiter.is_left_alone


def test_any_of_the_partitions_ends_the_wait(waiter: Waiter) -> None:
    waiter.wait(0, 0)
    assert waiter.ended == []
    waiter.append(1)
    assert waiter.ended == [Ended.READY]
    assert waiter.is_left_alone


def test_the_bytes_of_all_partitions_count(waiter: Waiter) -> None:
    waiter.wait(0, 0, min_bytes=2 * BATCH_BYTES)
    waiter.append(0)
    assert waiter.ended == []
    waiter.append(1)
    assert waiter.ended == [Ended.READY]


def test_records_count_once_they_are_below_the_high_watermark(waiter: Waiter) -> None:
    waiter.wait(0)
    waiter.edge.hold_syncs = True
    waiter.append()
    assert waiter.ended == []
    waiter.edge.release()
    assert waiter.ended == [Ended.READY]


def test_with_committed_only_records_count_once_their_transaction_ended(waiter: Waiter) -> None:
    waiter.wait(0, committed_only=True)
    waiter.append(producer=(7, 0, 0), attributes=TRANSACTIONAL)
    assert waiter.ended == []
    waiter.partitions[0].leader.append_marker(bytearray(make_marker(7, 0, commit=True)), 0)
    waiter.edge.settle()
    assert waiter.ended == [Ended.READY]


def test_a_deadline_ends_the_wait(waiter: Waiter) -> None:
    waiter.wait(0, 0, timeout_ms=100)
    waiter.edge.pass_time(99)
    assert waiter.ended == []
    waiter.edge.pass_time(1)
    assert waiter.ended == [Ended.TIMED_OUT]
    assert waiter.is_left_alone


def test_a_deleted_topic_ends_the_wait(waiter: Waiter) -> None:
    waiter.wait(0, 0)
    waiter.edge.delete(waiter.created[1])
    assert waiter.ended == [Ended.LOST]
    assert waiter.is_left_alone


def test_a_change_of_leadership_ends_the_wait(waiter: Waiter) -> None:
    waiter.wait(0)
    waiter.partitions[0].follow(PartitionImage([1, 2], 2, 1, [1, 2]))
    assert waiter.ended == [Ended.LOST]


def test_an_offset_that_cannot_be_read_ends_the_wait(waiter: Waiter) -> None:
    waiter.wait(5)
    assert waiter.ended == [Ended.LOST]


def test_a_cancelled_wait_leaves_nothing_behind(waiter: Waiter) -> None:
    waiter.wait(0, 0).abandon()
    assert waiter.is_left_alone
    waiter.append()
    waiter.edge.pass_time(1000)
    assert waiter.ended == []


class Looks:
    """Counts the checks of one wait."""

    def __init__(self) -> None:
        self.wait: RecordWait | None = None
        self.seen: list[bool] = []

    def look(self, *, at_last: bool = False) -> None:
        self.seen.append(at_last)


def test_a_wait_that_is_shortened_ends_earlier_and_never_later(waiter: Waiter) -> None:
    looks = Looks()
    wait = RecordWait(waiter.edge.node.timers, 100, looks.look, looks)
    wait.shorten(200)
    wait.shorten(10)
    waiter.edge.pass_time(10)
    assert looks.seen == [True]
    waiter.edge.pass_time(200)
    assert looks.seen == [True]


def test_a_wait_that_ended_ignores_partitions_and_frees_its_holder(waiter: Waiter) -> None:
    looks = Looks()
    first = RecordWait(waiter.edge.node.timers, 100, looks.look, looks)
    second = RecordWait(waiter.edge.node.timers, 100, looks.look, looks)
    held = []
    first.stop()
    held.append(looks.wait)
    second.wake()
    second.stop()
    held.append(looks.wait)
    assert held == [second, None]
    first.wake()
    second.expire()
    waiter.edge.pass_time(200)
    assert looks.seen == [False]
