"""Tests a whole node on a disk that loses data: recreated topics, lost metadata, power cuts."""

from random import Random

import pytest

from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.steps import Work, finish
from barnabas.node.chores import checkpointing
from barnabas.node.node import Node
from barnabas.protocol.records import BatchHeader
from barnabas.storage.segment import Segment
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch, read_all
from tests.support.talk.edge import START_MS, Edge

NAME = TopicPartition("orders", 0)


def store_points(node: Node) -> None:
    points = finish(checkpointing.current_points(node, Work()))
    checkpointing.store_points(node, points)


def send(edge: Edge, count: int, value: bytes = b"v", name: TopicPartition = NAME) -> None:
    partition = edge.node.partitions[name]
    for _ in range(count):
        partition.leader.append(make_batch([(b"k", value)], timestamp=START_MS), START_MS)
        edge.settle()


def values(edge: Edge, name: TopicPartition = NAME) -> set[bytes]:
    log = edge.node.partitions[name].log
    return {bytes(batch[-10:]) for _, batch in read_all(log)}


def cut(edge: Edge, seed: int) -> Edge:
    assert isinstance(edge.disk, MemoryDisk)
    edge.disk.power_cut(Random(seed))
    return Edge(edge.disk).start()


@pytest.mark.parametrize("seed", range(20))
def test_what_was_acknowledged_survives(seed: int) -> None:
    edge = Edge(MemoryDisk()).start()
    edge.create("orders", {"segment.bytes": "1024"})
    send(edge, 30)
    promised = edge.node.partitions[NAME].high_watermark
    edge = cut(edge, seed)
    assert edge.node.partitions[NAME].log.end_offset == promised == 30
    send(edge, 3)
    assert cut(edge, seed + 1).node.partitions[NAME].log.end_offset == 33


@pytest.mark.parametrize("seed", range(20))
def test_a_topic_recreated_never_shows_the_old_ones_records(seed: int) -> None:
    edge = Edge(MemoryDisk()).start()
    old = edge.create("orders", number=1)
    send(edge, 5, b"of the old")
    store_points(edge.node)
    edge.delete(old)
    edge.create("orders", number=2)
    if seed % 2:
        send(edge, 2, b"of the new")
    edge = cut(edge, seed)
    log = edge.node.partitions[NAME].log
    assert log.end_offset == (2 if seed % 2 else 0)
    assert not any(b"old" in value for value in values(edge))


def test_a_deletion_that_a_crash_cut_short_does_not_leak_into_a_new_topic() -> None:
    """The process dies after the deletion is synced and before the folder is moved."""
    edge = Edge(MemoryDisk()).start()
    old = edge.create("orders", number=1)
    send(edge, 5, b"of the old")
    edge.node.metadata_changed = lambda changes: None  # type: ignore[method-assign]
    edge.delete(old)
    edge = Edge(edge.disk).start()
    assert edge.notices_of("a folder belongs to no topic")
    edge.create("orders", number=2)
    assert edge.node.partitions[NAME].log.end_offset == 0
    assert edge.notices_of("a topic's folder was not as expected")


def test_recovery_points_of_a_deleted_topic_say_nothing_of_the_next() -> None:
    edge = Edge(MemoryDisk()).start()
    old = edge.create("orders", number=1)
    send(edge, 50)
    store_points(edge.node)
    edge.delete(old)
    edge.create("orders", {"flush": "interval"}, number=2)
    edge.node.partitions[NAME].leader.append(make_batch(timestamp=START_MS), START_MS)
    assert isinstance(edge.disk, MemoryDisk)
    path = edge.node.partitions[NAME].log.active.paths[0]
    edge.disk.flip(path, (edge.disk.size(path) - 1) * 8)
    assert Edge(edge.disk).start().node.partitions[NAME].log.end_offset == 0


def test_topics_without_metadata_stop_the_start() -> None:
    edge = Edge(MemoryDisk()).start()
    edge.create("orders")
    send(edge, 1)
    edge.disk.remove_tree("data/__cluster_metadata")
    with pytest.raises(StorageError, match="metadata that describes them is gone"):
        Edge(edge.disk).start()


def test_names_that_look_like_leftovers_are_names() -> None:
    for name in ("orders.deleted", "orders.tmp", "orders.swap"):
        edge = Edge(MemoryDisk()).start()
        edge.create(name)
        send(edge, 2, name=TopicPartition(name, 0))
        again = Edge(edge.disk).start()
        assert again.node.partitions[TopicPartition(name, 0)].log.end_offset == 2


@pytest.mark.parametrize("seed", range(10))
def test_a_clean_stop_counts_once(seed: int) -> None:
    edge = Edge(MemoryDisk()).start()
    edge.create("orders", {"segment.bytes": "1024"})
    send(edge, 20)
    edge.stop()
    edge = cut(edge, seed)
    assert edge.node.partitions[NAME].log.end_offset == 20
    edge.hold_syncs = True
    send(edge, 20)
    promised = edge.node.partitions[NAME].log.flushed_offset
    edge = cut(edge, seed)
    log = edge.node.partitions[NAME].log
    assert promised <= log.end_offset <= 40
    assert len(read_all(log)) == log.end_offset


def test_nothing_is_stored_for_a_topic_before_its_creation_is() -> None:
    edge = Edge(MemoryDisk()).start()
    edge.hold_syncs = True
    edge.create("first", number=1)
    edge.create("second", number=2)
    edge.release()
    assert [name.topic for name in edge.node.partitions] == ["first"]
    edge.release()
    assert [name.topic for name in edge.node.partitions] == ["first", "second"]


def test_producer_ids_are_never_given_out_twice() -> None:
    for seed in range(10):
        edge = Edge(MemoryDisk()).start()
        given: list[int] = []
        edge.node.next_producer_id(START_MS).when_done(given.append)
        edge.settle()
        edge.hold_syncs = True
        for _ in range(3):
            edge.node.next_producer_id(START_MS).when_done(given.append)
        edge.settle()
        edge = cut(edge, seed)
        edge.node.next_producer_id(START_MS).when_done(given.append)
        edge.settle()
        assert len(given) == len(set(given)) >= 2


def test_a_start_after_a_crash_reads_only_what_was_written_since_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = [0]
    original = Segment.note

    def note(self: Segment, position: int, header: BatchHeader, base_offset: int) -> None:
        noted[0] += 1
        original(self, position, header, base_offset)

    edge = Edge(MemoryDisk()).start()
    edge.create("orders", {"flush": "interval"})
    send(edge, 8_000)
    for _ in range(2):  # one checkpoint takes the snapshot, the next one stores it
        edge.node.partitions[NAME].flusher.flush()
        edge.settle()
        finish(checkpointing.checkpoint(edge.node))()
        edge.settle()
    send(edge, 7)
    monkeypatch.setattr(Segment, "note", note)
    edge = Edge(edge.disk).start()
    assert edge.node.partitions[NAME].log.end_offset == 8_007
    assert noted[0] < 100
