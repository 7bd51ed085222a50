"""Look-ups by time are exact, also where times are out of order."""

from random import Random

import pytest

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import LOG_APPEND_TIME, Record, build, parse_header
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.testing.batches import append, make_batch
from barnabas.testing.log_changes import advance_start
from barnabas.testing.memory_disk import MemoryDisk

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
    record = log.offset_for_time(time, log.end_offset if upper is None else upper)
    return None if record is None else (record[0].offset, record[1])


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
        latest = log.max_timestamp_record(upper)
        ends = [sum(map(len, batches[:n])) for n in range(121)]
        if upper in ends:
            assert latest is not None
            assert latest[0].offset == times.index(max(times[:upper]))


def test_times_of_arrival_count_for_every_record() -> None:
    log = open_log(MemoryDisk(), FOLDER, SMALL).log
    append(log, make_batch(3, timestamp=5, attributes=LOG_APPEND_TIME))
    assert found(log, 5) == (0, 0)
    assert found(log, 6) is None


def test_the_latest_of_an_empty_log_is_nothing() -> None:
    assert log_of().max_timestamp_record(0) is None


def test_the_latest_may_lie_below_the_start() -> None:
    log = log_of([99], [10], [20, 15], [5])
    advance_start(log, 1)
    latest = log.max_timestamp_record(5)
    assert latest is not None
    assert (latest[0].offset, latest[0].timestamp, latest[1]) == (2, 20, 2)


def test_the_latest_above_the_high_watermark_is_not_told() -> None:
    log = log_of([10], [30], [20], [99])
    latest = log.max_timestamp_record(3)
    assert latest is not None
    assert latest[0].offset == 1
    assert log.max_timestamp_record(0) is None
