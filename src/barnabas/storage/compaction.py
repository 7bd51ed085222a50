"""Compaction: of each key the last record stays, and nobody reading the log notices.

    [ cleaned before ][ dirty ............ ][ too young, or active ]
    |                 |                     |
    start        first dirty           plan's end

`plan` decides, on the loop, from sizes and timestamps alone. `clean` does the work per record and
runs elsewhere: it maps each key of the dirty part to its last offset, then writes the segments
anew without the records that the map has overtaken. Offsets never change; the last batch of a
segment stays even if it is empty, so that the segment still ends where the next begins. `swap_in`
puts the result in place.

A record without a value, a tombstone, is kept for `delete.retention.ms` after it was first
cleaned, so that slow readers learn of the deletion; the batch remembers until when (KIP-534).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ports import Disk
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import (
    DELETE_HORIZON,
    BatchHeader,
    Record,
    build,
    parse_header,
    records,
)
from barnabas.storage.checkpoints import read_number, write_number
from barnabas.storage.log import CLEANER_FILE, Log
from barnabas.storage.recovery import CLEANING_FOLDER
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.storage.swap import swap_in
from barnabas.storage.walk import walk

KEYS_MAX = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """Everything the work needs to know, in a form that can travel to another process."""

    folder: str
    bases: list[int]
    """The segments to clean, from the first of the log on."""
    first_dirty: int
    """Everything below this offset has been cleaned before."""
    end: int
    """The offset after the last segment of the plan."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    cuts: int
    """How often the log had been truncated by then."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


class Group(NamedTuple):
    """Neighbouring segments that become one."""

    bases: list[int]


class Cleaned(NamedTuple):
    """What came of a plan: groups to swap in, and up to where the log is clean now."""

    groups: list[Group]
    clean_upto: int
    records_before: int
    records_after: int
    cuts: int


class Urgency(NamedTuple):
    """When a log is worth the work."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int


def plan(
    log: Log, urgency: Urgency, *, delete_retention_ms: int, now_ms: int, upto: int
) -> CleaningPlan | None:
    """Return what to clean, if the log is dirty enough."""
    segments = []
    for segment in log.segments[:-1]:
        too_young = urgency.min_lag_ms > 0 and segment.max_timestamp > now_ms - urgency.min_lag_ms
        # Until then, what its producers sent can be known from its batches alone.
        unsafe = segment.next_offset > min(upto, log.sealed_offset)
        if unsafe or too_young:
            break
        segments.append(segment)
    first_dirty = max(read_checkpoint(log), log.start_offset)
    dirty = [segment for segment in segments if segment.next_offset > first_dirty]
    if not dirty:
        return None
    dirty_bytes = sum(segment.size for segment in dirty)
    ratio = dirty_bytes / max(1, sum(segment.size for segment in segments))
    overdue = 0 <= dirty[0].max_timestamp < now_ms - urgency.max_lag_ms
    if ratio < urgency.min_dirty_ratio and not overdue:
        return None
    return CleaningPlan(
        folder=log.folder,
        bases=[segment.base_offset for segment in segments],
        first_dirty=first_dirty,
        end=segments[-1].next_offset,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        segment_bytes=log.settings.segment_bytes,
        index_interval_bytes=log.settings.index_interval_bytes,
        cuts=log.cuts,
    )


def clean(disk: Disk, work: CleaningPlan, keys_max: int = KEYS_MAX) -> Cleaned:
    """Carry out a plan. Runs beside the broker: reads sealed files, writes into a new folder."""
    target = f"{work.folder}/{CLEANING_FOLDER}"
    segments = _open(disk, work)  # first, since it fails where the topic was just deleted
    disk.remove_tree(target)
    disk.make_folder(target)
    latest, clean_upto = _last_offsets(segments, work, keys_max)
    groups, before, after = [], 0, 0
    for group in _grouped([s for s in segments if s.base_offset < clean_upto], work):
        cleaner = _Rewriter(disk, target, group[0].base_offset, work, latest)
        for segment in group:
            cleaner.rewrite(segment, last=segment is group[-1])
        before += cleaner.records_before
        after += cleaner.records_after
        cleaner.finish()
        groups.append(Group([s.base_offset for s in group]))
    return Cleaned(groups, clean_upto, before, after, work.cuts)


def apply(log: Log, cleaned: Cleaned) -> list[str]:
    """Swap the result in; return the files to delete. Nothing happens if the log moved on."""
    by_base = {segment.base_offset: segment for segment in log.segments[:-1]}
    known = all(base in by_base for group in cleaned.groups for base in group.bases)
    if cleaned.cuts != log.cuts or not known:
        return []
    retired: list[str] = []
    for group in cleaned.groups:
        old = [by_base[base] for base in group.bases]
        retired += swap_in(log, old, f"{log.folder}/{CLEANING_FOLDER}")
    write_number(log.disk, f"{log.folder}/{CLEANER_FILE}", cleaned.clean_upto, sync=False)
    return retired


def read_checkpoint(log: Log) -> int:
    """Return up to where a log is clean; nowhere, if the file is missing or damaged."""
    try:
        return read_number(log.disk, f"{log.folder}/{CLEANER_FILE}") or 0
    except StorageError:
        return 0


def _open(disk: Disk, work: CleaningPlan) -> list[Segment]:
    segments = [Segment(disk, work.folder, base) for base in work.bases]
    for segment, following in zip(segments, [*work.bases[1:], work.end], strict=True):
        segment.next_offset = following
    return segments


def _last_offsets(
    segments: list[Segment], work: CleaningPlan, keys_max: int
) -> tuple[dict[bytes, int], int]:
    """Map keys of the dirty part to their last offset, as far as memory allows."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        if segment.next_offset <= work.first_dirty:
            continue
        if len(latest) >= keys_max:
            return latest, segment.base_offset
        for header, batch in _batches(segment):
            for record in _opened(header, batch) or ():
                if record.key is not None and record.offset >= work.first_dirty:
                    latest[record.key] = record.offset
    return latest, work.end


def _grouped(segments: list[Segment], work: CleaningPlan) -> Iterator[list[Segment]]:
    """Join small neighbours, so that a log does not end as a thousand tiny files."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        span = segment.next_offset - (group[0].base_offset if group else segment.base_offset)
        if group and (size + segment.size > work.segment_bytes or span > RELATIVE_OFFSET_MAX):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


def _batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
    for position, header in walk(segment.file, 0, segment.size, check=True):
        yield header, segment.file.read(position, header.size)


def _opened(header: BatchHeader, batch: bytes) -> list[Record] | None:
    """Return a batch's records; None where they are not ours to judge.

    Those are transaction markers, and what a producer packed badly but with a good checksum.
    """
    if header.is_control:
        return None
    try:
        return list(records(batch, header))
    except CorruptBatchError:
        return None


class _Rewriter:
    """Writes one output segment from a group of input segments."""

    def __init__(
        self, disk: Disk, target: str, base: int, work: CleaningPlan, latest: dict[bytes, int]
    ) -> None:
        interval = work.index_interval_bytes
        self._disk = disk
        self._output = Segment(disk, target, base, create=True, interval=interval)
        self._work = work
        self._latest = latest
        self.records_before = 0
        self.records_after = 0

    def rewrite(self, segment: Segment, *, last: bool) -> None:
        """Write what is left of one segment; of the last one, the end stays in any case."""
        for header, batch in _batches(segment):
            self.records_before += header.record_count
            kept = self._keep(header, batch)
            if kept is None and last and header.last_offset + 1 == segment.next_offset:
                attributes = header.attributes & ~DELETE_HORIZON
                kept = _rebuilt(header, [], attributes, header.max_timestamp)
            if kept is not None:
                self._output.append(kept, parse_header(kept), header.base_offset)

    def finish(self) -> None:
        """Make the output safe, indexes included."""
        self._output.write_indexes()
        self._output.file.sync()
        for path in self._output.paths[1:]:
            if self._disk.exists(path):
                self._disk.open(path).sync()

    def _keep(self, header: BatchHeader, batch: bytes) -> bytes | bytearray | None:
        """Return the batch without what is overtaken: untouched, rebuilt, or None if empty."""
        content = _opened(header, batch)
        if content is None:
            self.records_after += header.record_count
            return batch
        horizon = header.base_timestamp if header.attributes & DELETE_HORIZON else None
        survivors = [record for record in content if self._survives(record, horizon)]
        self.records_after += len(survivors)
        if not survivors:
            return None
        if horizon is None and any(record.value is None for record in survivors):
            until = self._work.now_ms + self._work.delete_retention_ms
            return _rebuilt(header, survivors, header.attributes | DELETE_HORIZON, until)
        if len(survivors) == header.record_count:
            return batch
        return _rebuilt(header, survivors, header.attributes, header.base_timestamp)

    def _survives(self, record: Record, horizon: int | None) -> bool:
        if record.key is None:
            return False
        if self._latest.get(record.key, -1) > record.offset:
            return False
        return record.value is not None or horizon is None or self._work.now_ms < horizon


def _rebuilt(
    header: BatchHeader, survivors: list[Record], attributes: int, base_timestamp: int
) -> bytearray:
    """Make the batch again around fewer records, at the same offsets and sequences."""
    return build(
        survivors,
        codec=Codec(header.codec) if survivors else Codec.NONE,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        base_timestamp=base_timestamp,
        attributes=attributes,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
