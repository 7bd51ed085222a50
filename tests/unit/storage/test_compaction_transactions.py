"""Tests compaction with transactions: drops aborted records, keeps markers while needed."""

import json
from random import Random

import pytest

from barnabas.protocol.markers import parse_marker
from barnabas.protocol.records import DELETE_HORIZON, TRANSACTIONAL, Record
from barnabas.storage.compacting import compaction
from barnabas.storage.compacting.compaction import CleaningPlan, Urgency
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import swap_in
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import (
    Batch,
    Pair,
    append,
    batches_in,
    committed,
    make_batch,
    make_marker,
    read_all,
)

FOLDER = "data/orders/0"
KEEP_MS = 100
ONE_A_SEGMENT = LogSettings(segment_bytes=1, index_interval_bytes=100)


class Writer:
    """Fills a log, by default with one batch per segment."""

    def __init__(self, settings: LogSettings = ONE_A_SEGMENT) -> None:
        self.disk = MemoryDisk()
        self.settings = settings
        self.log = open_log(self.disk, FOLDER, settings, root="data").log
        self._sequences: dict[int, int] = {}

    def write(self, producer: int, *pairs: Pair) -> int:
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + len(pairs)
        batch = make_batch(
            pairs, timestamp=1, producer=(producer, 0, sequence), attributes=TRANSACTIONAL
        )
        return append(self.log, batch)

    def finish(self, producer: int, *, commit: bool) -> int:
        return append(self.log, make_marker(producer, commit=commit, timestamp=2))

    def fill(self) -> None:
        append(self.log, make_batch([(b"filler", b"x")]))

    def compact(self, now_ms: int = 1_000) -> None:
        self.fill()
        self.log.roll()
        work = self.plan(now_ms)
        assert work is not None
        for path in swap_in(self.log, compaction.clean(self.disk, work)):
            self.disk.remove(path)

    def plan(self, now_ms: int = 1_000) -> CleaningPlan | None:
        """Plan as a partition does whose clock is the disk's."""
        self.fill()
        self.fill()
        self.log.flush()
        self.log.producers.settle(self.log.flushed_offset)
        upto = min(self.log.flushed_offset, self.log.producers.first_unstable)
        return compaction.plan(
            self.log,
            Urgency(0.0, 0, 1 << 40),
            delete_retention_ms=KEEP_MS,
            now_ms=now_ms,
            upto=upto,
        )

    def reopen(self, *, crash: bool = False) -> None:
        point = 0 if crash else self.log.flushed_offset
        found = open_log(self.disk, FOLDER, self.settings, root="data", recovery_point=point)
        assert not [p for p in found.problems if "rebuilt" not in p]
        self.log = found.log


def shown(log: Log) -> dict[int, Pair]:
    """Return what a read_committed consumer gets, batch by batch."""
    found: list[Record] = []
    offset = log.start_offset
    while (piece := log.read(offset, 1, log.end_offset, at_least_one=True)) is not None:
        aborted = [(a.producer_id, a.first_offset) for a in log.aborted_in(offset, piece)]
        batches = batches_in(piece)
        found += committed(batches, aborted)
        offset = batches[-1][0].last_offset + 1
    return {r.offset: (r.key, r.value) for r in found if r.key != b"filler"}


def shown_at_once(log: Log) -> dict[int, Pair]:
    """Return what it gets in one response."""
    aborted = [(a.producer_id, a.first_offset) for a in log.aborted(0, log.end_offset)]
    found = committed(read_all(log), aborted)
    return {r.offset: (r.key, r.value) for r in found if r.key != b"filler"}


def markers(log: Log) -> list[Batch]:
    return [(header, batch) for header, batch in read_all(log) if header.is_control]


def test_records_of_aborted_transactions_go_and_overtake_nothing() -> None:
    writer = Writer()
    writer.write(7, (b"a", b"good"), (b"b", b"good"))
    writer.finish(7, commit=True)
    writer.write(8, (b"a", b"bad"), (b"c", b"bad"))
    writer.finish(8, commit=False)
    writer.compact()
    assert shown(writer.log) == {0: (b"a", b"good"), 1: (b"b", b"good")}
    data = [header for header, _ in read_all(writer.log) if header.producer_id == 8]
    assert all(header.is_control or header.record_count == 0 for header in data)


def test_a_marker_behind_the_plan_decides_as_well() -> None:
    writer = Writer(LogSettings(segment_bytes=200))
    writer.write(7, (b"a", b"good"))
    writer.finish(7, commit=True)
    first = writer.write(8, (b"a", b"bad"))
    for _ in range(6):
        writer.fill()
    writer.log.settings = LogSettings()
    marker = writer.finish(8, commit=False)  # in the active segment
    work = writer.plan()
    assert work is not None
    assert work.end <= marker
    assert work.aborted == [[8, first, marker, marker + 1]]
    again = CleaningPlan(**json.loads(json.dumps(work.to_dict())))
    assert again == work
    swap_in(writer.log, compaction.clean(writer.disk, again))
    assert shown(writer.log) == {0: (b"a", b"good")}


def test_nothing_from_the_first_open_transaction_on_is_cleaned() -> None:
    writer = Writer()
    writer.write(7, (b"a", b"1"))
    writer.finish(7, commit=True)
    start = writer.write(8, (b"a", b"2"))
    writer.write(7, (b"a", b"3"))
    writer.finish(7, commit=True)
    work = writer.plan()
    assert work is not None
    assert work.end == start
    swap_in(writer.log, compaction.clean(writer.disk, work))
    assert shown(writer.log)[0] == (b"a", b"1")
    assert writer.plan() is None


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_outlives_its_transaction_by_the_time_that_tombstones_have(commit: bool) -> None:
    writer = Writer()
    writer.write(7, (b"a", b"1"))
    marker = writer.finish(7, commit=commit)
    writer.write(8, (b"a", b"2"))
    writer.finish(8, commit=True)
    writer.compact(now_ms=1_000)

    def find() -> Batch | None:
        return next((m for m in markers(writer.log) if m[0].base_offset == marker), None)

    # The first pass removes the record, but its batch stays at the end of its segment.
    writer.log.settings = LogSettings(segment_bytes=100_000)
    for now_ms in (1_000, 2_000):
        writer.compact(now_ms)
        assert find() is not None
    header, batch = find() or pytest.fail("the marker was deleted")
    assert header.attributes & DELETE_HORIZON
    assert (header.base_timestamp, header.max_timestamp) == (2_000 + KEEP_MS, 2)
    assert parse_marker(batch, header).kind == commit
    writer.compact(now_ms=2_000 + KEEP_MS - 1)
    assert find() is not None
    writer.compact(now_ms=2_000 + KEEP_MS)
    assert find() is None
    assert shown(writer.log) == {2: (b"a", b"2")}


def test_a_marker_stays_while_anything_of_its_transaction_is_left() -> None:
    writer = Writer()
    writer.write(7, (b"a", b"1"), (b"b", b"1"))
    marker = writer.finish(7, commit=True)
    writer.write(8, (b"a", b"2"))
    writer.finish(8, commit=True)
    for now_ms in (1_000, 2_000, 3_000, 4_000):
        writer.compact(now_ms)
        (kept,) = [m for m in markers(writer.log) if m[0].base_offset == marker]
        assert not kept[0].attributes & DELETE_HORIZON
    assert shown(writer.log) == {1: (b"b", b"1"), 3: (b"a", b"2")}


def test_an_empty_index_does_not_hide_later_transactions() -> None:
    """An entry that outlived its marker would hide later commits of the producer."""
    writer = Writer()
    writer.write(7, (b"a", b"bad"))
    writer.finish(7, commit=False)
    writer.write(7, (b"b", b"good"))
    writer.finish(7, commit=True)
    writer.log.settings = LogSettings(segment_bytes=100_000)
    for now_ms in (1_000, 2_000, 3_000, 4_000):
        writer.compact(now_ms)
        assert shown(writer.log) == shown_at_once(writer.log) == {2: (b"b", b"good")}
    assert len(markers(writer.log)) == 1
    assert writer.log.aborted(0, writer.log.end_offset) == []
    for crash in (True, False):
        writer.reopen(crash=crash)
        assert shown(writer.log) == {2: (b"b", b"good")}


def test_what_is_known_of_producers_outlives_their_batches() -> None:
    writer = Writer()
    writer.write(7, (b"a", b"1"))
    writer.finish(7, commit=False)
    writer.write(8, (b"a", b"1"))
    writer.finish(8, commit=True)
    writer.write(9, (b"a", b"2"))
    writer.finish(9, commit=True)
    writer.log.settings = LogSettings(segment_bytes=100_000)
    for now_ms in (1_000, 2_000, 3_000, 4_000):
        writer.compact(now_ms)
    assert {h.producer_id for h, _ in read_all(writer.log) if h.producer_id >= 0} == {9}
    before = {i: (p.epoch, p.batches) for i, p in writer.log.producers.by_id.items()}
    assert set(before) == {7, 8, 9}
    for crash in (True, False):
        writer.reopen(crash=crash)
        known = {i: (p.epoch, p.batches) for i, p in writer.log.producers.by_id.items()}
        assert known == before


@pytest.mark.parametrize("seed", range(12))
def test_a_read_committed_consumer_notices_nothing(seed: int) -> None:
    """Compare with a dict: the last committed value of each key is there, and no other."""
    rng = Random(seed)
    writer = Writer(LogSettings(segment_bytes=rng.choice([1, 300, 900]), index_interval_bytes=100))
    latest: dict[bytes, tuple[int, bytes]] = {}
    pending: dict[int, list[tuple[bytes, int, bytes]]] = {}
    now_ms = 1_000
    for number in range(120):
        producer = rng.randint(1, 4)
        if producer in pending and rng.random() < 0.4:
            commit = rng.random() < 0.5
            writer.finish(producer, commit=commit)
            ended = pending.pop(producer)
            for key, offset, value in ended if commit else []:
                latest[key] = max(latest.get(key, (-1, b"")), (offset, value))
        else:
            pairs = [(b"%d" % rng.randint(0, 5), b"%d" % number) for _ in range(rng.randint(1, 3))]
            base = writer.write(producer, *pairs)
            sent = pending.setdefault(producer, [])
            sent += [(key, base + n, value) for n, (key, value) in enumerate(pairs)]
        if rng.random() < 0.1:
            work = writer.plan(now_ms)
            now_ms += rng.choice([0, KEEP_MS])
            if work is not None:
                swap_in(writer.log, compaction.clean(writer.disk, work))
        if rng.random() < 0.05:
            writer.log.flush()
            writer.reopen(crash=rng.random() < 0.5)
    for producer in list(pending):
        writer.finish(producer, commit=False)
    for now_ms in range(10_000, 10_000 + 4 * KEEP_MS, KEEP_MS):
        writer.compact(now_ms)
        found = shown(writer.log)
        assert found == shown_at_once(writer.log)
        values = {offset: value for offset, (_, value) in found.items()}
        assert dict(latest.values()).items() <= values.items()
    assert found == {offset: (key, value) for key, (offset, value) in latest.items()}
