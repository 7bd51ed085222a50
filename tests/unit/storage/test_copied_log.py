"""Tests the log of a follower: unchanged batches, and a new start if the leader's has moved."""

from contextlib import suppress
from random import Random

import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.records import parse_header, stamp
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, read_all

FOLDER = "data/t/0"
SETTINGS = LogSettings(segment_bytes=400)


class PlugPulledError(Exception):
    """A power cut."""


def opened(disk: MemoryDisk, recovery_point: int = 0) -> Log:
    return open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=recovery_point).log


def copied(log: Log, offset: int, epoch: int = 1) -> None:
    copied_together(log, (offset, epoch))


def copied_together(log: Log, *places: tuple[int, int]) -> None:
    """Append batches of one response, each with an offset and an epoch."""
    batches = [make_batch(2, producer=(5, 0, offset)) for offset, _ in places]
    for batch, (offset, epoch) in zip(batches, places, strict=True):
        stamp(batch, 0, offset, epoch)
    records = memoryview(b"".join(batches))
    log.append_replicated(records, [parse_header(batch) for batch in batches])


def layout(log: Log) -> list[tuple[int, int]]:
    return [(segment.base_offset, segment.size) for segment in log.segments]


def bases(log: Log) -> list[tuple[int, int]]:
    return [(header.base_offset, header.leader_epoch) for header, _ in read_all(log)]


def test_offsets_and_epochs_are_those_of_the_leader_also_after_a_start() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    expected = [(0, 1), (2, 1), (10, 1), (12, 4), (20, 4), (22, 4)]
    for offset, epoch in expected:
        copied(log, offset, epoch)
    assert len(log.segments) > 1
    for found in (log, opened(disk)):
        assert bases(found) == expected
        assert (found.end_offset, found.epochs.entries) == (24, [(1, 0), (4, 12)])
        assert found.producers.by_id[5].batches[-1].first_offset == 22


@pytest.mark.parametrize(("offset", "epoch"), [(3, 2), (0, 2), (4, 1), (4, -1)])
def test_what_cannot_follow_is_refused_and_changes_nothing(offset: int, epoch: int) -> None:
    log = opened(MemoryDisk())
    copied(log, 0, 1)
    copied(log, 2, 2)
    with pytest.raises(CorruptBatchError):
        copied(log, offset, epoch)
    assert (bases(log), log.end_offset) == ([(0, 1), (2, 2)], 4)


def test_what_came_together_is_written_with_one_call_a_segment() -> None:
    disk = MemoryDisk()
    log, appends = opened(disk), list[str]()
    places = [(0, 1), (2, 1), (10, 1), (12, 4), (20, 4), (22, 4)]

    def note(operation: str, path: str) -> None:
        if operation == "append" and path.endswith(".log"):
            appends.append(path)

    disk.before = note
    copied_together(log, *places)
    assert len(appends) == len(log.segments) == 2 < len(places)
    for found in (log, opened(disk)):
        assert bases(found) == places
        assert (found.end_offset, found.epochs.entries) == (24, [(1, 0), (4, 12)])
        assert found.producers.by_id[5].batches[-1].first_offset == 22


def test_segments_are_as_full_as_if_batches_had_come_one_by_one() -> None:
    settings = LogSettings(segment_bytes=500, segment_ms=50)
    rng = Random(7)
    for _ in range(20):
        together, alone = (open_log(MemoryDisk(), FOLDER, settings).log for _ in range(2))
        batches = []
        for offset in range(0, 40, 2):
            batches.append(make_batch(2, timestamp=1_000 + rng.randint(0, 120)))
            stamp(batches[-1], 0, offset, 1)
        headers = [parse_header(batch) for batch in batches]
        together.append_replicated(memoryview(b"".join(batches)), headers)
        for batch, header in zip(batches, headers, strict=True):
            alone.append_replicated(batch, [header])
        assert layout(together) == layout(alone)


@pytest.mark.parametrize("wrong", [(3, 4), (1, 4), (12, 3), (12, -1)])
def test_batches_before_one_that_cannot_follow_are_kept(wrong: tuple[int, int]) -> None:
    log = opened(MemoryDisk())
    with pytest.raises(CorruptBatchError, match="sent to follow 3 of epoch 4"):
        copied_together(log, (0, 1), (2, 4), wrong, (20, 4))
    assert (bases(log), log.end_offset) == ([(0, 1), (2, 4)], 4)


def test_a_disk_that_refuses_leaves_whole_segments() -> None:
    disk = MemoryDisk()
    log = opened(disk)

    def refuse(operation: str, path: str) -> None:
        if operation == "append" and path.endswith(".log") and "0" * 20 not in path:
            raise OSError(28, "no space left")

    disk.before = refuse
    places = [(2 * number, 1) for number in range(6)]
    with pytest.raises(OSError, match="no space"):
        copied_together(log, *places)
    disk.before = None
    kept = bases(log)
    assert kept == places[: len(kept)]
    assert 0 < len(kept) < len(places)
    assert log.end_offset == 2 * len(kept)
    copied_together(log, *places[len(kept) :])
    assert bases(opened(disk)) == places


@pytest.mark.parametrize("offset", [3, 12, 100])
def test_a_log_starts_over_empty_at_any_offset(offset: int) -> None:
    disk = MemoryDisk()
    log = opened(disk)
    for number in range(6):
        copied(log, 2 * number)
    log.flush()
    retired = log.restart_at(offset)
    assert retired
    for found in (log, opened(disk)):
        assert (found.start_offset, found.end_offset, bases(found)) == (offset, offset, [])
        assert (found.epochs.entries, found.producers.by_id) == ([], {})
    copied(log, offset, 9)
    log.flush()
    assert bases(opened(disk, recovery_point=12)) == [(offset, 9)]


@pytest.mark.parametrize("seed", range(60))
def test_a_power_cut_while_it_starts_over_leaves_the_old_log_or_an_empty_one(seed: int) -> None:
    rng = Random(seed)
    disk = MemoryDisk()
    log = opened(disk)
    for number in range(6):
        copied(log, 2 * number)
    log.flush()
    steps = rng.randint(1, 40)

    def pull_the_plug(operation: str, path: str) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise PlugPulledError

    disk.before = pull_the_plug
    target = rng.choice((50, 12))
    with suppress(PlugPulledError):
        log.restart_at(target)
        log.flush()
    disk.before = None
    disk.power_cut(rng)
    found = opened(disk, recovery_point=12)
    assert (found.start_offset, found.end_offset) in {(0, 12), (target, target)} or (
        found.start_offset == found.end_offset == 12
    )
    append(found)
    assert len(read_all(found)) == (7 if found.start_offset == 0 else 1)


def test_a_cut_leaves_open_what_is_not_settled_yet() -> None:
    log = opened(MemoryDisk())
    in_transaction = make_batch(2, producer=(5, 0, 0), attributes=16)
    stamp(in_transaction, 0, 0, 1)
    log.append_replicated(in_transaction, [parse_header(in_transaction)])
    copied(log, 2, 1)
    log.truncate(2, settled=0)
    assert log.producers.first_unstable == 0


def test_it_is_known_whether_something_synced_is_missing() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    for number in range(6):
        copied(log, 2 * number)
    log.flush()
    whole = open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=12)
    assert not whole.lost_synced
    disk.flip(log.active.paths[0], 8 * (log.active.size - 1))
    assert not open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=8).lost_synced
    assert open_log(disk, FOLDER, SETTINGS, root="data", recovery_point=12).lost_synced
