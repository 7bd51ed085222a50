"""Tests a partition at its leader: acknowledgements, reads, and disk errors."""

from random import Random

import pytest

from barnabas.metadata.topic_config import resolve
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.partitions.partition import Partition
from barnabas.node.partitions.rejected_batches import REMEMBERED_MS
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import batches_in, make_batch
from tests.support.talk.edge import START_MS, Edge

NAME = TopicPartition("orders", 0)


class Watching:
    def __init__(self) -> None:
        self.times = 0

    def on_retired(self) -> None:
        self.on_progress()

    def on_progress(self) -> None:
        self.times += 1


def topic(config: dict[str, str] | None = None) -> tuple[Edge, Partition]:
    edge = Edge(MemoryDisk()).start()
    edge.create("orders", config)
    return edge, edge.node.partitions[NAME]


def send(partition: Partition, sequence: int = -1, count: int = 1) -> int:
    producer = (5, 0, sequence) if sequence >= 0 else (-1, -1, -1)
    batch = make_batch(count, timestamp=START_MS, producer=producer)
    return partition.leader.append(batch, START_MS).base_offset


def shown(partition: Partition, offset: int = 0) -> int:
    found = batches_in(partition.read(offset, 1 << 20, committed_only=False, at_least_one=True))
    return found[-1][0].last_offset + 1 if found else offset


def test_what_is_not_synced_is_neither_acknowledged_nor_shown() -> None:
    edge, partition = topic()
    edge.hold_syncs = True
    answers: list[int] = []
    watching = Watching()
    partition.watermark.watchers[watching] = None
    send(partition)
    partition.when_safe(1, lambda: answers.append(1))
    edge.settle()
    assert (partition.high_watermark, answers, shown(partition), watching.times) == (0, [], 0, 0)
    edge.release()
    assert (partition.high_watermark, answers, shown(partition), watching.times) == (1, [1], 1, 1)


def test_under_an_interval_everything_is_shown_at_once() -> None:
    edge, partition = topic({"flush": "interval"})
    send(partition)
    assert (partition.high_watermark, partition.log.flushed_offset) == (1, 0)
    partition.flusher.flush()
    edge.settle()
    assert partition.log.flushed_offset == 1


def test_appends_during_a_sync_share_the_next() -> None:
    edge, partition = topic()
    edge.hold_syncs = True
    for _ in range(4):
        send(partition)
        edge.settle()
    assert len(edge.held) == 1
    edge.release()
    assert (partition.high_watermark, len(edge.held)) == (1, 1)
    edge.release()
    assert (partition.high_watermark, edge.held) == (4, [])


def test_a_retry_gets_its_first_offset_and_waits_for_it_to_be_safe() -> None:
    edge, partition = topic()
    edge.hold_syncs = True
    assert send(partition, 0, count=3) == 0
    again = partition.leader.append(make_batch(3, timestamp=START_MS, producer=(5, 0, 0)), START_MS)
    assert (again.base_offset, again.required_offset, partition.log.end_offset) == (0, 3, 3)
    assert partition.high_watermark == 0
    edge.settle()
    edge.release()
    assert partition.high_watermark == 3


def test_a_retry_after_a_power_cut_gets_its_first_offset() -> None:
    for seed in range(10):
        edge, partition = topic({"segment.bytes": "1024"})
        offsets = [send(partition, 2 * number, count=2) for number in range(30)]
        edge.settle()
        assert partition.high_watermark == 60
        disk = edge.disk
        assert isinstance(disk, MemoryDisk)
        disk.power_cut(Random(seed))
        partition = Edge(disk).start().node.partitions[NAME]
        assert (partition.log.end_offset, partition.high_watermark) == (60, 60)
        for number in range(25, 30):
            assert send(partition, 2 * number, count=2) == offsets[number]
        assert partition.log.end_offset == 60


def test_a_full_disk_is_logged_once_and_its_end_once() -> None:
    edge, partition = topic()
    disk = edge.disk
    assert isinstance(disk, MemoryDisk)
    send(partition)
    edge.settle()
    disk.room = 5
    for _ in range(3):
        with pytest.raises(ApiError) as caught:
            send(partition)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    refused: list[Exception] = []
    partition.delete_before(1).when_done(lambda _: None, refused.append)
    edge.settle()
    assert [error.code for error in refused if isinstance(error, ApiError)] == [
        ErrorCode.KAFKA_STORAGE_ERROR
    ]
    disk.room = None
    assert [send(partition), send(partition)] == [1, 2]
    edge.settle()
    assert len(edge.notices_of("the disk refused an append")) == 1
    assert len(edge.notices_of("the disk accepts appends again")) == 1


def test_damage_is_reported_and_not_served() -> None:
    edge, partition = topic()
    send(partition)
    edge.settle()
    edge.stop()
    disk = edge.disk
    assert isinstance(disk, MemoryDisk)
    path = partition.log.active.paths[0]
    edge = Edge(disk).start()
    disk.flip(path, (disk.size(path) - 1) * 8)
    partition = edge.node.partitions[NAME]
    with pytest.raises(ApiError) as caught:
        shown(partition)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    edge.settle()
    assert len(edge.notices_of("stored records are damaged")) == 1


def test_a_sync_that_ends_after_the_topic_is_gone_changes_nothing() -> None:
    edge = Edge(MemoryDisk()).start()
    record = edge.create("orders")
    partition = edge.node.partitions[NAME]
    edge.hold_syncs = True
    answers: list[int] = []
    send(partition)
    partition.when_safe(1, lambda: answers.append(1))
    edge.settle()
    edge.hold_syncs = False
    edge.delete(record)
    edge.release()
    assert answers == []
    assert edge.node.partitions == {}


def test_leader_epochs_are_compared_with_the_clients() -> None:
    _, partition = topic()
    partition.leader_epoch = 5
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    with pytest.raises(ApiError) as caught:
        partition.check_leader_epoch(4)
    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(ApiError) as caught:
        partition.check_leader_epoch(6)
    assert caught.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_every_start_is_a_new_leader_epoch() -> None:
    edge, partition = topic()
    send(partition)
    edge.settle()
    for epoch in (1, 2):
        edge.stop()
        edge = Edge(edge.disk).start()
        partition = edge.node.partitions[NAME]
        send(partition)
        edge.settle()
        assert partition.leader_epoch == epoch
    assert partition.log.epochs.entries == [(0, 0), (1, 1), (2, 2)]


def test_another_flush_policy_takes_effect_at_once() -> None:
    edge, partition = topic({"flush": "interval"})
    send(partition)
    assert partition.log.flushed_offset == 0
    partition.configure(resolve({"flush": "ack"}))
    edge.settle()
    assert partition.log.flushed_offset == 1


def refusal(partition: Partition, sequence: int) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        send(partition, sequence)
    return caught.value.code


def test_what_comes_behind_a_refused_batch_is_refused_for_the_same_reason() -> None:
    edge, partition = topic()
    disk = edge.disk
    assert isinstance(disk, MemoryDisk)
    assert [send(partition, 0), send(partition, 1)] == [0, 1]
    disk.room = 5
    assert refusal(partition, 2) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.room = None
    assert refusal(partition, 3) is ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(partition, 4) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [send(partition, 2), send(partition, 3), send(partition, 4)] == [2, 3, 4]
    # From here on the producer has no excuse.
    assert refusal(partition, 9) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_step_of_the_calendar_does_not_make_a_refusal_forgotten() -> None:
    edge, partition = topic()
    disk = edge.disk
    assert isinstance(disk, MemoryDisk)
    send(partition, 0)
    disk.room = 5
    assert refusal(partition, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.room = None
    with pytest.raises(ApiError) as caught:
        partition.leader.append(make_batch(1, producer=(5, 0, 2)), START_MS + 2 * REMEMBERED_MS)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    edge.pass_time(REMEMBERED_MS)
    assert refusal(partition, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def delete(edge: Edge, partition: Partition, offset: int, answered: list[int]) -> None:
    answer = partition.delete_before(offset)
    answer.when_done(lambda _: answered.append(offset))
    edge.settle()


def test_requests_to_delete_records_are_carried_out_together() -> None:
    edge, partition = topic()
    for _ in range(6):
        send(partition)
    edge.settle()
    edge.hold_syncs = True
    answered: list[int] = []
    delete(edge, partition, 2, answered)
    delete(edge, partition, 5, answered)
    delete(edge, partition, 3, answered)
    rounds = 0
    while edge.held:
        assert len(edge.held) == 1
        assert not answered
        edge.release()
        rounds += 1
    assert (answered, partition.log.start_offset, rounds) == ([2, 5, 3], 5, 3)
    edge.hold_syncs = False
    delete(edge, partition, 4, answered)
    assert (answered[-1], partition.log.start_offset) == (4, 5)
