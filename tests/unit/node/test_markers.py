"""Tests transactions in a partition: the last stable offset, and where markers are written."""

from collections.abc import Callable

import pytest

from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.coordination.marker_writing import Marker, write_marker
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.markers import parse_marker
from barnabas.protocol.records import TRANSACTIONAL, Record, build
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import batches_in, make_batch
from tests.support.talk.edge import START_MS, Edge

NAME = TopicPartition("orders", 0)


def topic(config: dict[str, str] | None = None, name: str = "orders") -> tuple[Edge, Partition]:
    edge = Edge(MemoryDisk()).start()
    edge.create(name, config)
    return edge, edge.node.partitions[TopicPartition(name, 0)]


def send(partition: Partition, producer: int, sequence: int = 0, epoch: int = 0) -> int:
    batch = make_batch(
        timestamp=START_MS, producer=(producer, epoch, sequence), attributes=TRANSACTIONAL
    )
    return partition.leader.append(batch, START_MS).base_offset


def end(
    edge: Edge,
    producer: int,
    *,
    commit: bool = True,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 0,
    name: str = "orders",
) -> Pending[None]:
    marker = Marker(producer, epoch, commit, coordinator_epoch, version)
    return write_marker(edge.node, name, 0, marker, START_MS)


def refusal(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        act()
    return caught.value.code


def readable(partition: Partition) -> int:
    """Return the offset up to which a read_committed consumer reads."""
    piece = partition.read(0, 1 << 20, committed_only=True, at_least_one=True)
    found = batches_in(piece)
    return found[-1][0].last_offset + 1 if found else 0


def test_nothing_from_an_open_transaction_on_is_stable() -> None:
    edge, partition = topic({"flush": "interval"})
    partition.leader.append(make_batch(timestamp=START_MS), START_MS)
    assert partition.last_stable_offset == 1
    send(partition, 7)
    send(partition, 8)
    partition.leader.append(make_batch(timestamp=START_MS), START_MS)
    assert (partition.high_watermark, partition.last_stable_offset) == (4, 1)
    assert readable(partition) == 1
    end(edge, 7)
    assert (partition.last_stable_offset, readable(partition)) == (2, 2)
    end(edge, 8, commit=False)
    assert (partition.last_stable_offset, readable(partition)) == (6, 6)


def test_a_marker_that_a_power_cut_could_take_back_makes_nothing_stable() -> None:
    edge, partition = topic()
    send(partition, 7)
    edge.settle()
    edge.hold_syncs = True
    written: list[None] = []
    end(edge, 7).when_done(written.append)
    edge.settle()
    assert partition.log.producers.open_transaction(7) is None
    assert (partition.last_stable_offset, written) == (0, [])
    edge.release()
    assert (partition.last_stable_offset, written) == (2, [None])


def test_a_wait_for_committed_records_ends_when_there_are_some() -> None:
    edge, partition = topic()
    seen: list[int] = []

    class Watching:
        def on_retired(self) -> None:
            self.on_progress()

        def on_progress(self) -> None:
            seen.append(partition.last_stable_offset)

    partition.watermark.watchers[Watching()] = None
    send(partition, 7)
    edge.settle()
    end(edge, 7)
    edge.settle()
    assert seen == [0, 2]


def test_the_first_offset_is_never_below_the_log() -> None:
    edge, partition = topic({"flush": "interval"})
    send(partition, 7)
    send(partition, 7, 1)
    edge.do(lambda: partition.delete_before(2))
    assert (partition.last_stable_offset, partition.log.producers.open_transaction(7)) == (2, 0)
    send(partition, 7, 2)
    assert partition.last_stable_offset == 2
    end(edge, 7)
    assert partition.last_stable_offset == 4


def test_what_a_produce_handler_asks() -> None:
    edge, partition = topic({"flush": "interval"})
    assert (partition.log.producers.open_transaction(7), partition.log.producers.epoch_of(7)) == (
        None,
        None,
    )
    partition.leader.append(make_batch(timestamp=START_MS), START_MS)
    send(partition, 7, epoch=3)
    assert (partition.log.producers.open_transaction(7), partition.log.producers.epoch_of(7)) == (
        1,
        3,
    )
    end(edge, 7, epoch=4, version=2)
    assert (partition.log.producers.open_transaction(7), partition.log.producers.epoch_of(7)) == (
        None,
        4,
    )
    assert refusal(lambda: send(partition, 7, 1, 3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(lambda: send(partition, 7, 1, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 7, 0, 4) == 3


def test_what_a_marker_looks_like() -> None:
    edge, partition = topic({"flush": "interval"})
    end(edge, 7, epoch=5, commit=False, coordinator_epoch=9)
    piece = partition.read(0, 1 << 20, committed_only=False, at_least_one=True)
    ((header, batch),) = batches_in(piece)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (7, 5, START_MS)
    assert parse_marker(batch, header) == (0, 9)


def test_markers_are_refused_as_kafka_does() -> None:
    edge, partition = topic({"flush": "interval"})
    send(partition, 7, epoch=3)
    assert refusal(lambda: end(edge, 7, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(lambda: end(edge, 7, epoch=3, version=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(edge, 7, epoch=4, version=2, coordinator_epoch=6)
    late = refusal(lambda: end(edge, 7, epoch=5, version=2, coordinator_epoch=5))
    assert late is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(edge, 7, epoch=4, version=2, coordinator_epoch=6)  # once more, as after a restart
    assert partition.log.end_offset == 3
    unknown = refusal(lambda: write_marker(edge.node, "orders", 1, Marker(7, 0, True, 0), 0))
    assert unknown is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_full_disk_refuses_a_marker_without_a_trace() -> None:
    edge, partition = topic()
    send(partition, 7)
    edge.settle()
    disk = edge.disk
    assert isinstance(disk, MemoryDisk)
    disk.room = 0
    assert refusal(lambda: end(edge, 7)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.log.producers.open_transaction(7) == 0
    disk.room = None
    end(edge, 7)
    edge.settle()
    assert partition.last_stable_offset == 2


def test_a_marker_in_a_topic_that_is_deleted_fails() -> None:
    edge = Edge(MemoryDisk()).start()
    record = edge.create("orders")
    send(edge.node.partitions[NAME], 7)
    edge.settle()
    edge.hold_syncs = True
    failures: list[Exception] = []
    end(edge, 7).when_done(lambda _: None, failures.append)
    edge.settle()
    edge.hold_syncs = False
    edge.delete(record)
    (failure,) = failures
    assert isinstance(failure, ApiError)
    assert failure.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_coordinators_batches_are_part_of_transactions_unless_they_come_late() -> None:
    edge, partition = topic({"flush": "interval"})

    def commit_offset(epoch: int) -> None:
        content = [Record(0, START_MS, b"k", b"v")]
        batch = build(content, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=epoch)
        partition.leader.append_own(batch)

    commit_offset(0)
    commit_offset(0)
    assert partition.log.producers.open_transaction(7) == 0
    end(edge, 7, epoch=1, version=2)
    assert refusal(lambda: commit_offset(0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.log.end_offset == 3


def test_a_groups_coordinator_gets_markers_after_the_records_they_end() -> None:
    edge, partition = topic({"flush": "interval"}, GROUPS_TOPIC)
    heard: list[tuple[ProducerIdAndEpoch, bool, int]] = []
    shard = edge.node.coordinators.groups.shard_on(0)
    assert shard is not None
    known = shard.machine.offsets

    class Machine:
        offsets = known

        def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
            heard.append((producer, committed, partition.log.end_offset))

    shard.machine = Machine()  # type: ignore[assignment]
    end(edge, 7, name=GROUPS_TOPIC)
    end(edge, 8, epoch=3, commit=False, name=GROUPS_TOPIC)
    assert heard == [
        (ProducerIdAndEpoch(7, 0), True, 1),
        (ProducerIdAndEpoch(8, 3), False, 2),
    ]
    assert refusal(lambda: end(edge, 8, epoch=2, name=GROUPS_TOPIC))
    assert len(heard) == 2


def test_transactional_batches_need_a_producer() -> None:
    _, partition = topic({"flush": "interval"})
    batch = make_batch(timestamp=START_MS, attributes=TRANSACTIONAL)
    assert refusal(lambda: partition.leader.append(batch, START_MS)) is ErrorCode.INVALID_RECORD
    own = make_batch(timestamp=START_MS, producer=(7, 0, -1), attributes=TRANSACTIONAL)
    assert refusal(lambda: partition.leader.append(own, START_MS)) is ErrorCode.INVALID_RECORD


def test_a_batch_outside_of_the_producers_transaction_is_refused() -> None:
    edge, partition = topic({"flush": "interval"})
    send(partition, 7)
    outside = make_batch(timestamp=START_MS, producer=(7, 0, 1))
    assert (
        refusal(lambda: partition.leader.append(outside, START_MS)) is ErrorCode.INVALID_TXN_STATE
    )
    end(edge, 7)
    assert partition.leader.append(outside, START_MS).base_offset == 2


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_finds_what_was_stable(clean: bool) -> None:
    edge, partition = topic()
    send(partition, 7)
    end(edge, 7, commit=False)
    send(partition, 8)
    edge.settle()
    assert partition.last_stable_offset == 2
    if clean:
        edge.stop()
    again = Edge(edge.disk).start().node.partitions[NAME]
    assert (again.high_watermark, again.last_stable_offset) == (3, 2)
    assert (again.log.producers.open_transaction(7), again.log.producers.open_transaction(8)) == (
        None,
        2,
    )
    piece = again.read(0, 1 << 20, committed_only=True, at_least_one=True)
    assert again.aborted(0, piece) == ((7, 0),)


def test_chores_leave_open_transactions_alone() -> None:
    edge, partition = topic({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
    for sequence in range(3):
        send(partition, 7, sequence)
        partition.log.roll()
    edge.settle()
    edge.now_ms += 100 * 24 * 3_600_000
    edge.do(edge.maintenance.retain)
    assert partition.log.producers.open_transaction(7) == 0
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("compacted a log") == []
    end(edge, 7, commit=False)
    edge.settle()
    partition.log.roll()
    partition.leader.append(make_batch(timestamp=edge.now_ms), edge.now_ms)
    edge.settle()
    edge.do(edge.maintenance.compact)
    (said,) = edge.notices_of("compacted a log")
    assert said.facts["records_after"] == 1  # the marker
    assert partition.last_stable_offset == 5
