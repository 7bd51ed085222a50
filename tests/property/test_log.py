"""Tests a log against a simple model, with power cuts, crashes and all operations at any time."""

import sys
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from barnabas.model.open_files import UNLIMITED
from barnabas.model.steps import Work, finish
from barnabas.protocol.compression import Codec
from barnabas.protocol.markers import ABORT, COMMIT
from barnabas.protocol.records import TRANSACTIONAL, Record, parse_header, records
from barnabas.storage import resuming, retention
from barnabas.storage.changes import Change, ChangeSteps, Sync
from barnabas.storage.compacting import compaction
from barnabas.storage.flush import FlushTask, carry_out
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log
from barnabas.storage.segment import Segment
from barnabas.storage.trimming import advance_start, drop_segments
from tests.support.disks.log_model import LogModel, ModelBatch
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.examples import examples
from tests.support.talk.batches import (
    append,
    batches_in,
    committed,
    make_batch,
    make_marker,
    read_all,
)

FOLDER = "data/topics/orders/0"
DELETE_RETENTION_MS = 50
NO_PRODUCER = (-1, -1, -1)
COORDINATOR = 4
"""Writes in transactions as coordinators do: without sequences."""
KEYS = [b"a", b"b", b"c", b"d", None]
VALUES = [b"", b"value", b"v" * 300, None]

seeds = st.integers(0, 2**32)
codecs = st.sampled_from(Codec)
contents = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), min_size=1, max_size=6
)
fractions = st.floats(0, 1)
in_transactions = st.integers(2, COORDINATOR)
limits = st.sampled_from([0, 1, 100, 500, 2_000, 1 << 20])


class LogMachine(RuleBasedStateMachine):
    """Does with a log whatever a broker, its users and its power supply may do."""

    @initialize(
        segment_bytes=st.sampled_from([1, 400, 1_500, 1 << 20]),
        interval=st.sampled_from([0, 150, 4096]),
        clock=st.integers(0, 10),
    )
    def begin(self, segment_bytes: int, interval: int, clock: int) -> None:
        self.disk = MemoryDisk()
        self.settings = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.model = LogModel()
        self.now_ms = 1_000 + clock
        self.epoch = 0
        self.safe_end = 0
        self.recovery_point = 0
        self.compacted = 0
        self.task: FlushTask | None = None
        self.unstored: list[resuming.Stored] = []
        self.sync: Sync | None = None
        self.swapping: tuple[compaction.CleaningPlan, int, int] | None = None
        self.new_start = 0
        self.retired: list[str] = []
        self.log = self.opened(clean=False)

    # --- producers ---

    @rule(content=contents, codec=codecs, age=st.integers(-20, 20), producer=st.integers(-1, 1))
    def append(
        self,
        content: list[tuple[bytes | None, bytes | None]],
        codec: Codec,
        age: int,
        producer: int,
    ) -> None:
        self.now_ms += 1
        timestamp = max(0, self.now_ms - age)
        who = NO_PRODUCER if producer < 0 else self.next_sequence(producer)
        batch = make_batch(content, timestamp=timestamp, codec=codec, producer=who)
        base = append(self.log, batch, self.epoch)
        assert base == self.model.end
        stored = [Record(base + n, timestamp, *pair) for n, pair in enumerate(content)]
        self.model.append(ModelBatch(stored, self.epoch, who))

    @rule(producer=st.integers(0, 1))
    def new_producer_epoch(self, producer: int) -> None:
        sent = self.model.sent(producer)
        epoch = sent[-1].producer[1] + 1 if sent else 0
        base = append(self.log, make_batch(producer=(producer, epoch, 0)), self.epoch)
        stored = [Record(base, 1_000, b"key", b"value")]
        self.model.append(ModelBatch(stored, self.epoch, (producer, epoch, 0)))

    @rule(content=contents, codec=codecs, producer=in_transactions)
    def write_in_transaction(
        self, content: list[tuple[bytes | None, bytes | None]], codec: Codec, producer: int
    ) -> None:
        self.now_ms += 1
        who = self.next_sequence(producer)
        batch = make_batch(
            content, timestamp=self.now_ms, codec=codec, producer=who, attributes=TRANSACTIONAL
        )
        if producer != COORDINATOR:
            assert self.log.producers.check(parse_header(batch)) is None
        base = append(self.log, batch, self.epoch)
        stored = [Record(base + n, self.now_ms, *pair) for n, pair in enumerate(content)]
        self.model.append(ModelBatch(stored, self.epoch, who, transactional=True))

    @rule(producer=in_transactions, commit=st.booleans(), raises_epoch=st.booleans())
    def end_transaction(self, producer: int, *, commit: bool, raises_epoch: bool) -> None:
        self.now_ms += 1
        epoch = self.next_sequence(producer)[1] + raises_epoch
        marker = make_marker(producer, epoch, commit=commit, timestamp=self.now_ms)
        base = append(self.log, marker, self.epoch)
        stored = [Record(base, self.now_ms, b"", b"")]
        kind = COMMIT if commit else ABORT
        self.model.append(ModelBatch(stored, self.epoch, (producer, epoch, -1), marker=kind))

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    # --- time and operators ---

    @rule()
    @precondition(lambda self: self.log.active.size)
    def roll(self) -> None:
        self.log.roll()

    @rule()
    @precondition(lambda self: self.task is None)
    def begin_flush(self) -> None:
        self.task = self.log.begin_flush()
        if self.task is not None:
            carry_out(self.disk, self.task)
            self.safe_end = max(self.safe_end, self.task.upto_offset)

    @rule()
    @precondition(lambda self: self.task is not None)
    def finish_flush(self) -> None:
        assert self.task is not None
        self.log.finish_flush(self.task)
        self.task = None

    @rule()
    @precondition(lambda self: self.log.active.size)
    def take_resume_point(self) -> None:
        resuming.capture(self.log)

    @rule(late=st.booleans())
    def checkpoint(self, *, late: bool) -> None:
        found = resuming.take_ready(self.log)
        if found is not None and late:
            self.unstored.append(found)
        elif found is not None:
            resuming.store(self.disk, found)
        self.recovery_point = self.log.flushed_offset

    @rule()
    @precondition(lambda self: self.unstored)
    def store_resume_point_late(self) -> None:
        resuming.store(self.disk, self.unstored.pop(0))

    @rule(fraction=fractions, at_once=st.booleans())
    @precondition(lambda self: self.log.change is None)
    def delete_before(self, fraction: float, *, at_once: bool) -> None:
        offset = self.offset_at(fraction)
        self.begin_change(advance_start(self.log, offset), offset, at_once=at_once)

    @rule(
        keep_ms=st.integers(-1, 30),
        keep_bytes=st.sampled_from([-1, 0, 500, 2_000]),
        at_once=st.booleans(),
    )
    @precondition(lambda self: self.log.change is None)
    def retain(self, keep_ms: int, keep_bytes: int, *, at_once: bool) -> None:
        upto = self.log.flushed_offset
        count = retention.expired(
            self.log,
            retention_ms=keep_ms,
            retention_bytes=keep_bytes,
            now_ms=self.now_ms,
            upto=upto,
        )
        if count:
            before_offset = self.log.segments[count].base_offset
            if (
                keep_ms == keep_bytes == retention.UNLIMITED
            ):  # then only records below the start are deleted
                assert before_offset <= self.model.start
            steps = drop_segments(self.log, before_offset, self.retired)
            self.begin_change(steps, before_offset, at_once=at_once)

    @rule()
    @precondition(lambda self: self.sync is not None)
    def sync_change(self) -> None:
        assert self.sync is not None
        self.sync.carry_out(self.disk)
        self.sync = None

    @rule()
    @precondition(lambda self: self.log.change is not None and self.sync is None)
    def go_on(self) -> None:
        assert self.log.change is not None
        first = self.log.segments[0]
        self.sync = self.log.change.advance()
        self.note_swap(first)

    def begin_change(self, steps: ChangeSteps[Any], new_start: int, *, at_once: bool) -> None:
        """Start a change; the log's start is known when it is over."""

        def done(_: object) -> None:
            self.log.change = None
            self.model.start = max(self.model.start, new_start)
            for path in self.retired:
                self.disk.remove(path)
            self.retired.clear()

        self.new_start = new_start
        self.log.change = Change(steps, done, self.refused)
        if at_once:
            self.finish_change()

    def refused(self, error: OSError) -> None:
        raise AssertionError("the disk never refuses writes") from error

    def finish_change(self) -> None:
        first = self.log.segments[0]
        self.log.finish_change()
        self.sync = None
        self.note_swap(first)

    def note_swap(self, first: Segment) -> None:
        """Compact the model in the same step as the log."""
        if self.swapping is not None and self.log.segments[0] is not first:
            self.model.compact(*self.swapping)
            self.swapping = None

    @rule(fraction=fractions)
    def truncate(self, fraction: float) -> None:
        self.finish_change()
        # Nothing below the high watermark is ever truncated, nor anything above it compacted.
        offset = max(self.offset_at(fraction), self.compacted)
        for path in self.log.truncate(offset):
            self.disk.remove(path)
        holding = [b.base for b in self.model.batches if b.base <= offset < b.end]
        assert self.log.end_offset in {offset, *(max(self.model.start, b) for b in holding)}
        self.model.cut(self.log.end_offset)
        self.safe_end = min(self.safe_end, self.log.end_offset)

    @rule()
    def files_are_closed(self) -> None:
        self.disk.open_files.share(0)
        self.disk.open_files.make_room()
        self.disk.open_files.share(UNLIMITED)

    @rule(
        passed_ms=st.sampled_from([0, 60]),
        keys_max=st.sampled_from([1, 2, 100]),
        at_once=st.booleans(),
    )
    @precondition(lambda self: self.log.change is None)
    def compact(self, passed_ms: int, keys_max: int, *, at_once: bool) -> None:
        self.now_ms += passed_ms
        high_watermark = self.high_watermark
        work = compaction.plan(
            self.log,
            compaction.Urgency(0.0, 0, 1 << 40),
            delete_retention_ms=DELETE_RETENTION_MS,
            now_ms=self.now_ms,
            upto=self.last_stable_offset(),
        )
        if work is None:
            return
        cleaned = compaction.clean(self.disk, work, keys_max)
        assert cleaned.groups
        self.swapping = (work, cleaned.clean_upto, high_watermark)
        self.compacted = high_watermark

        def steps() -> ChangeSteps[None]:
            self.retired += yield from compaction.apply(self.log, cleaned)

        self.begin_change(steps(), 0, at_once=at_once)

    # --- failures ---

    @rule()
    def process_dies(self) -> None:
        self.finish_swap()
        self.reopen()
        assert self.log.end_offset == self.model.end

    @rule(seed=seeds)
    def power_fails(self, seed: int) -> None:
        self.finish_swap()
        promised = self.log.flushed_offset
        self.disk.power_cut(Random(seed))
        self.reopen()
        assert self.log.end_offset >= promised
        if promised <= self.model.start:
            # Nothing readable was ever synced: the first segment may be gone, or even the folder.
            self.model.start = self.log.start_offset
        assert self.log.end_offset in self.model.boundaries()
        self.model.cut(self.log.end_offset)

    @rule(cut=st.none() | seeds)
    def stop_and_start(self, cut: int | None) -> None:
        self.unstored.clear()
        self.log.flush()
        self.finish_change()
        self.log.close()
        self.disk.sync_all()
        self.recovery_point = self.log.flushed_offset
        if cut is not None:
            self.disk.power_cut(Random(cut))
        self.log = self.opened(clean=True)
        self.task = None
        self.safe_end = self.model.end
        assert self.log.end_offset == self.model.end

    # --- invariants ---

    @rule(fraction=fractions, limit=limits, upper=fractions, at_least_one=st.booleans())
    def read(self, fraction: float, limit: int, upper: float, *, at_least_one: bool) -> None:
        offset, upper_offset = self.offset_at(fraction), self.offset_at(upper)
        piece = self.log.read(offset, limit, upper_offset, at_least_one=at_least_one)
        found = batches_in(piece)
        live = {record.offset for record in self.model.live()}
        for number, (header, _) in enumerate(found):
            assert header.last_offset < upper_offset
            assert number == 0 or header.base_offset > found[number - 1][0].last_offset
        if found:
            first = found[0][0]
            assert first.last_offset >= offset
            assert not live & set(range(offset, first.base_offset))
            assert piece is not None
            assert piece.length <= limit or (at_least_one and len(found) == 1)
        elif at_least_one:
            whole = [b for b in self.model.batches if offset < b.end <= upper_offset]
            assert not any(live & set(range(b.base, b.end)) for b in whole)

    @rule(timestamp=st.integers(0, 100), upper=fractions)
    def look_up_time(self, timestamp: int, upper: float) -> None:
        upper_offset = self.offset_at(upper)
        timestamp = max(0, self.now_ms - timestamp)
        found = finish(self.log.offset_for_time(timestamp, upper_offset, Work()))
        readable = (r for r in self.stored(upper_offset) if r.timestamp >= timestamp)
        expected = next(readable, None)
        assert (found and found[:2]) == (expected and expected[:2])
        if found is not None and expected is not None:
            assert found.leader_epoch == self.epoch_of(expected.offset)

    @rule(upper=fractions)
    def look_up_latest(self, upper: float) -> None:
        upper_offset = self.batch_end_at(upper)
        found = finish(self.log.max_timestamp_record(upper_offset, Work()))
        readable = self.stored(upper_offset)
        latest = max(readable, key=lambda r: (r.timestamp, -r.offset), default=None)
        assert (found and found[:2]) == (latest and latest[:2])

    @rule(limit=limits)
    def read_committed(self, limit: int) -> None:
        high_watermark, upper = self.high_watermark, self.last_stable_offset()
        shown: list[Record] = []
        offset = self.log.start_offset
        while (piece := self.log.read(offset, limit, upper, at_least_one=True)) is not None:
            aborted = [(a.producer_id, a.first_offset) for a in self.log.aborted_in(offset, piece)]
            found = batches_in(piece)
            shown += [r for r in committed(found, aborted) if r.offset >= offset]
            offset = found[-1][0].last_offset + 1
        assert shown == self.model.committed(high_watermark, upper)
        undecided = self.model.undecided(high_watermark)
        readable = [base for base in undecided if base >= self.model.start]
        assert upper <= min([high_watermark, *readable])
        assert upper >= max(self.model.start, min([high_watermark, *undecided]))

    @invariant()
    def the_ends_agree(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.start_offset, self.log.end_offset) == (
                self.model.start,
                self.model.end,
            )
            assert self.log.flushed_offset <= max(self.safe_end, self.model.start)

    def check_everything(self) -> None:
        found = read_all(self.log, 700)
        data = [(header, batch) for header, batch in found if not header.is_control]
        read = [r for header, batch in data for r in records(batch, header)]
        assert [r for r in read if r.offset >= self.model.start] == self.model.live()
        for header, _ in found:
            assert header.leader_epoch == self.epoch_of(header.base_offset)
            offset = max(header.base_offset, self.model.start)
            assert self.log.epochs.epoch_for(offset) == header.leader_epoch
        for producer in range(COORDINATOR):
            self.check_retries(producer)
        self.check_open_transactions()
        self.read_committed(limit=500)

    def check_retries(self, producer: int) -> None:
        for batch in self.model.sent(producer):
            if batch.base >= self.model.start:
                pairs = [(r.key, r.value) for r in batch.records]
                again = make_batch(
                    pairs,
                    producer=batch.producer,
                    attributes=TRANSACTIONAL if batch.transactional else 0,
                )
                sent = self.log.producers.check(parse_header(again))
                assert sent is not None, f"the retry of {batch.producer} would be a duplicate"
                assert sent.first_offset == batch.base, (sent, batch.producer, batch.base)

    def check_open_transactions(self) -> None:
        for producer in range(2, COORDINATOR + 1):
            expected = self.model.producer(producer)
            known = self.log.producers.by_id.get(producer)
            if all(b.base >= self.model.start for b in self.model.batches):
                assert (known and known.epoch) == (expected and expected.epoch)
            if expected is not None and (expected.first_offset or -1) >= self.model.start:
                assert known is not None
                assert known.transaction_start == expected.first_offset
            if expected is not None and expected.first_offset is None:
                assert known is None or known.transaction_start == -1

    def teardown(self) -> None:
        if hasattr(self, "log") and sys.exc_info()[0] is None:
            self.check_everything()
            self.finish_swap()
            self.reopen()
            self.check_everything()

    # --- helpers

    def opened(self, *, clean: bool) -> Log:
        recovered = open_log(
            self.disk,
            FOLDER,
            self.settings,
            root="data",
            clean=clean,
            recovery_point=self.recovery_point,
        )
        # A crash may lose small files that can be rebuilt, and segments without acknowledged
        # records.
        harmless = () if clean else ("rebuilt", "do not follow")
        serious = [p for p in recovered.problems if not any(h in p for h in harmless)]
        assert serious == [], serious
        return recovered.log

    def finish_swap(self) -> None:
        """Complete a swap: `test_crashes.py` tests crashes during a swap."""
        if self.swapping is not None:
            self.finish_change()

    def reopen(self) -> None:
        self.unstored.clear()
        under_way, self.sync = self.log.change is not None, None
        self.retired.clear()
        self.log = self.opened(clean=False)
        if under_way and self.log.start_offset == self.new_start:
            self.model.start = max(self.model.start, self.new_start)
        self.task = None
        self.safe_end = self.log.end_offset
        assert self.log.flushed_offset == self.log.end_offset

    def next_sequence(self, producer: int) -> tuple[int, int, int]:
        known = self.model.producer(producer)
        epoch = 0 if known is None else known.epoch
        if producer == COORDINATOR:
            return (producer, epoch, -1)
        if known is None or not known.sent:
            return (producer, epoch, 0)
        last = known.sent[-1]
        return (producer, epoch, last.producer[2] + len(last.records))

    @property
    def high_watermark(self) -> int:
        """Return the offset up to which a partition that follows the disk is read."""
        return max(self.log.flushed_offset, self.log.start_offset)

    def last_stable_offset(self) -> int:
        self.log.producers.settle(self.high_watermark)
        first_unstable = self.log.producers.first_unstable
        return max(self.log.start_offset, min(self.high_watermark, first_unstable))

    def stored(self, upper: int) -> list[Record]:
        """Return every record below an offset, also markers: lookups by time use all of them."""
        found = [r for header, batch in read_all(self.log) for r in records(batch, header)]
        return [record for record in found if self.model.start <= record.offset < upper]

    def offset_at(self, fraction: float) -> int:
        return self.model.start + int(fraction * (self.model.end - self.model.start))

    def batch_end_at(self, fraction: float) -> int:
        ends = sorted(self.model.boundaries())
        return ends[int(fraction * (len(ends) - 1))]

    def epoch_of(self, offset: int) -> int:
        return next(b.epoch for b in self.model.batches if b.base <= offset < b.end)


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=examples(300),
    stateful_step_count=40,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
