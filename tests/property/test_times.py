"""Tests lookups by time against a simple model that opens every batch."""

from collections.abc import Callable
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.model import steps
from barnabas.model.steps import Steps, Work, resume
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import LOG_APPEND_TIME, Record, build, parse_header, records
from barnabas.storage import times
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.times import Found
from barnabas.storage.walk import batches_of
from tests.support.disks.log_changes import advance_start
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.examples import examples

FOLDER = "data/orders/0"


def readable(log: Log, upper: int) -> list[Found]:
    """Return every record that can be read, by opening all batches."""
    return [
        Found(record.offset, record.timestamp, header.leader_epoch)
        for segment in log.segments
        for header, batch in batches_of(segment.file, segment.size)
        for record in records(batch, header)
        if log.start_offset <= record.offset < upper
    ]


def first_at_or_after(log: Log, time: int, upper: int) -> Found | None:
    return next((found for found in readable(log, upper) if found.timestamp >= time), None)


def latest(log: Log, upper: int) -> Found | None:
    if log.start_offset >= log.end_offset:
        return None
    return max(readable(log, upper), key=lambda f: (f.timestamp, -f.offset), default=None)


batches = st.lists(
    st.tuples(
        st.lists(st.integers(0, 60), min_size=1, max_size=5),
        st.sampled_from(Codec),
        st.sampled_from([0, 0, 0, LOG_APPEND_TIME]),
    ),
    min_size=1,
    max_size=25,
)


def log_of(
    content: list[tuple[list[int], Codec, int]], segment_bytes: int, interval: int
) -> tuple[Log, list[int]]:
    """Return a log, and where its batches end."""
    shape = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=interval)
    log = open_log(MemoryDisk(), FOLDER, shape).log
    ends = [0]
    for epoch, (stamps, codec, attributes) in enumerate(content):
        made = [Record(n, time, b"k", b"v") for n, time in enumerate(stamps)]
        batch = memoryview(build(made, codec=codec, attributes=attributes))
        log.append(batch, parse_header(batch), epoch)
        ends.append(log.end_offset)
    return log, ends


def run(look: Steps[Found | None], meanwhile: Callable[[], None] = lambda: None) -> Found | None:
    """Run a lookup step by step, with other actions in between."""
    call = None
    try:
        while True:
            call = resume(look, call)
            meanwhile()
    except StopIteration as end:
        found: Found | None = end.value
        return found


@settings(deadline=None, max_examples=examples(150))
@given(
    content=batches,
    segment_bytes=st.sampled_from([1, 300, 1 << 20]),
    interval=st.sampled_from([0, 150, 4096]),
    start=st.floats(0, 1),
    upper=st.floats(0, 1),
    units=st.sampled_from([1, 30, 2_000]),
    most=st.sampled_from([1, 3, 1_000]),
)
def test_the_same_is_found_as_by_opening_every_batch(
    content: list[tuple[list[int], Codec, int]],
    segment_bytes: int,
    interval: int,
    start: float,
    upper: float,
    units: int,
    most: int,
) -> None:
    log, ends = log_of(content, segment_bytes, interval)
    advance_start(log, int(start * log.end_offset))  # also within a batch
    limit = ends[int(upper * (len(ends) - 1))]
    with (
        patch.object(steps, "EVENT_UNITS", units),
        patch.object(times, "CANDIDATES_MAX", most),
        patch.object(times, "RECORDS_AT_ONCE", 2),
    ):
        for time in range(0, 62, 7):
            look = log.offset_for_time(time, limit, Work())
            assert run(look) == first_at_or_after(log, time, limit)
        for _ in range(2):  # the second time from the cache
            assert run(log.max_timestamp_record(limit, Work())) == latest(log, limit)


@settings(deadline=None, max_examples=examples(100))
@given(content=batches, seed=st.integers(0, 2**32))
def test_a_log_that_changes_meanwhile_is_looked_at_again(
    content: list[tuple[list[int], Codec, int]], seed: int
) -> None:
    log, ends = log_of(content, 300, 0)
    rng = Random(seed)
    upper = log.end_offset

    def change() -> None:
        nonlocal upper
        if rng.random() < 0.1:
            log.truncate(rng.choice([end for end in ends if end >= log.start_offset]))
            upper = min(upper, log.end_offset)

    with patch.object(steps, "EVENT_UNITS", 1), patch.object(times, "RECORDS_AT_ONCE", 1):
        time = rng.randint(0, 60)
        found = run(log.offset_for_time(time, upper, Work()), change)
        assert found == first_at_or_after(log, time, upper)
        newest = run(log.max_timestamp_record(upper, Work()), change)
        assert newest == latest(log, upper)
