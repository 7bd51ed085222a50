"""Tests compaction: keeps the last record of each key, tombstones for a while, and all offsets."""

import json

import pytest

from barnabas.model.steps import Work, finish
from barnabas.protocol.compression import Codec
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import CONTROL, CRC_FROM, DELETE_HORIZON, LOG_APPEND_TIME, records
from barnabas.storage.compacting import compaction
from barnabas.storage.compacting.compaction import (
    ROOM_TO_SPARE_BYTES,
    Cleaned,
    CleaningPlan,
    Group,
    Urgency,
)
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import drop_segments, swap_in
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import Pair, append, batches_in, make_batch, read_all

FOLDER = "data/orders/0"
EAGER = Urgency(0.0, 0, 1 << 40)
KEEP_TOMBSTONES_MS = 100
SEGMENTS = LogSettings(segment_bytes=1, index_interval_bytes=100)


def log_of(
    *batches: list[Pair], disk: MemoryDisk | None = None, settings: LogSettings = SEGMENTS
) -> Log:
    """Return a flushed log with one batch per segment, and one more that is active."""
    log = open_log(disk or MemoryDisk(), FOLDER, settings).log
    for number, pairs in enumerate(batches):
        append(log, make_batch(pairs, timestamp=number, producer=(1, 0, number * 10)))
    append(log, make_batch([(b"end", b"end")], timestamp=99))
    log.flush()
    return log


def plan(log: Log, now_ms: int = 1_000, urgency: Urgency = EAGER) -> CleaningPlan | None:
    return compaction.plan(
        log, urgency, delete_retention_ms=KEEP_TOMBSTONES_MS, now_ms=now_ms, upto=log.end_offset
    )


def compact(log: Log, now_ms: int = 1_000) -> Cleaned:
    work = plan(log, now_ms)
    assert work is not None
    cleaned = compaction.clean(log.disk, work)
    for path in swap_in(log, cleaned):
        log.disk.remove(path)
    return cleaned


def left(log: Log) -> dict[int, Pair]:
    return {
        record.offset: (record.key, record.value)
        for header, batch in read_all(log)
        for record in records(batch, header)
        if record.key != b"end"
    }


def test_gaps_stay_known_after_the_topic_is_no_longer_compacted() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"b", b"1")], [(b"a", b"2")], disk=disk)
    compact(log)
    log.flush()
    kept = left(log)
    again = open_log(disk, FOLDER, LogSettings(compacts=False))
    assert (left(again.log), again.problems) == (kept, ())


def test_the_last_of_each_key_stays_at_its_offset() -> None:
    log = log_of([(b"a", b"1"), (b"b", b"1")], [(b"a", b"2"), (b"c", b"1")], [(b"b", b"2")])
    cleaned = compact(log)
    assert left(log) == {2: (b"a", b"2"), 3: (b"c", b"1"), 4: (b"b", b"2")}
    assert (cleaned.records_before, cleaned.records_after) == (5, 3)
    assert plan(log) is None


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_keeps_its_codec_times_headers_and_sequences(codec: Codec) -> None:
    log = open_log(MemoryDisk(), FOLDER, SEGMENTS).log
    pairs: list[Pair] = [(b"a", b"1"), (b"b", b"1" * 50), (b"a", b"2")]
    append(log, make_batch(pairs, timestamp=7, codec=codec, producer=(5, 2, 30)), epoch=4)
    append(log)
    log.flush()
    before = read_all(log)[0][0]
    compact(log)
    after, batch = read_all(log)[0]
    assert left(log)[1] == (b"b", b"1" * 50)
    assert after.record_count == 2
    assert after._replace(record_count=3, crc=before.crc, length=before.length) == before
    assert [record.timestamp for record in records(batch, after)] == [7, 7]


def test_records_without_a_key_go() -> None:
    log = log_of([(None, b"1"), (b"a", b"1")])
    compact(log)
    assert left(log) == {1: (b"a", b"1")}


def test_a_tombstone_stays_until_its_time_is_over() -> None:
    log = log_of([(b"a", b"1")], [(b"a", None), (b"b", b"1")])
    compact(log, now_ms=1_000)
    assert left(log) == {1: (b"a", None), 2: (b"b", b"1")}
    header, batch = read_all(log)[-2]
    assert header.attributes & DELETE_HORIZON
    assert [record.timestamp for record in records(batch, header)] == [1, 1]
    for now_ms, stays in ((1_099, True), (1_100, False)):
        append(log, make_batch([(b"end", b"end")]))
        append(log, make_batch([(b"end", b"end")]))
        log.flush()
        compact(log, now_ms=now_ms)
        assert (1 in left(log)) == stays
    assert left(log) == {2: (b"b", b"1")}


def test_a_key_that_comes_back_outlives_its_tombstone() -> None:
    log = log_of([(b"a", b"1")], [(b"a", None)], [(b"a", b"2")])
    compact(log)
    assert left(log) == {2: (b"a", b"2")}


def test_times_of_arrival_survive_a_horizon() -> None:
    log = open_log(MemoryDisk(), FOLDER, SEGMENTS).log
    append(log, make_batch([(b"a", None), (b"a", None)], timestamp=7, attributes=LOG_APPEND_TIME))
    append(log)
    log.flush()
    compact(log)
    header, batch = read_all(log)[0]
    assert [record.timestamp for record in records(batch, header)] == [7]


def test_markers_and_batches_that_cannot_be_opened_stay_as_they_are() -> None:
    log = open_log(MemoryDisk(), FOLDER, SEGMENTS).log
    append(log, make_batch([(b"\0\0\0\1", b"x")], attributes=CONTROL))
    broken = make_batch([(b"a", b"1")], attributes=0)
    broken[61] ^= 0x7F  # the first record's length
    broken[17:21] = crc32c(broken[CRC_FROM:]).to_bytes(4, "big")
    append(log, broken)
    append(log, make_batch([(b"\0\0\0\1", b"y")]))
    append(log)
    log.flush()
    before = [bytes(batch) for _, batch in read_all(log)]
    compact(log)
    assert [bytes(batch) for _, batch in read_all(log)] == before


def test_a_read_across_what_is_gone_finds_what_follows() -> None:
    batches: list[list[Pair]] = [[(b"a", b"%d" % number)] for number in range(20)]
    log = log_of(*batches, settings=LogSettings(segment_bytes=250, index_interval_bytes=50))
    end = log.end_offset
    compact(log)
    for offset in range(end):
        ((header, _), *_) = batches_in(log.read(offset, 1, end, at_least_one=True))
        assert header.last_offset >= offset
    assert log.start_offset == 0
    assert len(left(log)) < 5
    assert left(log)[19] == (b"a", b"19")


def test_a_log_of_which_nothing_is_left_keeps_its_start_and_its_end() -> None:
    disk = MemoryDisk()
    log = log_of([(None, b"1")], [(None, b"2")], disk=disk)
    compact(log)
    assert left(log) == {}
    assert (log.start_offset, log.end_offset) == (0, 3)
    assert [(s.base_offset, s.next_offset) for s in log.segments] == [(0, 1), (1, 2), (2, 3)]
    again = open_log(disk, FOLDER, SEGMENTS).log
    assert (again.start_offset, again.end_offset) == (0, 3)
    assert again.read(0, 1, 3, at_least_one=True) is not None
    assert again.producers.by_id.keys() == log.producers.by_id.keys()


def test_small_segments_are_joined() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"b", b"1")], [(b"c", b"1")], [(b"d", b"1")], disk=disk)
    log.settings = LogSettings(segment_bytes=200)
    compact(log)
    assert len(log.segments) == 3
    assert list(left(log)) == [0, 1, 2, 3]
    again = open_log(disk, FOLDER, SEGMENTS, recovery_point=5).log
    assert list(left(again)) == [0, 1, 2, 3]


def test_memory_for_fewer_keys_takes_more_passes() -> None:
    batches: list[list[Pair]] = [[(b"%d" % (n % 3), b"%d" % n)] for n in range(9)]
    log = log_of(*batches)
    work = plan(log)
    assert work is not None
    cleaned = compaction.clean(log.disk, work, keys_max=2)
    assert cleaned.clean_upto < work.end
    swap_in(log, cleaned)
    while (work := plan(log)) is not None:
        swap_in(log, compaction.clean(log.disk, work, keys_max=2))
    assert left(log) == {6: (b"0", b"6"), 7: (b"1", b"7"), 8: (b"2", b"8")}


def test_a_log_is_left_alone_until_it_is_worth_it() -> None:
    log = log_of([(b"a", b"1")], [(b"b", b"1")])
    assert plan(log, urgency=Urgency(1.1, 0, 1 << 40)) is None
    assert plan(log, urgency=Urgency(1.0, 0, 1 << 40)) is not None
    assert plan(log, urgency=Urgency(1.1, 0, 500), now_ms=501) is not None
    assert plan(log, urgency=Urgency(0.0, 1_000, 1 << 40), now_ms=1_000) is not None
    assert plan(log, urgency=Urgency(0.0, 1_001, 1 << 40), now_ms=1_000) is None


def test_only_what_is_safe_on_disk_is_cleaned() -> None:
    log = open_log(MemoryDisk(), FOLDER, SEGMENTS).log
    for _ in range(3):
        append(log)
    assert plan(log) is None
    log.flush()
    work = plan(log)
    assert work is not None
    assert work.end == 2


def test_a_log_that_was_cut_meanwhile_is_not_swapped() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")], [(b"a", b"3")])
    work = plan(log)
    assert work is not None
    cleaned = compaction.clean(log.disk, work)
    log.truncate(1)
    append(log, make_batch([(b"new", b"1")]))
    append(log, make_batch([(b"new", b"2")]))
    append(log, make_batch([(b"new", b"3")]))
    log.flush()
    before = left(log)
    assert swap_in(log, cleaned) == []
    assert left(log) == before


def test_a_log_whose_segments_were_dropped_meanwhile_is_not_swapped() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")])
    work = plan(log)
    assert work is not None
    cleaned = compaction.clean(log.disk, work)
    drop_segments(log, 1)
    assert swap_in(log, cleaned) == []


def test_a_deleted_topic_is_not_brought_back_by_its_cleaning() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")])
    work = plan(log)
    assert work is not None
    log.disk.rename("data/orders", "data/gone")
    with pytest.raises(FileNotFoundError):
        compaction.clean(log.disk, work)
    assert not log.disk.exists("data/orders")


def test_damage_stops_the_cleaning_and_harms_nothing() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"a", b"2")], disk=disk)
    disk.flip(log.segments[0].paths[0], 65 * 8)
    work = plan(log)
    assert work is not None
    with pytest.raises(Exception, match="checksum"):
        compaction.clean(disk, work)
    assert len(log.segments) == 3


def test_a_damaged_checkpoint_means_that_nothing_is_clean() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"a", b"2")], disk=disk)
    compact(log)
    assert compaction.read_checkpoint(log) == 2
    disk.flip(f"{FOLDER}/cleaner-offset", 0)
    assert compaction.read_checkpoint(log) == 0


def test_the_latest_record_is_found_after_its_batch_was_emptied() -> None:
    log = open_log(MemoryDisk(), FOLDER, SEGMENTS).log
    append(log, make_batch([(b"a", b"1")], timestamp=900))
    append(log, make_batch([(b"a", b"2")], timestamp=100))
    append(log, make_batch([(b"b", b"2")], timestamp=50))
    log.flush()
    compact(log)
    latest = finish(log.max_timestamp_record(log.end_offset, Work()))
    assert latest is not None
    assert latest.timestamp == 100
    assert finish(log.offset_for_time(500, log.end_offset, Work())) is None


def test_plans_and_outcomes_travel_as_json() -> None:
    log = log_of([(b"a", b"1")], [(b"a", b"2")])
    work = plan(log)
    assert work is not None
    assert CleaningPlan(**json.loads(json.dumps(work.to_dict()))) == work
    cleaned = compaction.clean(log.disk, work)
    groups, *facts = json.loads(json.dumps(cleaned))
    assert Cleaned([Group(*group) for group in groups], *facts) == cleaned


def test_a_cut_into_what_is_gone_leaves_no_hole() -> None:
    """Offsets are not reused, and later records are still there after a crash."""
    disk = MemoryDisk()
    settings = LogSettings(segment_bytes=300, index_interval_bytes=50)
    batches: list[list[Pair]] = [[(b"a", b"%d" % number)] for number in range(20)]
    log = log_of(*batches, disk=disk, settings=settings)
    compact(log)
    gap = next(o for o in range(1, 20) if o not in left(log) and o - 1 not in left(log))
    log.truncate(gap)
    assert log.end_offset == gap
    log.roll()
    assert append(log, make_batch([(b"new", b"1")])) == gap
    again = open_log(disk, FOLDER, settings).log
    assert again.end_offset == gap + 1
    assert left(again)[gap] == (b"new", b"1")


def clean_in_passes(log: Log, keys_max: int) -> int:
    """Compact with memory for few keys until all is clean; return the number of passes."""
    passes, clean_upto = 0, 0
    while (work := plan(log)) is not None:
        cleaned = compaction.clean(log.disk, work, keys_max)
        assert cleaned.clean_upto > clean_upto
        clean_upto = cleaned.clean_upto
        for path in swap_in(log, cleaned):
            log.disk.remove(path)
        passes += 1
    return passes


@pytest.mark.parametrize("keys_max", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("batch_records", [1, 4, 40])
def test_a_segment_with_more_keys_than_memory_is_cleaned_in_several_passes(
    keys_max: int, batch_records: int
) -> None:
    pairs: list[Pair] = [(b"%d" % (n % 7), b"%d" % n) for n in range(40)]
    log = open_log(MemoryDisk(), FOLDER, LogSettings(index_interval_bytes=50)).log
    for first in range(0, 40, batch_records):
        append(log, make_batch(pairs[first : first + batch_records], timestamp=first))
    log.roll()
    append(log, make_batch([(b"end", b"end")]))
    log.flush()
    passes = clean_in_passes(log, keys_max)
    assert passes == 1 if keys_max >= 7 else passes > 1
    assert left(log) == {n: (b"%d" % (n % 7), b"%d" % n) for n in range(33, 40)}


def test_a_tombstone_that_was_not_reached_keeps_all_of_its_time() -> None:
    """Otherwise a tombstone could be deleted with its records, before a slow reader has seen it."""
    log = open_log(MemoryDisk(), FOLDER, LogSettings()).log
    append(log, make_batch([(b"a", b"1"), (b"b", b"1"), (b"c", None)], timestamp=1))
    append(log, make_batch([(b"c", None)], timestamp=2))
    log.roll()
    append(log, make_batch([(b"end", b"end")]))
    log.flush()
    work = plan(log)
    assert work is not None
    cleaned = compaction.clean(log.disk, work, keys_max=2)
    assert cleaned.clean_upto == 2
    swap_in(log, cleaned)
    assert not any(header.attributes & DELETE_HORIZON for header, _ in read_all(log))
    compact(log, now_ms=5_000)
    horizons = [header.base_timestamp for header, _ in read_all(log)[:-1]]
    assert horizons[-1] == 5_000 + KEEP_TOMBSTONES_MS
    assert left(log) == {0: (b"a", b"1"), 1: (b"b", b"1"), 3: (b"c", None)}


def test_memory_does_not_depend_on_the_length_of_keys() -> None:
    long: list[list[Pair]] = [[(b"%d" % (n % 3) * 50_000, b"%d" % n)] for n in range(6)]
    log = log_of(*long)
    cleaned = compact(log)
    assert (cleaned.records_before, cleaned.records_after) == (6, 3)


@pytest.mark.parametrize("step", range(1, 12))
def test_a_compaction_that_fails_leaves_nothing_behind(step: int) -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"b", b"1")], [(b"a", b"2")], disk=disk)
    work = plan(log)
    assert work is not None
    steps = 0

    def before(operation: str, path: str) -> None:
        nonlocal steps
        if operation in {"create", "append", "sync"}:
            steps += 1
            if steps == step:
                raise OSError(28, "full", path)

    disk.before = before
    with pytest.raises(OSError, match="full"):
        compaction.clean(disk, work)
    assert steps == step
    assert not disk.exists(work.output)
    disk.before = None
    compact(log)
    assert left(log) == {1: (b"b", b"1"), 2: (b"a", b"2")}


def test_what_a_crash_left_of_a_compaction_goes_at_the_next_start() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"a", b"2")], disk=disk)
    work = plan(log)
    assert work is not None
    compaction.clean(disk, work)
    assert disk.list(work.output)
    open_log(disk, FOLDER, SEGMENTS)
    assert not disk.exists(work.output)


def test_without_room_for_one_group_nothing_is_written() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1")], [(b"a", b"2")], disk=disk)
    work = plan(log)
    assert work is not None
    assert work.room_bytes == log.segments[0].size + ROOM_TO_SPARE_BYTES
    disk.room = work.room_bytes - 1
    with pytest.raises(OSError, match="compaction needs"):
        compaction.clean(disk, work)
    assert not disk.exists(work.output)
    disk.room = work.room_bytes + 1_000
    compact(log)
    assert left(log) == {1: (b"a", b"2")}


def test_where_the_room_ends_half_way_what_was_saved_so_far_counts() -> None:
    """The removed keys leave room for the rest in the next pass."""
    disk = MemoryDisk()
    pairs: list[Pair] = [(b"a", b"1" * 2_000), (b"b", b"1" * 2_000)]
    log = log_of(pairs, pairs, pairs, [(b"c", b"1" * 9_000)], [(b"b", None)], disk=disk)
    before = log.size
    work = plan(log)
    assert work is not None
    disk.room = ROOM_TO_SPARE_BYTES + 8_000
    cleaned = compaction.clean(disk, work)
    assert cleaned.lacked_room
    assert cleaned.clean_upto == work.first_dirty
    for path in swap_in(log, cleaned):
        disk.remove(path)
    assert log.size < before
    assert compaction.read_checkpoint(log) == 0
    kept = {4: pairs[0], 6: (b"c", b"1" * 9_000), 7: (b"b", None)}
    assert left(log) == kept
    disk.room = None
    assert not compact(log).lacked_room
    assert left(log) == kept
    assert plan(log) is None


def test_where_nothing_was_saved_before_the_room_ends_the_compaction_fails() -> None:
    disk = MemoryDisk()
    log = log_of([(b"a", b"1" * 2_000)], [(b"b", b"1" * 9_000)], disk=disk)
    work = plan(log)
    assert work is not None
    disk.room = ROOM_TO_SPARE_BYTES + 8_000
    with pytest.raises(OSError, match="compaction needs"):
        compaction.clean(disk, work)
    assert not disk.exists(work.output)


def test_records_without_a_time_are_as_old_as_their_file() -> None:
    disk = MemoryDisk()
    disk.wall_clock_ms = lambda: 900
    log = open_log(disk, FOLDER, SEGMENTS).log
    for _ in range(3):
        append(log, make_batch([(b"a", b"1")], timestamp=-1))
    log.flush()
    assert plan(log, urgency=Urgency(0.0, 101, 1 << 40), now_ms=1_000) is None
    assert plan(log, urgency=Urgency(0.0, 100, 1 << 40), now_ms=1_000) is not None
    assert plan(log, urgency=Urgency(1.1, 0, 100), now_ms=1_000) is None
    assert plan(log, urgency=Urgency(1.1, 0, 99), now_ms=1_000) is not None


def test_compaction_does_not_make_records_without_a_time_younger() -> None:
    disk = MemoryDisk()
    disk.wall_clock_ms = lambda: 20
    log = open_log(disk, FOLDER, SEGMENTS).log
    for number in range(3):
        append(log, make_batch([(b"%d" % number, b"1")], timestamp=-1))
    log.flush()
    disk.wall_clock_ms = lambda: 900
    compact(log)
    assert [segment.file.modified_ms() for segment in log.segments] == [20, 20, 20]
