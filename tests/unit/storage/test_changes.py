"""Tests changes of a log while clients are served: one at a time, in order, all or nothing."""

import errno

import pytest

from barnabas.model.open_files import UNLIMITED
from barnabas.storage.changes import Changes, ChangeSteps, Sync, beside, carry_out_now
from barnabas.storage.compacting import compaction
from barnabas.storage.compacting.swap import SWAP_SUFFIX
from barnabas.storage.log import START_OFFSET_FILE, Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.sweeping import CLEANING_FOLDER
from barnabas.storage.trimming import advance_start, drop_segments
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch, read_all

FOLDER = "data/topics/orders/0"
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=100)


class Lane:
    """A log and its changes; a test carries out the syncs."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log = opened(self.disk)
        for number in range(12):
            pairs = [(b"key-%d" % (number % 3), b"%d" % number * 20)]
            append(self.log, make_batch(pairs, timestamp=number))
        self.log.flush()
        self.waiting: list[tuple[Sync, object]] = []
        self.told: list[str] = []
        self.refused: dict[str, OSError] = {}
        self.changes = Changes(self.log, lambda sync, done: self.waiting.append((sync, done)))

    def start(self, name: str, steps: ChangeSteps[object]) -> None:
        def done(_: object) -> None:
            self.told.append(name)

        def failed(error: OSError) -> None:
            self.refused[name] = error

        self.changes.start(steps, done, failed)

    def step(self) -> None:
        sync, done = self.waiting.pop(0)
        sync.carry_out(self.disk)
        assert callable(done)
        done()

    def finish(self) -> None:
        while self.waiting:
            self.step()

    def cleaned(self) -> compaction.Cleaned:
        urgency = compaction.Urgency(0, 0, 1 << 40)
        work = compaction.plan(
            self.log, urgency, delete_retention_ms=10, now_ms=50, upto=self.log.end_offset
        )
        assert work is not None
        return compaction.clean(self.disk, work)


def opened(disk: MemoryDisk) -> Log:
    return open_log(disk, FOLDER, SETTINGS, root="data").log


def offsets(log: Log) -> list[int]:
    return [header.base_offset for header, _ in read_all(log)]


def test_a_start_is_seen_once_it_is_safe() -> None:
    lane = Lane()
    lane.start("delete", advance_start(lane.log, 5))
    assert (lane.log.start_offset, lane.told) == (0, [])
    lane.step()
    assert (lane.log.start_offset, lane.told) == (0, [])
    lane.step()
    assert (lane.log.start_offset, lane.told) == (5, ["delete"])
    assert (lane.waiting, lane.log.change) == ([], None)


def test_one_change_follows_the_other() -> None:
    lane = Lane()
    lane.start("first", advance_start(lane.log, 5))
    lane.start("second", advance_start(lane.log, 3))
    lane.start("third", advance_start(lane.log, 7))
    assert len(lane.waiting) == 1
    lane.finish()
    assert (lane.told, lane.log.start_offset) == (["first", "second", "third"], 7)


def test_segments_that_a_swap_replaced_meanwhile_are_dropped_as_far_as_they_expired() -> None:
    lane = Lane()
    before_offset = lane.log.segments[2].base_offset
    lane.start("swap", compaction.apply(lane.log, lane.cleaned()))
    lane.start("drop", drop_segments(lane.log, before_offset, []))
    lane.finish()
    assert lane.told == ["swap", "drop"]
    assert lane.log.start_offset == before_offset
    assert lane.log.segments[0].next_offset > before_offset


def test_a_truncation_finishes_what_is_under_way() -> None:
    lane = Lane()
    lane.start("swap", compaction.apply(lane.log, lane.cleaned()))
    lane.start("delete", advance_start(lane.log, 11))
    lane.step()
    lane.step()  # the originals were renamed
    lane.log.finish_change()
    assert lane.told == ["swap"]
    lane.log.truncate(9)
    left = offsets(lane.log)
    lane.finish()
    assert "truncated to 9" in str(lane.refused["delete"])
    assert offsets(lane.log) == left
    assert offsets(opened(lane.disk)) == left


def test_a_closed_log_has_finished_its_change() -> None:
    lane = Lane()
    lane.start("swap", compaction.apply(lane.log, lane.cleaned()))
    lane.step()
    lane.log.flush()
    lane.log.close()
    assert lane.told == ["swap"]
    assert not [name for name in lane.disk.list(FOLDER) if name.endswith(SWAP_SUFFIX)]


def test_what_is_deleted_changes_no_more() -> None:
    """Another topic may use the folder by the time that a sync is done."""
    lane = Lane()
    lane.start("first", advance_start(lane.log, 5))
    lane.start("second", advance_start(lane.log, 6))
    lane.changes.close()
    lane.start("third", advance_start(lane.log, 7))
    before = lane.disk.list(FOLDER)
    lane.finish()
    assert list(lane.refused) == ["first", "second", "third"]
    assert (lane.disk.list(FOLDER), lane.log.start_offset) == (before, 0)
    assert not lane.disk.exists(f"{FOLDER}/{START_OFFSET_FILE}")


def test_a_full_disk_refuses_a_start_and_keeps_no_litter() -> None:
    lane = Lane()
    lane.disk.room = 3
    lane.start("delete", advance_start(lane.log, 5))
    assert lane.refused["delete"].errno == errno.ENOSPC
    assert not lane.disk.exists(beside(f"{FOLDER}/{START_OFFSET_FILE}"))


def close_files(disk: MemoryDisk) -> None:
    """Close every file that can be reopened, as when others need the descriptors."""
    disk.open_files.share(0)
    disk.open_files.make_room()
    disk.open_files.share(UNLIMITED)


@pytest.mark.parametrize("closing", [False, True])
def test_readers_continue_in_every_step_of_a_swap(*, closing: bool) -> None:
    lane = Lane()
    everything = offsets(lane.log)
    seen = []
    lane.start("swap", compaction.apply(lane.log, lane.cleaned()))
    while lane.waiting:
        if closing:
            close_files(lane.disk)
        seen.append(offsets(lane.log))
        lane.step()
    seen.append(offsets(lane.log))
    assert seen[0] == seen[1] == everything
    assert set(seen[-1]) < set(everything)


@pytest.mark.parametrize("failing", range(1, 20))
def test_a_swap_that_the_disk_refuses_leaves_a_whole_log(failing: int) -> None:
    lane = Lane()
    everything = offsets(lane.log)
    cleaned = lane.cleaned()
    renames = 0

    def before(operation: str, path: str) -> None:
        nonlocal renames
        renames += operation == "rename"
        if operation == "rename" and renames == failing:
            raise OSError(errno.EIO, "broken", path)

    lane.disk.before = before
    lane.start("swap", compaction.apply(lane.log, cleaned))
    lane.finish()
    lane.disk.before = None
    close_files(lane.disk)
    left = offsets(lane.log)
    if lane.told == ["swap"]:
        assert renames < failing
        return
    assert left == everything
    again = opened(lane.disk)
    assert set(offsets(again)) <= set(everything)
    assert again.end_offset == lane.log.end_offset
    assert not [name for name in lane.disk.list(FOLDER) if name.endswith(SWAP_SUFFIX)]
    assert not lane.disk.exists(f"{FOLDER}/{CLEANING_FOLDER}")


def test_here_and_now() -> None:
    lane = Lane()
    carry_out_now(lane.disk, advance_start(lane.log, 5))
    assert (lane.log.start_offset, opened(lane.disk).start_offset) == (5, 5)
