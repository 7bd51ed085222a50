"""Tests scrubbing: it finds damage in data that no client reads, and reports nothing else."""

from barnabas.effects import Verify
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import BrokerSettings, Settings, StorageSettings
from barnabas.node.chores.scrubbing import GATHER_MS, Scrubbing
from barnabas.node.partitions.partition import Partition
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch
from tests.support.talk.edge import START_MS, Edge

SMALL = {"segment.bytes": "1024"}


def filled(edge: Edge, name: str = "orders", count: int = 40) -> Partition:
    edge.create(name, SMALL, number=len(edge.node.partitions) + 1)
    partition = edge.node.partitions[TopicPartition(name, 0)]
    for number in range(count):
        partition.leader.append(make_batch([(b"key", b"%d" % number * 20)]), START_MS)
        edge.settle()
    return partition


def flip(edge: Edge, partition: Partition, number: int) -> int:
    """Damage the last batch of a segment; return its position."""
    segment = partition.log.segments[number]
    assert isinstance(edge.disk, MemoryDisk)
    position = segment.boundary_before(segment.size - 1)
    while (end := segment.first_batch_end(position)) < segment.size:
        position = end
    edge.disk.flip(segment.paths[0], (segment.size - 3) * 8)
    return position


def scrub(edge: Edge) -> None:
    scrubbing = Scrubbing(edge.node)
    edge.do(scrubbing.check_all)
    edge.pass_time(GATHER_MS)


def test_what_is_whole_is_reported_to_be() -> None:
    edge = Edge(MemoryDisk()).start()
    partition = filled(edge)
    scrub(edge)
    assert partition.health.damaged_at is None
    (told,) = edge.notices_of("checked all stored records")
    assert told.facts == {"damaged": 0}


def test_damage_in_sealed_and_in_active_segments_is_found() -> None:
    edge = Edge(MemoryDisk()).start()
    partition = filled(edge)
    active = flip(edge, partition, -1)
    scrub(edge)
    (told,) = edge.notices_of("found damage")
    assert told.facts["byte"] == active
    assert partition.health.damaged_at == partition.log.segments[-1].base_offset
    flip(edge, partition, 2)
    scrub(edge)
    assert partition.health.damaged_at == partition.log.segments[2].base_offset


def test_a_segment_found_damaged_is_not_served_from_there_on() -> None:
    edge = Edge(MemoryDisk()).start()
    partition = filled(edge)
    log = partition.log
    segment = log.segments[1]
    before = log.read(segment.base_offset, 10_000, log.end_offset, at_least_one=True)
    assert before is not None
    assert before.length == segment.size
    flip(edge, partition, 1)
    scrub(edge)
    after = log.read(segment.base_offset, 10_000, log.end_offset, at_least_one=True)
    assert after is not None
    assert after.length < segment.size


def test_a_log_that_was_cut_meanwhile_is_not_called_damaged() -> None:
    edge = Edge(MemoryDisk()).start()
    partition = filled(edge)
    scrubbing = Scrubbing(edge.node)
    scrubbing.check_all()
    timers = edge.node.timers
    timers.now_ms += GATHER_MS
    timers.fire()
    (asked,) = [effect for effect in edge.node.outbox if isinstance(effect, Verify)]
    edge.node.outbox.clear()
    path, size = asked.files[-1]
    partition.log.truncate(partition.log.end_offset - 1)
    asked.done([(path, size - 70)])  # the position of a batch that was deleted
    assert partition.health.damaged_at is None


def test_what_is_opened_is_checked_where_settings_want_it() -> None:
    disk = MemoryDisk()
    edge = Edge(disk).start()
    partition = filled(edge)
    edge.stop()
    flip(edge, partition, -1)
    settings = Settings(
        broker=BrokerSettings(data_dir="data"), storage=StorageSettings(verify_on_start=True)
    )
    again = Edge(disk, settings).start()
    again.do(again.maintenance.start)
    again.pass_time(GATHER_MS)
    assert again.notices_of("found damage")
    late = filled(again, "late", 3)
    flip(again, late, -1)
    again.pass_time(GATHER_MS)
    assert late.health.damaged_at == 0
