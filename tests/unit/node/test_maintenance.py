"""Tests chores: what they do, and that one that fails does not stop the others."""

from itertools import pairwise

import pytest

from barnabas.effects import MakeDurable
from barnabas.metadata.metadata_records import ConfigChanged
from barnabas.model.ids import TopicPartition
from barnabas.node.chores.maintenance import (
    CLEAN_AGAIN_AFTER_MS,
    DROPPED_AN_EVENT,
    DROPPING_AT_ONCE,
    FLUSH_TICK_MS,
    FLUSHED_AN_EVENT,
    ROLLED_AN_EVENT,
)
from barnabas.node.partitions.partition import Partition
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch, read_all
from tests.support.talk.edge import START_MS, Edge

SMALL = {"segment.bytes": "1024"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": "1024",
}


@pytest.fixture
def edge() -> Edge:
    return Edge(MemoryDisk()).start()


def disk_of(edge: Edge) -> MemoryDisk:
    assert isinstance(edge.disk, MemoryDisk)
    return edge.disk


def fill(edge: Edge, name: str, count: int = 40, timestamp: int = START_MS) -> Partition:
    partition = edge.node.partitions[TopicPartition(name, 0)]
    for number in range(count):
        batch = make_batch([(b"key", b"%d" % number * 20)], timestamp=timestamp)
        partition.leader.append(batch, timestamp)
        edge.settle()
    return partition


def test_retention_drops_what_is_too_old_and_its_files(edge: Edge) -> None:
    edge.create("orders", {**SMALL, "retention.ms": "1000"})
    partition = fill(edge, "orders")
    edge.do(edge.maintenance.retain)
    assert partition.log.start_offset == 0
    edge.now_ms += 1_001
    edge.do(edge.maintenance.retain)
    assert (partition.log.start_offset, partition.log.end_offset) == (40, 40)
    names = disk_of(edge).list(partition.log.folder)
    assert [name for name in names if name.endswith(".log")] == [f"{40:020d}.log"]
    assert edge.notices_of("dropped old segments")


def test_retention_frees_a_full_disk(edge: Edge) -> None:
    edge.create("orders", {**SMALL, "retention.bytes": "1500"})
    partition = fill(edge, "orders")
    disk = disk_of(edge)
    disk.room = 0
    edge.do(edge.maintenance.retain)
    assert partition.log.start_offset > 0
    assert disk.room > 1_000
    before = partition.log.end_offset
    fill(edge, "orders", 3)
    assert partition.log.end_offset == before + 3


def test_a_segment_that_cannot_be_rolled_does_not_delay_others(edge: Edge) -> None:
    for number, name in enumerate(("first", "second"), 1):
        edge.create(name, {**SMALL, "segment.ms": "500", "retention.bytes": "0"}, number)
        fill(edge, name)
    disk = disk_of(edge)

    def before(operation: str, path: str) -> None:
        if operation == "create" and "first" in path:
            raise OSError(5, "broken", path)

    disk.before = before
    edge.now_ms += 501
    edge.do(edge.maintenance.retain)
    edge.pass_time(1)
    assert edge.notices_of("cannot begin a new segment")
    second = edge.node.partitions[TopicPartition("second", 0)].log
    assert second.start_offset == second.end_offset == 40


def test_a_failing_chore_gets_its_next_turn(edge: Edge) -> None:
    edge.maintenance.start()
    turns = []

    def flush() -> None:
        turns.append(edge.node.timers.now_ms)
        raise RuntimeError("once")

    edge.maintenance._every(FLUSH_TICK_MS, flush)
    for _ in range(2):
        edge.node.timers.now_ms += FLUSH_TICK_MS
        with pytest.raises(RuntimeError, match="once"):
            edge.node.timers.fire()
    assert len(turns) == 2


def test_silent_producers_are_forgotten(edge: Edge) -> None:
    edge.create("orders")
    partition = edge.node.partitions[TopicPartition("orders", 0)]
    partition.leader.append(make_batch(timestamp=START_MS, producer=(1, 0, 0)), START_MS)
    edge.do(edge.maintenance.retain)
    assert partition.log.producers.by_id
    edge.now_ms += edge.node.settings.storage.producer_id_expiration_ms + 1
    edge.do(edge.maintenance.retain)
    assert not partition.log.producers.by_id


def test_an_interval_is_kept(edge: Edge) -> None:
    edge.create("orders", {"flush": "interval", "flush.ms": "1000"})
    partition = fill(edge, "orders", 1)
    timers = edge.node.timers
    edge.do(edge.maintenance.flush)
    timers.now_ms += 999
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 0
    timers.now_ms += 1
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 1


def test_a_number_of_messages_does_not_wait_for_the_interval(edge: Edge) -> None:
    edge.create("orders", {"flush": "interval", "flush.messages": "3"})
    partition = fill(edge, "orders", 2)
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 0
    fill(edge, "orders", 1)
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 3


def test_a_segment_that_time_sealed_is_synced_without_further_appends(edge: Edge) -> None:
    edge.create("orders", {"segment.ms": "500"})
    partition = fill(edge, "orders", 1)
    edge.now_ms += 501
    edge.do(edge.maintenance.retain)
    assert partition.log.unsynced.any_files
    edge.do(edge.maintenance.flush)
    edge.node.timers.now_ms += 10_000
    edge.do(edge.maintenance.flush)
    assert not partition.log.unsynced.any_files


def test_only_partitions_with_something_to_sync_are_looked_at(edge: Edge) -> None:
    edge.create("idle", {"flush": "interval"}, number=1)
    edge.create("orders", {"flush": "interval", "flush.ms": "1000"}, number=2)
    edge.do(edge.maintenance.flush)
    waiting = edge.node.commits.unsynced
    assert not waiting
    partition = fill(edge, "orders", 1)
    assert list(waiting) == [partition.flusher]
    edge.do(edge.maintenance.flush)
    edge.node.timers.now_ms += 1000
    edge.do(edge.maintenance.flush)
    assert partition.log.is_synced
    edge.do(edge.maintenance.flush)
    assert not waiting


def test_what_is_appended_during_a_sync_waits_for_the_next(edge: Edge) -> None:
    edge.create("orders", {"flush": "interval", "flush.ms": "0"})
    partition = fill(edge, "orders", 1)
    edge.hold_syncs = True
    edge.do(edge.maintenance.flush)
    fill(edge, "orders", 1)
    edge.do(edge.maintenance.flush)
    edge.hold_syncs = False
    edge.release()
    assert partition.log.flushed_offset == 1
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 2


def test_what_waits_when_a_topic_leaves_its_syncs_to_the_clock_is_synced_by_it(edge: Edge) -> None:
    record = edge.create("orders")
    edge.hold_syncs = True
    partition = fill(edge, "orders", 2)
    changed = ConfigChanged(
        kind="topic", name=record.name, changes={"flush": "interval", "flush.ms": "0"}
    )
    edge.hold_syncs = False
    edge.node.commit([changed], edge.now_ms)
    edge.settle()
    edge.release()
    assert partition.log.flushed_offset == 1
    edge.do(edge.maintenance.flush)
    assert partition.log.flushed_offset == 2


def test_a_deleted_partition_waits_for_nothing(edge: Edge) -> None:
    record = edge.create("orders", {"flush": "interval", "flush.ms": "0"})
    fill(edge, "orders", 1)
    edge.delete(record)
    edge.do(edge.maintenance.flush)
    assert not edge.node.commits.unsynced


def test_compacted_topics_are_compacted(edge: Edge) -> None:
    edge.create("orders", COMPACTED)
    partition = fill(edge, "orders")
    before = len(read_all(partition.log))
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("compacted a log")
    assert len(read_all(partition.log)) < before
    assert partition.log.end_offset == 40


def test_a_damaged_log_does_not_keep_the_others_from_compaction(edge: Edge) -> None:
    for number, name in enumerate(("first", "second"), 1):
        edge.create(name, COMPACTED, number)
        fill(edge, name)
    first = edge.node.partitions[TopicPartition("first", 0)].log
    disk_of(edge).flip(first.segments[0].paths[0], 80 * 8)
    edge.do(edge.maintenance.compact)
    edge.do(edge.maintenance.compact)
    (notice,) = edge.notices_of("compacted a log")
    assert notice.facts["partition"] == "second-0"
    disk_of(edge).flip(first.segments[0].paths[0], 80 * 8)
    edge.node.timers.now_ms += CLEAN_AGAIN_AFTER_MS
    edge.do(edge.maintenance.compact)
    assert len(edge.notices_of("compacted a log")) == 2


def test_a_swap_that_the_disk_refuses_is_tried_later(edge: Edge) -> None:
    edge.create("orders", COMPACTED)
    partition = fill(edge, "orders")
    contents = [bytes(batch) for _, batch in read_all(partition.log)]

    def before(operation: str, path: str) -> None:
        if operation == "rename" and path.endswith(".swap"):
            raise OSError(5, "broken", path)

    disk_of(edge).before = before
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("cannot swap in a compacted log")
    assert [bytes(batch) for _, batch in read_all(partition.log)] == contents
    disk_of(edge).before = None
    edge.pass_time(CLEAN_AGAIN_AFTER_MS)
    edge.do(edge.maintenance.compact)
    assert len(read_all(partition.log)) < 40
    again = Edge(edge.disk).start().node.partitions[TopicPartition("orders", 0)].log
    assert again.end_offset == 40
    assert len(read_all(again)) < 40


def test_a_topic_deleted_during_its_compaction_stays_deleted(edge: Edge) -> None:
    record = edge.create("orders", COMPACTED)
    fill(edge, "orders")
    edge.maintenance.compact()
    effects = edge.node.outbox[:]
    edge.node.outbox.clear()
    edge.delete(record)
    edge.node.outbox += effects
    edge.settle()
    assert disk_of(edge).list("data/topics") == []
    assert not edge.notices_of("compacted a log")
    assert edge.maintenance._cleaning is None


def test_a_round_of_retention_looks_at_a_few_partitions_an_event(edge: Edge) -> None:
    count = DROPPING_AT_ONCE + 2 * ROLLED_AN_EVENT
    for number in range(count):
        edge.create(f"orders-{number}", {**SMALL, "retention.ms": "1000"}, number + 1)
        fill(edge, f"orders-{number}", 5)
    edge.now_ms += 1_001
    edge.hold_syncs = True
    edge.do(edge.maintenance.retain)
    for number in range(1, DROPPING_AT_ONCE // ROLLED_AN_EVENT + 1):
        assert len(edge.held) == number * ROLLED_AN_EVENT
        edge.pass_time(1)
    edge.do(edge.maintenance.retain)
    assert len(edge.held) == DROPPING_AT_ONCE
    while edge.held:
        edge.release()
        edge.pass_time(1)
    assert {partition.log.start_offset for partition in edge.node.partitions.values()} == {5}


def test_a_log_of_many_segments_drops_a_few_an_event(edge: Edge) -> None:
    edge.create("orders", {**SMALL, "retention.ms": "1000"})
    partition = fill(edge, "orders", 200)
    segments = len(partition.log.segments)
    assert segments > 2 * DROPPED_AN_EVENT
    edge.now_ms += 1_001
    edge.hold_syncs = True
    edge.do(edge.maintenance.retain)
    left = [segments]
    while edge.held:
        edge.release()
        left.append(len(partition.log.segments))
    assert max(before - after for before, after in pairwise(left)) == DROPPED_AN_EVENT
    assert partition.log.start_offset == 200


def test_a_topic_that_is_recreated_while_its_records_are_deleted_keeps_its_own(
    edge: Edge,
) -> None:
    first = edge.create("orders")
    old = fill(edge, "orders", 5)
    edge.hold_syncs = True
    refused: list[Exception] = []
    edge.do(lambda: old.delete_before(4).when_done(lambda _: None, refused.append))
    edge.hold_syncs = False
    edge.delete(first)
    assert len(refused) == 1
    edge.create("orders", number=2)
    edge.release()
    again = fill(edge, "orders", 3)
    assert (again.log.start_offset, again.log.end_offset) == (0, 3)
    assert not disk_of(edge).exists(f"{again.log.folder}/log-start-offset")


def test_the_clock_begins_a_few_syncs_an_event(edge: Edge) -> None:
    for number in range(FLUSHED_AN_EVENT + 10):
        edge.create(f"orders-{number}", {"flush": "interval", "flush.messages": "2"}, number + 1)
        fill(edge, f"orders-{number}", 2)
    edge.hold_syncs = True
    edge.do(edge.maintenance.flush)
    assert len(edge.held) == FLUSHED_AN_EVENT
    edge.do(edge.maintenance.flush)
    assert len(edge.held) == FLUSHED_AN_EVENT
    edge.pass_time(1)
    assert len(edge.held) == FLUSHED_AN_EVENT + 10
    assert all(isinstance(sync, MakeDurable) for sync in edge.held)  # no producer waits for it
