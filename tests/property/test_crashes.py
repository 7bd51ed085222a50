"""Tests a power cut at every step of every action that has more than one step.

Each action runs once to count its disk operations, and then once for each of them: the n-th raises,
the power is cut, and the log is opened from what is left.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import pytest

from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import ClusterFormed, ProducerIdsReserved
from barnabas.protocol.records import TRANSACTIONAL, Record, parse_header, records
from barnabas.storage.compacting import compaction
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import advance_start, drop_segments, swap_in
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.raft.lone_quorum import LoneQuorum
from tests.support.talk.batches import append, committed, make_batch, make_marker, read_all

FOLDER = "data/topics/orders/0"
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=100)
CUTS_PER_STEP = 4


class PlugPulled(Exception):  # noqa: N818 - nothing is wrong with the program
    """The power is off."""


def count_steps(disk: MemoryDisk, act: Callable[[], object]) -> int:
    before = disk.steps
    act()
    return disk.steps - before


def interrupt(disk: MemoryDisk, step: int, act: Callable[[], object], rng: Random) -> None:
    """Run the action up to a step, and cut the power."""
    last = disk.steps + step

    def before(_: str, path: str) -> None:
        if disk.steps >= last:
            raise PlugPulled(path)

    disk.before = before
    with pytest.raises(PlugPulled):
        act()
    disk.power_cut(rng)
    disk.room = None


def opened(disk: MemoryDisk, recovery_point: int = 0) -> Log:
    return open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=recovery_point).log


def content(log: Log) -> list[Record]:
    return [r for header, batch in read_all(log) for r in records(batch, header)]


def filled() -> tuple[MemoryDisk, Log]:
    """Return a flushed log of many small segments, in which keys repeat."""
    disk = MemoryDisk()
    log = opened(disk)
    for number in range(12):
        key = b"key-%d" % (number % 4)
        pairs = [(key, b"%d" % number * 20), (b"once-%d" % number, b"stays" if number else None)]
        append(log, make_batch(pairs, timestamp=number, producer=(1, 0, 2 * number)))
    log.flush()
    assert len(log.segments) > 3
    return disk, log


def every_cut(
    act: Callable[[MemoryDisk, Log], object],
    check: "Check",
    make: Callable[[], tuple[MemoryDisk, Log]] = filled,
) -> None:
    disk, log = make()
    steps = count_steps(disk, lambda: act(disk, log))
    assert steps > 0
    for step in range(1, steps + 1):
        for cut in range(CUTS_PER_STEP):
            disk, log = make()
            point = log.flushed_offset if cut % 2 else 0
            interrupt(disk, step, partial(act, disk, log), Random(step * 100 + cut))
            check(Found(opened(disk, point), f"step {step}, cut {cut}"))


class Found(NamedTuple):
    """The state that was found after a power cut, and the cut."""

    log: Log
    where: str


Check = Callable[[Found], None]
EVERYTHING = content(filled()[1])


def compact(disk: MemoryDisk, log: Log, joined_bytes: int = 300) -> None:
    """Compact all sealed segments, and join segments up to a size."""
    log.settings = LogSettings(segment_bytes=joined_bytes, index_interval_bytes=100)
    work = compaction.plan(
        log, compaction.Urgency(0, 0, 1 << 40), delete_retention_ms=10, now_ms=50, upto=1 << 40
    )
    assert work is not None
    swap_in(log, compaction.clean(disk, work))


def compacted() -> list[Record]:
    disk, log = filled()
    compact(disk, log)
    return content(log)


joining = pytest.mark.parametrize("joined_bytes", [300, 900, 100_000])


@joining
def test_a_compaction_happens_segment_by_segment_or_not_at_all(joined_bytes: int) -> None:
    after = compacted()
    assert 0 < len(after) < len(EVERYTHING)

    def check(found: Found) -> None:
        left = content(found.log)
        offsets = [record.offset for record in left]
        assert offsets == sorted(set(offsets)), found.where
        assert set(left) <= set(EVERYTHING), found.where
        assert set(left) >= set(after), found.where
        assert found.log.end_offset == 24, found.where

    every_cut(partial(compact, joined_bytes=joined_bytes), check)


@joining
def test_a_crash_within_the_recovery_from_a_crash(joined_bytes: int) -> None:
    """Recovery is interrupted at each of its own steps."""
    disk, log = filled()
    steps_of_compaction = count_steps(disk, partial(compact, disk, log, joined_bytes))

    def half_compacted(seed: int) -> MemoryDisk:
        disk, log = filled()
        step = Random(seed).randint(1, steps_of_compaction)
        interrupt(disk, step, partial(compact, disk, log, joined_bytes), Random(seed))
        return disk

    after = set(compacted())
    for seed in range(12):
        disk = half_compacted(seed)
        for step in range(1, count_steps(disk, partial(opened, disk)) + 1):
            disk = half_compacted(seed)
            interrupt(disk, step, partial(opened, disk), Random(step))
            left = content(opened(disk))
            assert after <= set(left) <= set(EVERYTHING), f"seed {seed}, step {step}"
            assert len(left) == len(set(left))


def test_what_was_flushed_survives_appends_rolls_and_flushes() -> None:
    promised = [24]

    def act(_: MemoryDisk, log: Log) -> None:
        promised[:] = [24]
        for number in range(6):
            append(log, make_batch([(b"more", b"x" * 60)], producer=(1, 0, 24 + number)))
            log.flush()
            promised.append(log.flushed_offset)

    def check(found: Found) -> None:
        end = found.log.end_offset
        assert end >= promised[-1], found.where
        assert content(found.log)[:24] == EVERYTHING, found.where
        for sequence in range(24, end):
            header = parse_header(make_batch(producer=(1, 0, sequence)))
            sent = found.log.producers.check(header) if sequence >= end - 5 else None
            assert sent is None or sent.first_offset == sequence, found.where

    every_cut(act, check)


def transactions() -> tuple[MemoryDisk, Log]:
    """Return a flushed log in which every second transaction is aborted."""
    disk = MemoryDisk()
    log = opened(disk)
    for number in range(6):
        for producer in (1, 2):
            write_in_transaction(log, producer, number)
        append(log, make_marker(1, commit=number % 2 == 0))
        if number % 3 == 2:
            append(log, make_marker(2, commit=number % 2 == 1))
    append(log, make_marker(2, commit=False))
    log.flush()
    assert len(log.segments) > 4
    return disk, log


def write_in_transaction(log: Log, producer: int, number: int) -> None:
    who = (producer, 0, number)
    pairs = [(b"key-%d" % (number % 3), b"%d from %d" % (number, producer))]
    append(log, make_batch(pairs, timestamp=number, producer=who, attributes=TRANSACTIONAL))


def shown(log: Log) -> list[Record]:
    """Return the records that a read_committed consumer gets."""
    log.producers.settle(log.end_offset)
    aborted = [(a.producer_id, a.first_offset) for a in log.aborted(0, log.end_offset)]
    found = committed(read_all(log), aborted)
    return [record for record in found if record.offset < log.producers.first_unstable]


COMMITTED = shown(transactions()[1])


@joining
def test_a_compaction_among_transactions_shows_nothing_that_was_aborted(joined_bytes: int) -> None:
    disk, log = transactions()
    compact(disk, log, joined_bytes)
    after = set(shown(log))
    assert 0 < len(after) < len(COMMITTED)

    def check(found: Found) -> None:
        left = shown(found.log)
        assert set(left) <= set(COMMITTED), found.where
        assert set(left) >= after, found.where
        assert found.log.producers.open_transactions() == {}, found.where

    every_cut(partial(compact, joined_bytes=joined_bytes), check, transactions)


@joining
def test_a_second_compaction_takes_markers_and_shows_what_the_first_has_shown(
    joined_bytes: int,
) -> None:
    def once() -> tuple[MemoryDisk, Log]:
        disk, log = transactions()
        compact(disk, log, 100_000)
        for number in range(4):
            append(log, make_batch([(b"more-%d" % number, b"x" * 100)], timestamp=99))
            log.roll()
        log.flush()
        return disk, log

    expected = shown(once()[1])

    def check(found: Found) -> None:
        assert shown(found.log) == expected, found.where

    every_cut(partial(compact, joined_bytes=joined_bytes), check, once)


def test_aborts_survive_appends_rolls_and_flushes() -> None:
    promised: list[int] = []

    def act(_: MemoryDisk, log: Log) -> None:
        promised[:] = [log.flushed_offset]
        for number in range(6, 11):
            write_in_transaction(log, 1, number)
            append(log, make_marker(1, commit=number % 2 == 0))
            write_in_transaction(log, 2, number)
            log.flush()
            promised.append(log.flushed_offset)

    disk, log = transactions()
    act(disk, log)
    append(log, make_marker(2, commit=True))
    everything = shown(log)

    def check(found: Found) -> None:
        log = found.log
        assert log.end_offset >= promised[-1], found.where
        left = shown(log)
        upper = min(log.end_offset, log.producers.first_unstable)
        assert left == [r for r in everything if r.offset < upper], found.where

    every_cut(act, check, transactions)


def test_a_truncation_among_transactions_opens_them_again() -> None:
    def check(found: Found) -> None:
        log = found.log
        left = shown(log)
        upper = min(log.end_offset, log.producers.first_unstable)
        assert left == [r for r in COMMITTED if r.offset < upper], found.where
        _, twin = transactions()
        twin.truncate(log.end_offset)
        assert log.producers.open_transactions() == twin.producers.open_transactions(), found.where
        assert log.aborted(0, 99) == twin.aborted(0, 99), found.where

    every_cut(lambda _, log: log.truncate(9), check, transactions)


def test_retention_leaves_no_hole() -> None:
    def check(found: Found) -> None:
        left = content(found.log)
        assert left == EVERYTHING[len(EVERYTHING) - len(left) :], found.where
        assert found.log.end_offset == 24, found.where
        assert len(left) >= len(kept), found.where

    _, log = filled()
    drop_segments(log, 3)
    kept = content(log)
    every_cut(lambda _, log: drop_segments(log, 3), check)


def test_retention_on_a_full_disk_leaves_no_hole() -> None:
    def drop(disk: MemoryDisk, log: Log) -> None:
        disk.room = 0
        drop_segments(log, 3)

    def check(found: Found) -> None:
        left = content(found.log)
        assert left == EVERYTHING[len(EVERYTHING) - len(left) :], found.where
        assert found.log.end_offset == 24, found.where

    every_cut(drop, check)


def test_a_truncation_takes_nothing_from_below() -> None:
    def check(found: Found) -> None:
        left = content(found.log)
        assert left == EVERYTHING[: len(left)], found.where
        assert len(left) >= 6, found.where
        assert found.log.end_offset == len(left), found.where
        sent = found.log.producers.by_id[1].batches[-1]
        assert sent.last_offset + 1 == len(left), found.where

    every_cut(lambda _, log: log.truncate(6), check)


def test_deleting_records_takes_effect_or_not() -> None:
    starts = set()

    def check(found: Found) -> None:
        starts.add(found.log.start_offset)
        assert found.log.end_offset == 24

    every_cut(lambda _, log: advance_start(log, 7), check)
    assert starts == {0, 7}


SNAPSHOT_AFTER = 5


def quorum_with(count: int) -> tuple[MemoryDisk, LoneQuorum]:
    disk = MemoryDisk()
    lone = LoneQuorum(disk)
    lone.commit_now(ClusterFormed(cluster_id="kept"))
    for number in range(count):
        lone.commit_now(ProducerIdsReserved(next_producer_id=number))
    return disk, lone


def reopened(disk: MemoryDisk) -> Image:
    return LoneQuorum(disk, snapshot_after_records=SNAPSHOT_AFTER).image


def test_metadata_survives_being_summed_up() -> None:
    disk, _ = quorum_with(10)
    steps = count_steps(disk, lambda: reopened(disk))
    assert any(name.endswith(".checkpoint") for name in disk.list("data/__cluster_metadata"))
    for step in range(1, steps + 1):
        for cut in range(CUTS_PER_STEP):
            disk, _ = quorum_with(10)
            interrupt(disk, step, partial(reopened, disk), Random(step * 100 + cut))
            image = reopened(disk)
            assert (image.cluster_id, image.next_producer_id) == ("kept", 9), f"step {step}"
            image = reopened(disk)
            assert (image.cluster_id, image.next_producer_id) == ("kept", 9), f"step {step}"


def test_committed_metadata_survives_a_crash_at_any_step() -> None:
    disk, lone = quorum_with(2)

    def act() -> None:
        lone.commit_now(ProducerIdsReserved(next_producer_id=77))

    steps = count_steps(disk, act)
    for step in range(1, steps + 1):
        for cut in range(CUTS_PER_STEP):
            disk, lone = quorum_with(2)
            interrupt(disk, step, act, Random(step * 100 + cut))
            assert reopened(disk).next_producer_id in (1, 77)
