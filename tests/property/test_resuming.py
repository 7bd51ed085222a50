"""Tests that recovery from a resume point finds the same as recovery from all headers."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model.steps import Work, finish
from barnabas.protocol.records import TRANSACTIONAL
from barnabas.storage import producer_snapshots, resuming
from barnabas.storage.log import RESUME_FILE, Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.segment import Segment, Totals
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.examples import examples
from tests.support.talk.batches import append, make_batch, make_marker, read_all

FOLDER = "data/topics/orders/0"
PATH = f"{FOLDER}/{RESUME_FILE}"
PRODUCERS = 3


class Story:
    """A log, and all actions of a broker on it, drawn from a seed."""

    def __init__(self, rng: Random, *, compacts: bool) -> None:
        self.rng = rng
        self.disk = MemoryDisk()
        self.settings = LogSettings(
            segment_bytes=rng.choice((600, 3_000, 1 << 20)),
            index_interval_bytes=rng.choice((0, 150, 1_000)),
            compacts=compacts,
        )
        self.point = 0
        self.epoch = 0
        self.late: list[resuming.Stored] = []
        self.sequences = [0] * PRODUCERS
        self.log = self.opened(self.disk)

    def opened(self, disk: MemoryDisk) -> Log:
        return open_log(disk, FOLDER, self.settings, root="data", recovery_point=self.point).log

    def go_on(self, steps: int) -> None:
        acts = (self.write, self.write, self.write, self.end, self.flush, self.note, self.cut)
        for _ in range(steps):
            self.rng.choice(acts)()

    def write(self) -> None:
        self.epoch += self.rng.random() < 0.1
        producer, count = self.rng.randrange(PRODUCERS), self.rng.randint(1, 3)
        who = (producer, 0, self.sequences[producer])
        self.sequences[producer] += count
        attributes = TRANSACTIONAL if producer else 0
        pairs = [(b"key", self.rng.randbytes(self.rng.randint(0, 90)))] * count
        timestamp = self.rng.randint(0, 1_000)
        batch = make_batch(pairs, timestamp=timestamp, producer=who, attributes=attributes)
        append(self.log, batch, self.epoch)

    def end(self) -> None:
        marker = make_marker(self.rng.randrange(1, PRODUCERS), commit=self.rng.random() < 0.5)
        append(self.log, marker, self.epoch)

    def flush(self) -> None:
        self.log.flush()

    def note(self) -> None:
        """Take and store resume points, sometimes too late, and then the recovery point."""
        found = resuming.take_ready(self.log)
        if found is not None:
            self.late.append(found)
        while self.late and self.rng.random() < 0.8:
            resuming.store(self.disk, self.late.pop(0))
        if self.log.active.size and self.rng.random() < 0.8:
            resuming.capture(self.log)
        if self.rng.random() < 0.7:
            self.point = self.log.flushed_offset

    def cut(self) -> None:
        if self.rng.random() < 0.04:
            log = self.log
            for path in log.truncate(self.rng.randint(log.start_offset, log.end_offset)):
                self.disk.remove(path)

    def crash(self) -> None:
        self.late.clear()
        if self.rng.random() < 0.5:
            self.disk.power_cut(self.rng)

    def stop_and_start(self) -> None:
        self.late.clear()
        self.log.flush()
        self.log.close()
        self.disk.sync_all()
        self.point = self.log.flushed_offset
        assert not self.disk.exists(PATH)
        self.log = open_log(
            self.disk, FOLDER, self.settings, root="data", clean=True, recovery_point=self.point
        ).log


def state(log: Log) -> dict[str, object]:
    """Return everything that recovery has to find."""
    return {
        "bounds": (log.start_offset, log.end_offset, log.flushed_offset),
        "epochs": log.epochs.entries,
        "producers": producer_snapshots.decode(
            producer_snapshots.encode(log.producers)
        ).open_transactions(),
        "sent": {i: (p.epoch, p.batches) for i, p in log.producers.by_id.items()},
        "aborted": [segment.aborted.entries() for segment in log.segments],
        "totals": [
            (s.base_offset, s.next_offset, s.size, s.max_timestamp, s.max_timestamp_offset)
            for s in log.segments
        ],
        "batches": [(header, bytes(batch)) for header, batch in read_all(log)],
        "times": [
            finish(log.offset_for_time(time, log.end_offset, Work()))
            for time in range(0, 1_000, 100)
        ],
        "latest": finish(log.max_timestamp_record(log.end_offset, Work())),
    }


@given(seed=st.integers(0, 1 << 48), compacts=st.booleans())
@settings(max_examples=examples(250), deadline=None)
def test_a_resume_point_changes_nothing_but_the_time_it_takes(seed: int, *, compacts: bool) -> None:
    story = Story(Random(seed), compacts=compacts)
    for _ in range(4):
        story.go_on(story.rng.randint(1, 40))
        if story.rng.random() < 0.2:
            story.stop_and_start()
            continue
        story.crash()
        twin = deepcopy(story.disk)
        twin.remove(PATH)
        expected = state(story.opened(twin))
        story.log = story.opened(story.disk)
        assert state(story.log) == expected
        story.sequences = [s + 100 for s in story.sequences]  # a shortcut for new epochs


def test_resume_points_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would show nothing."""
    outcomes: list[bool] = []
    original = Segment.resume

    def resume(self: Segment, totals: Totals) -> bool:
        outcomes.append(original(self, totals))
        return outcomes[-1]

    monkeypatch.setattr(Segment, "resume", resume)
    for seed in range(40):
        story = Story(Random(seed), compacts=bool(seed % 2))
        story.go_on(60)
        story.flush()
        story.note()
        story.flush()
        story.note()
        story.point = story.log.flushed_offset
        story.crash()
        story.opened(story.disk)
    assert outcomes.count(True) > 10


def noted() -> Story:
    """Return a flushed log with a resume point, and some batches after it."""
    story = Story(Random(7), compacts=False)
    story.settings = LogSettings(index_interval_bytes=150, compacts=False)
    story.log.settings = story.settings
    for number in range(40):
        story.write()
        if number % 7 == 6:
            story.end()
        if number == 30:
            resuming.capture(story.log)
    story.flush()
    found = resuming.take_ready(story.log)
    assert found is not None
    resuming.store(story.disk, found)
    story.point = story.log.flushed_offset
    return story


def test_a_damaged_resume_point_counts_for_nothing() -> None:
    expected = state(noted().log)
    size = noted().disk.size(PATH)
    for bit in range(0, size * 8, 29):
        story = noted()
        story.disk.flip(PATH, bit)
        assert resuming.load(story.disk, FOLDER) is None
        assert state(story.opened(story.disk)) == expected
    for length in range(0, size, 5):
        story = noted()
        story.disk.cut(PATH, length)
        assert state(story.opened(story.disk)) == expected


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_a_missing_or_short_index_is_made_anew(suffix: str) -> None:
    expected = state(noted().log)
    path = f"{FOLDER}/{0:020d}{suffix}"
    for length in (0, 1, noted().disk.size(path) // 2):
        story = noted()
        story.disk.cut(path, length)
        assert state(story.opened(story.disk)) == expected
    story = noted()
    story.disk.remove(path)
    assert state(story.opened(story.disk)) == expected


def test_a_log_that_lost_what_was_synced_is_looked_at_whole() -> None:
    story = noted()
    half = story.disk.size(f"{FOLDER}/{0:020d}.log") // 2
    story.disk.cut(f"{FOLDER}/{0:020d}.log", half)
    found = open_log(story.disk, FOLDER, story.settings, recovery_point=story.point)
    assert found.lost_synced
    assert 0 < found.log.end_offset < story.point


def test_a_point_from_before_a_cut_is_not_used() -> None:
    story = noted()
    story.log.truncate(10)
    for _ in range(60):
        story.write()
    story.flush()
    story.point = story.log.flushed_offset
    expected = state(story.log)
    assert resuming.load(story.disk, FOLDER) is not None
    assert state(story.opened(story.disk)) == expected
