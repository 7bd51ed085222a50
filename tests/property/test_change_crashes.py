"""Tests power cuts between any two file operations of a change while clients are served.

Records are appended and synced while a change waits for the disk, as producers do. Acknowledged
records must be there afterwards, whatever the state of the change.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from barnabas.metadata.metadata_records import TopicCreated
from barnabas.model.ids import TopicPartition
from barnabas.protocol.records import records
from barnabas.storage.changes import ChangeSteps, Sync
from barnabas.storage.compacting import compaction
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.trimming import advance_start, drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, read_all
from tests.support.talk.edge import Edge

FOLDER = "data/topics/orders/0"
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=100)
CUTS_PER_STEP = 4
FILLED = 12


class PlugPulled(Exception):  # noqa: N818 - nothing is wrong with the program
    """The power is off."""


def pull_at(disk: MemoryDisk, step: int) -> None:
    """Cut the power before a later step."""
    last = disk.steps + step

    def before(_: str, path: str) -> None:
        if disk.steps >= last:
            raise PlugPulled(path)

    disk.before = before


class Busy:
    """A log that gets appends while a change of it is in progress."""

    goes_on = True
    """Whether producers send while a change waits for the disk."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log = opened(self.disk)
        self.sent = 0
        self.promised = 0
        for _ in range(FILLED):
            self.send()

    def send(self) -> None:
        """Append a record, which is acknowledged once it is synced."""
        value = b"%d" % self.sent * 20
        key = b"key-%d" % (self.sent % 4)
        append(self.log, make_batch([(key, value)], timestamp=self.sent))
        self.sent += 1
        self.log.flush()
        self.promised = self.log.flushed_offset

    def carry_out(self, steps: ChangeSteps[Any]) -> None:
        for sync in steps:
            if self.goes_on:
                self.send()
            sync.carry_out(self.disk)
            if self.goes_on:
                self.send()


def opened(disk: MemoryDisk, recovery_point: int = 0) -> Log:
    return open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=recovery_point).log


class Found(NamedTuple):
    """The state that was found after a power cut."""

    log: Log
    busy: Busy
    offsets: list[int]
    where: str


Check = Callable[[Found], None]
Change = Callable[[Busy], ChangeSteps[Any]]


def every_cut(change: Change, check: Check) -> None:
    whole = Busy()
    steps_of_change = change(whole)
    before = whole.disk.steps
    whole.carry_out(steps_of_change)
    steps = whole.disk.steps - before
    for step in range(1, steps + 1):
        for cut in range(CUTS_PER_STEP):
            busy = Busy()
            point = busy.promised if cut % 2 else 0
            steps_of_change = change(busy)
            pull_at(busy.disk, step)
            with pytest.raises(PlugPulled):
                busy.carry_out(steps_of_change)
            busy.disk.power_cut(Random(step * 100 + cut))
            busy.disk.room = None
            log = opened(busy.disk, point)
            offsets = [r.offset for header, batch in read_all(log) for r in records(batch, header)]
            where = f"step {step}, cut {cut}"
            assert log.end_offset >= busy.promised, where
            assert offsets[-1] == log.end_offset - 1, where
            check(Found(log, busy, offsets, where))


def drop(busy: Busy) -> ChangeSteps[Any]:
    return drop_segments(busy.log, busy.log.segments[3].base_offset, [])


def drop_on_full_disk(busy: Busy) -> ChangeSteps[Any]:
    """A disk that does not store the new start."""

    def steps() -> ChangeSteps[None]:
        for sync in drop_segments(busy.log, busy.log.segments[3].base_offset, []):
            busy.disk.room = None  # another process has freed some space
            yield sync

    busy.disk.room = 0
    return steps()


def has_no_hole(found: Found) -> None:
    start = found.log.start_offset
    assert found.offsets == list(range(start, found.log.end_offset)), found.where
    assert start <= Busy().log.segments[3].base_offset, found.where


@pytest.mark.parametrize("change", [drop, drop_on_full_disk])
def test_retention_beside_appends_leaves_no_hole(change: Change) -> None:
    every_cut(change, has_no_hole)


def test_deletion_beside_appends_takes_effect_or_not() -> None:
    starts = set()

    def check(found: Found) -> None:
        starts.add(found.log.start_offset)
        has_no_hole(found)

    every_cut(lambda busy: advance_start(busy.log, 4), check)
    assert starts == {0, 4}


def swap(busy: Busy) -> ChangeSteps[Any]:
    work = compaction.plan(
        busy.log,
        compaction.Urgency(0, 0, 1 << 40),
        delete_retention_ms=10,
        now_ms=50,
        upto=busy.promised,
    )
    assert work is not None
    return compaction.apply(busy.log, compaction.clean(busy.disk, work))


def has_last_of_each_key(found: Found) -> None:
    assert found.offsets == sorted(set(found.offsets)), found.where
    end = found.log.end_offset
    assert set(found.offsets) >= set(range(end - 4, end)), found.where


def test_a_swap_beside_appends_loses_nothing() -> None:
    every_cut(swap, has_last_of_each_key)


@pytest.mark.parametrize(
    ("change", "check", "goes_on"),
    [(drop, has_no_hole, True), (swap, has_last_of_each_key, False)],
    ids=["drop", "swap"],
)
def test_a_change_that_does_not_wait_for_its_syncs_is_noticed(
    change: Change, check: Check, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: names may reach the disk in any order."""
    monkeypatch.setattr(Busy, "goes_on", goes_on)
    monkeypatch.setattr(Sync, "carry_out", lambda *_: None)
    with pytest.raises((AssertionError, IndexError)):
        every_cut(change, check)


TOPIC = TopicPartition("orders", 0)


class Reuse:
    """A topic is deleted and recreated with its name; the records of both must not mix."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.edge = Edge(self.disk).start()
        self.first = self.edge.create("orders")
        self.fill("old")

    def fill(self, value: str) -> None:
        partition = self.edge.node.partitions[TOPIC]
        for number in range(3):
            partition.leader.append(make_batch([(b"key", f"{value} {number}".encode())]), 1_000)
        self.edge.settle()

    def act(self) -> None:
        self.edge.delete(self.first)
        self.edge.create("orders", number=2)
        self.fill("new")


def found_values(edge: Edge) -> tuple[str, list[str]]:
    """Return the id of the topic, and the content of its log."""
    topic = edge.node.image.topics.get("orders")
    if topic is None:
        return "", []
    log = edge.node.partitions[TOPIC].log
    found = [r.value or b"" for header, batch in read_all(log) for r in records(batch, header)]
    return topic.topic_id.hex(), [value.decode() for value in found]


def test_a_deleted_topic_never_returns_as_another() -> None:
    whole = Reuse()
    before = whole.disk.steps
    whole.act()
    seen = set()
    for step in range(1, whole.disk.steps - before + 1):
        for cut in range(CUTS_PER_STEP):
            reuse = Reuse()
            pull_at(reuse.disk, step)
            with pytest.raises(PlugPulled):
                reuse.act()
            reuse.disk.power_cut(Random(step * 100 + cut))
            topic_id, values = found_values(Edge(reuse.disk).start())
            where = f"step {step}, cut {cut}"
            seen.add(topic_id)
            if topic_id == reuse.first.topic_id:
                assert values == ["old 0", "old 1", "old 2"], where
            else:
                assert values == [f"new {number}" for number in range(len(values))], where
    assert seen == {"", reuse.first.topic_id, made_again(whole).topic_id}


def made_again(reuse: Reuse) -> TopicCreated:
    topic = reuse.edge.node.image.topics["orders"]
    return TopicCreated(name=topic.name, topic_id=topic.topic_id.hex(), replicas=[])


def test_records_of_the_topic_that_was_made_again_stay() -> None:
    for cut in range(20):
        reuse = Reuse()
        reuse.act()
        reuse.disk.power_cut(Random(cut))
        _, values = found_values(Edge(reuse.disk).start())
        assert values == ["new 0", "new 1", "new 2"]
