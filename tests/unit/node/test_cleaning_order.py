"""Tests which log is compacted next, and that each gets its turn."""

from collections.abc import Callable

import pytest

from barnabas.effects import Clean
from barnabas.model.ids import TopicPartition
from barnabas.node.chores import cleaning_order
from barnabas.node.chores.cleaning_order import LOOK_COST, CleaningOrder
from barnabas.node.chores.maintenance import CLEAN_AGAIN_AFTER_MS
from barnabas.node.partitions.partition import Partition
from barnabas.storage.compacting import compaction
from barnabas.storage.compacting.compaction import ROOM_TO_SPARE_BYTES
from barnabas.storage.sweeping import CLEANING_FOLDER
from tests.support.disks.log_changes import drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch
from tests.support.talk.edge import START_MS, Edge

DAY_MS = 86_400_000
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": "1024",
}


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def edge(disk: MemoryDisk) -> Edge:
    return Edge(disk).start()


def topics(edge: Edge, *names: str, **config: str) -> list[Partition]:
    """Make topics of one partition each, all compacted."""
    overrides = {name.replace("_", "."): value for name, value in config.items()}
    for number, name in enumerate(names, len(edge.node.partitions) + 1):
        edge.create(name, {**COMPACTED, **overrides}, number)
    return [edge.node.partitions[TopicPartition(name, 0)] for name in names]


def fill(edge: Edge, partition: Partition, count: int = 40) -> None:
    for number in range(count):
        pair = (b"key", b"%d" % number * 20)
        partition.leader.append(make_batch([pair], timestamp=edge.now_ms), edge.now_ms)
        edge.settle()


def ranked(edge: Edge) -> list[str]:
    """Return the partitions in the order in which a new round would clean them."""
    found: list[list[Partition]] = []
    CleaningOrder(edge.node, lambda: edge.now_ms, lambda _: True).look(found.append)
    (partitions,) = found
    return [partition.name.topic for partition in partitions]


def wanted(edge: Edge) -> list[Clean]:
    """Carry out everything except compactions, and return those."""
    found: list[Clean] = []
    while edge.node.outbox:
        effects = edge.node.outbox[:]
        edge.node.outbox.clear()
        for effect in effects:
            if isinstance(effect, Clean):
                found.append(effect)
            else:
                edge._carry_out(effect)
    return found


def compact_in_turns(edge: Edge, count: int, during: Callable[[int], None]) -> list[str]:
    """Run compactions, with `during` in the middle of each; return the topics in their order."""
    turns: list[str] = []
    edge.maintenance.compact()
    for _ in range(count):
        (work,) = wanted(edge)
        turns.append(work.plan.folder.split("/")[-2])
        cleaned = compaction.clean(edge.disk, work.plan)
        during(len(turns))
        work.done(cleaned)
    return turns


def test_a_partition_that_is_dirty_again_at_once_does_not_starve_the_others(edge: Edge) -> None:
    busy, *others = topics(edge, "busy", "second", "third")
    for partition in (busy, *others):
        fill(edge, partition)

    def fill_again(turn: int) -> None:
        fill(edge, busy)
        if turn == 3:
            fill(edge, others[1])

    turns = compact_in_turns(edge, 9, fill_again)
    assert sorted(turns[:3]) == ["busy", "second", "third"]
    assert sorted(turns[3:5]) == ["busy", "third"]
    assert turns[5:] == ["busy"] * 4


def test_each_waits_for_at_most_one_compaction_of_every_other(edge: Edge) -> None:
    """Test the same if all of them are dirty again at once, some more than others."""
    partitions = topics(edge, "a", "b", "c", "d")
    for partition in partitions:
        fill(edge, partition)

    def fill_again(_: int) -> None:
        for number, partition in enumerate(partitions):
            fill(edge, partition, 10 + 10 * number)

    turns = compact_in_turns(edge, 12, fill_again)
    rounds = [sorted(turns[first : first + 4]) for first in range(0, 12, 4)]
    assert rounds == [["a", "b", "c", "d"]] * 3


def test_the_dirtiest_comes_first(edge: Edge) -> None:
    nearly_clean, dirty = topics(edge, "nearly-clean", "dirty")
    fill(edge, nearly_clean)
    edge.do(edge.maintenance.compact)
    # Compacted logs are small: only the dirty share counts.
    fill(edge, nearly_clean, 20)
    fill(edge, dirty, 20)
    assert ranked(edge) == ["dirty", "nearly-clean"]


def test_what_is_overdue_comes_before_what_is_dirtier(edge: Edge) -> None:
    (overdue,) = topics(edge, "overdue", max_compaction_lag_ms=str(DAY_MS))
    (dirty,) = topics(edge, "dirty")
    fill(edge, overdue)
    edge.do(edge.maintenance.compact)
    fill(edge, overdue, 20)
    fill(edge, dirty, 20)
    assert ranked(edge) == ["dirty", "overdue"]
    edge.now_ms += DAY_MS + 1
    assert ranked(edge) == ["overdue", "dirty"]


def test_one_event_looks_at_a_bounded_number_of_partitions(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(12)]
    for partition in topics(edge, *names):
        fill(edge, partition, 20)
    monkeypatch.setattr(cleaning_order, "READ_COST", 0)
    monkeypatch.setattr(cleaning_order, "PIECE", 3 * LOOK_COST)
    looks: list[int] = []
    look = compaction.dirt_in

    def counted(*args: object, **facts: object) -> object:
        looks[-1] += 1
        return look(*args, **facts)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "dirt_in", counted)
    looks.append(0)
    edge.maintenance.compact()
    found = wanted(edge)
    while not found and len(looks) < 20:
        edge.maintenance.compact()  # a tick in between changes nothing
        assert looks[-1] > 0
        looks.append(0)
        edge.node.timers.now_ms += 1
        edge.node.timers.fire()
        found = wanted(edge)
    assert len(found) == 1
    assert looks == [3, 3, 3, 3 + 1]  # once more for the plan


def test_a_log_that_cannot_be_looked_at_keeps_no_other_from_its_turn(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, good = topics(edge, "broken", "good")
    fill(edge, broken)
    fill(edge, good)
    read = compaction.read_checkpoint

    def fail(log: object) -> int:
        if log is broken.log:
            raise OSError(5, "broken")
        return read(good.log)

    monkeypatch.setattr(compaction, "read_checkpoint", fail)
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("cannot decide whether to compact a log")
    (notice,) = edge.notices_of("compacted a log")
    assert notice.facts["partition"] == "good-0"


def test_the_checkpoint_of_a_log_is_not_read_at_every_turn(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of logs the check would open thousands of files each time."""
    (partition,) = topics(edge, "orders", min_cleanable_dirty_ratio="1")
    fill(edge, partition)
    edge.do(edge.maintenance.compact)
    fill(edge, partition, 20)
    read, count = compaction.read_checkpoint, 0

    def counted(log: object) -> int:
        nonlocal count
        count += 1
        return read(partition.log)

    monkeypatch.setattr(compaction, "read_checkpoint", counted)
    for _ in range(5):
        edge.do(edge.maintenance.compact)
    assert count == 0
    assert len(edge.notices_of("compacted a log")) == 1


def test_without_room_no_compaction_begins_and_the_log_says_why(
    edge: Edge, disk: MemoryDisk
) -> None:
    (partition,) = topics(edge, "orders")
    fill(edge, partition)
    disk.room = ROOM_TO_SPARE_BYTES
    for _ in range(5):
        edge.do(edge.maintenance.compact)
    (notice,) = edge.notices_of("no room to compact a log")
    assert notice.facts["partition"] == "orders-0"
    assert notice.facts["free_bytes"] < notice.facts["needed_bytes"]
    assert not disk.exists(f"{partition.log.folder}/{CLEANING_FOLDER}")
    disk.room = None
    edge.do(edge.maintenance.compact)
    assert not edge.notices_of("compacted a log")
    edge.node.timers.now_ms += CLEAN_AGAIN_AFTER_MS
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("compacted a log")


def test_the_room_that_is_left_goes_to_a_log_that_needs_less(edge: Edge, disk: MemoryDisk) -> None:
    large, small = topics(edge, "large", "small")
    fill(edge, large, 200)
    fill(edge, small, 12)
    first = large.log.segments[0]
    first.size += 10_000  # so that it needs more space than there is
    disk.room = ROOM_TO_SPARE_BYTES + 5_000
    edge.do(edge.maintenance.compact)
    assert edge.notices_of("no room to compact a log")
    (notice,) = edge.notices_of("compacted a log")
    assert notice.facts["partition"] == "small-0"


def test_the_output_that_a_log_cannot_use_is_removed(edge: Edge, disk: MemoryDisk) -> None:
    """Retention dropped segments, or the leader truncated some, while the log was cleaned."""
    (partition,) = topics(edge, "orders")
    fill(edge, partition)
    edge.maintenance.compact()
    (work,) = wanted(edge)
    cleaned = compaction.clean(disk, work.plan)
    assert disk.list(f"{partition.log.folder}/{CLEANING_FOLDER}")
    drop_segments(partition.log, 1)
    work.done(cleaned)
    edge.settle()
    assert not disk.exists(f"{partition.log.folder}/{CLEANING_FOLDER}")
    assert not edge.notices_of("compacted a log")


def test_a_record_is_compacted_when_its_deadline_has_come_though_its_segment_is_active(
    edge: Edge,
) -> None:
    config = {
        "segment_bytes": "1000000",
        "min_cleanable_dirty_ratio": "1",
        "max_compaction_lag_ms": "5000",
    }
    (partition,) = topics(edge, "orders", **config)
    fill(edge, partition, 3)
    edge.now_ms += 5_000
    edge.do(edge.maintenance.compact)
    assert len(partition.log.segments) == 1
    edge.now_ms += 1
    edge.do(edge.maintenance.compact)
    assert len(partition.log.segments) == 2
    edge.do(edge.maintenance.flush)
    edge.node.timers.now_ms += 10_000
    edge.do(edge.maintenance.flush)
    edge.do(edge.maintenance.compact)
    (notice,) = edge.notices_of("compacted a log")
    assert (notice.facts["records_before"], notice.facts["records_after"]) == (3, 1)
    assert edge.now_ms == START_MS + 5_001


def test_a_deadline_holds_for_the_oldest_record_and_not_for_the_newest(edge: Edge) -> None:
    (partition,) = topics(
        edge, "orders", min_cleanable_dirty_ratio="1", max_compaction_lag_ms="5000"
    )
    fill(edge, partition, 12)
    edge.do(edge.maintenance.compact)
    before = len(edge.notices_of("compacted a log"))
    for _ in range(2):
        fill(edge, partition, 3)
        edge.now_ms += 3_000
    partition.log.roll()
    partition.log.flush()
    edge.do(edge.maintenance.compact)
    assert len(edge.notices_of("compacted a log")) == before + 1
