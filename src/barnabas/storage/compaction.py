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
So is a transaction's marker once the last batch of its transaction is gone (`outcomes.py`).

Batches go without regard to who sent them: the snapshot at the end of each segment remembers
their producers.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from barnabas.model.errors import StorageError
from barnabas.model.ports import Disk
from barnabas.storage.aborted import Aborted
from barnabas.storage.changes import Steps
from barnabas.storage.checkpoints import read_number, write_number
from barnabas.storage.log import CLEANER_FILE, Log
from barnabas.storage.outcomes import Outcomes
from barnabas.storage.recovery import CLEANING_FOLDER
from barnabas.storage.rewriter import Rewriter, opened
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.storage.swap import swap_in
from barnabas.storage.walk import batches_of

KEYS_MAX = 4_000_000
SEGMENTS_AT_ONCE = 50
"""So many segments are replaced within one event of the loop; each has up to four files."""


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
    aborted: list[list[int]]
    """Transactions with records in the plan that are aborted by a marker behind it."""

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
    first, end = segments[0].base_offset, segments[-1].next_offset
    return CleaningPlan(
        folder=log.folder,
        bases=[segment.base_offset for segment in segments],
        first_dirty=first_dirty,
        end=end,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        segment_bytes=log.settings.segment_bytes,
        index_interval_bytes=log.settings.index_interval_bytes,
        cuts=log.cuts,
        aborted=[list(entry) for entry in log.aborted(first, end) if entry.last_offset >= end],
    )


def clean(disk: Disk, work: CleaningPlan, keys_max: int = KEYS_MAX) -> Cleaned:
    """Carry out a plan. Runs beside the broker: reads sealed files, writes into a new folder."""
    target = f"{work.folder}/{CLEANING_FOLDER}"
    segments = _open(disk, work)  # first, since it fails where the topic was just deleted
    disk.remove_tree(target)
    disk.make_folder(target)
    aborted = [entry for segment in segments for entry in segment.aborted.entries()]
    aborted += [Aborted(*entry) for entry in work.aborted]
    latest, clean_upto = _last_offsets(segments, work, keys_max, Outcomes(aborted))
    outcomes = Outcomes(aborted)
    groups, before, after = [], 0, 0
    for group in _grouped([s for s in segments if s.base_offset < clean_upto], work):
        output = Segment(
            disk, target, group[0].base_offset, create=True, interval=work.index_interval_bytes
        )
        cleaner = Rewriter(disk, output, work, latest, outcomes)
        for segment in group:
            cleaner.rewrite(segment, last=segment is group[-1])
        before += cleaner.records_before
        after += cleaner.records_after
        cleaner.finish()
        groups.append(Group([s.base_offset for s in group]))
    return Cleaned(groups, clean_upto, before, after, work.cuts)


def apply(log: Log, cleaned: Cleaned) -> Steps[list[str]]:
    """Swap the result in; return the files to delete. Nothing happens if the log moved on."""
    by_base = {segment.base_offset: segment for segment in log.segments[:-1]}
    known = all(base in by_base for group in cleaned.groups for base in group.bases)
    if cleaned.cuts != log.cuts or not known:
        return []
    retired: list[str] = []
    log.note_sparse()
    for groups in _swapped_together(cleaned.groups):
        old = [[by_base[base] for base in group.bases] for group in groups]
        retired += yield from swap_in(log, old, f"{log.folder}/{CLEANING_FOLDER}")
    write_number(log.disk, f"{log.folder}/{CLEANER_FILE}", cleaned.clean_upto, sync=False)
    return retired


def _swapped_together(groups: list[Group]) -> Iterator[list[Group]]:
    """Share syncs between groups, of no more segments than can be renamed within one event."""
    together: list[Group] = []
    count = 0
    for group in groups:
        if together and count + len(group.bases) > SEGMENTS_AT_ONCE:
            yield together
            together, count = [], 0
        together.append(group)
        count += len(group.bases)
    if together:
        yield together


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
    segments: list[Segment], work: CleaningPlan, keys_max: int, outcomes: Outcomes
) -> tuple[dict[bytes, int], int]:
    """Map keys of the dirty part to their last offset, as far as memory allows."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        if segment.next_offset <= work.first_dirty:
            continue
        if len(latest) >= keys_max:
            return latest, segment.base_offset
        for header, batch in batches_of(segment.file, segment.size):
            if header.is_control or outcomes.is_aborted(header):
                continue
            for record in opened(header, batch) or ():
                if record.key is not None and record.offset >= work.first_dirty:
                    latest[record.key] = record.offset
    return latest, work.end


def _grouped(segments: list[Segment], work: CleaningPlan) -> Iterator[list[Segment]]:
    """Join small neighbours, so that a log does not end as a thousand tiny files."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        span = segment.next_offset - (group[0].base_offset if group else segment.base_offset)
        full = size + segment.size > work.segment_bytes or len(group) >= SEGMENTS_AT_ONCE
        if group and (full or span > RELATIVE_OFFSET_MAX):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
