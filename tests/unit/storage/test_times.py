"""Tests that lookups by time are exact, also if times are out of order."""

from random import Random
from typing import Any

import pytest

from barnabas.model.steps import EVENT_UNITS, Rest, Steps, Work, begin, finish
from barnabas.protocol import scanning
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import LOG_APPEND_TIME, Record, build, parse_header
from barnabas.protocol.scanning import first_timestamp
from barnabas.storage import times as look_ups
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.segment import Segment
from barnabas.storage.times import Found, Look
from barnabas.storage.walk import Located
from tests.support.disks.log_changes import advance_start
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch

FOLDER = "data/orders/0"
SMALL = LogSettings(segment_bytes=600, index_interval_bytes=50)


def log_of(*batches: list[int], disk: MemoryDisk | None = None, codec: Codec = Codec.NONE) -> Log:
    """Return a log with batches of records at these times."""
    log = open_log(disk or MemoryDisk(), FOLDER, SMALL).log
    for number, times in enumerate(batches):
        records = [Record(n, time, b"k", b"v") for n, time in enumerate(times)]
        batch = memoryview(build(records, codec=codec))
        log.append(batch, parse_header(batch), number)
    return log


def found(log: Log, time: int, upper: int | None = None) -> tuple[int, int] | None:
    upper = log.end_offset if upper is None else upper
    record = finish(log.offset_for_time(time, upper, Work()))
    return None if record is None else (record.offset, record.leader_epoch)


def latest_of(log: Log, upper: int) -> Found | None:
    return finish(log.max_timestamp_record(upper, Work()))


@pytest.mark.parametrize("codec", Codec)
def test_the_first_record_at_or_after_a_time(codec: Codec) -> None:
    log = log_of([10, 20], [15, 40], [30, 30], codec=codec)
    answers = {0: (0, 0), 10: (0, 0), 11: (1, 0), 20: (1, 0), 21: (3, 1), 40: (3, 1), 41: None}
    assert {time: found(log, time) for time in answers} == answers


def test_the_answer_is_never_outside_of_what_can_be_read() -> None:
    log = log_of([10, 20], [15, 40])
    assert found(log, 30, upper=3) is None
    assert found(log, 30, upper=4) == (3, 1)
    advance_start(log, 2)
    assert found(log, 0) == (2, 1)


def test_random_times_in_many_segments() -> None:
    rng = Random(3)
    batches = [[rng.randint(0, 500) for _ in range(rng.randint(1, 4))] for _ in range(120)]
    times = [time for batch in batches for time in batch]
    disk = MemoryDisk()
    log = log_of(*batches, disk=disk)
    assert len(log.segments) > 5
    again = open_log(disk, FOLDER, SMALL).log
    for time in range(0, 510, 3):
        expected = next((n for n, t in enumerate(times) if t >= time), None)
        for one in (log, again):
            answer = found(one, time)
            assert (answer and answer[0]) == expected
    for upper in range(1, len(times)):
        latest = latest_of(log, upper)
        ends = [sum(map(len, batches[:n])) for n in range(121)]
        if upper in ends:
            assert latest is not None
            assert latest.offset == times.index(max(times[:upper]))


def test_times_of_arrival_count_for_every_record() -> None:
    log = open_log(MemoryDisk(), FOLDER, SMALL).log
    append(log, make_batch(3, timestamp=5, attributes=LOG_APPEND_TIME))
    assert found(log, 5) == (0, 0)
    assert found(log, 6) is None


def test_the_latest_of_an_empty_log_is_nothing() -> None:
    assert latest_of(log_of(), 0) is None


def test_the_latest_may_lie_below_the_start() -> None:
    log = log_of([99], [10], [20, 15], [5])
    advance_start(log, 1)
    latest = latest_of(log, 5)
    assert latest is not None
    assert (latest.offset, latest.timestamp, latest.leader_epoch) == (2, 20, 2)


def test_the_latest_above_the_high_watermark_is_not_returned() -> None:
    log = log_of([10], [30], [20], [99])
    latest = latest_of(log, 3)
    assert latest is not None
    assert latest.offset == 1
    assert latest_of(log, 0) is None


def opened_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the base offset of every batch that is opened."""
    opened: list[int] = []

    def spy(look: Look, segment: Segment, located: Located) -> Steps[tuple[bytes, int]]:
        opened.append(located.header.base_offset)
        return really(look, segment, located)

    really = look_ups._opened
    monkeypatch.setattr(look_ups, "_opened", spy)
    return opened


def test_the_latest_after_a_deletion_opens_one_batch_and_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_of([99_999], *([n, n] for n in range(100)))
    advance_start(log, 1)
    opened = opened_batches(monkeypatch)
    assert latest_of(log, 201) == Found(199, 99, 100)
    assert opened == [11, 199]  # of the segment that claims 99,999, and of the one with the result
    assert latest_of(log, 201) == Found(199, 99, 100)
    assert len(opened) == 2
    assert latest_of(log, 199) == Found(197, 98, 99)  # another upper offset, another result
    log.truncate(199)
    append(log, make_batch(timestamp=500), 100)
    assert latest_of(log, 200) == Found(199, 500, 100)
    append(log, make_batch(timestamp=7), 100)
    advance_start(log, 200)
    assert latest_of(log, 201) == Found(200, 7, 100)
    assert len(log.known_latest) <= 2


def test_the_largest_timestamp_below_an_offset() -> None:
    log = log_of([50], [10], [90], [20], [70])
    found = [latest_of(log, upper) for upper in range(6)]
    assert [each and each.timestamp for each in found] == [None, 50, 50, 90, 90, 90]


def test_a_time_within_a_batch_reads_no_record_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ups, "RECORDS_AT_ONCE", 1)
    log = log_of(list(range(1_000)))
    read: list[int] = []

    def spy(body: bytes, position: int, count: int, least: int, offsets: range) -> Any:
        read.append(count)
        return first_timestamp(body, position, count, least, offsets)

    monkeypatch.setattr(look_ups, "first_timestamp", spy)
    assert found(log, 7) == (7, 0)
    assert sum(read) == 8


def test_a_batch_of_many_records_takes_many_events() -> None:
    log = log_of(list(range(30_000)))
    look = log.offset_for_time(29_999, log.end_offset, Work())
    events = 1
    while isinstance(answer := begin(look), Rest):
        events += 1
    assert answer == Found(29_999, 29_999, 0)
    assert 30_000 / EVENT_UNITS <= events <= 30_000 / EVENT_UNITS * 2


def test_a_batch_that_is_too_large_to_open_is_answered_by_its_first_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look_ups, "UNPACKED_BYTES_MAX", 500)
    monkeypatch.setattr(scanning, "SMALL_UNPACKED_BYTES", 500)
    log = log_of([1, 2], [3] * 1_000, [4], codec=Codec.ZSTD)
    assert found(log, 3) == (2, 1)
    advance_start(log, 500)
    assert found(log, 3) == (500, 1)
    assert found(log, 4) == (1_002, 2)
