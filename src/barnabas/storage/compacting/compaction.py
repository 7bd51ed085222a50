"""Compaction: keeps the last record of each key, while consumers read the log.

    [ cleaned before ][ dirty ............ ][ too young, or active ]
    |                 |                     |
    start        first dirty           plan's end

`dirt_in` and `plan` decide, on the loop, by sizes and timestamps only. `clean` does the work for
each record and runs in another process: it maps each key of the dirty part to its last offset, then
rewrites the segments without the records that later ones of the same key replace. Offsets never
change; the last batch of a segment stays even if it is empty, so that the segment still ends where
the next begins.
`swap_in` puts the result in place.

The map has a bounded size (`key_map.py`). If it is full, perhaps in the middle of a batch, the log
counts as clean up to there, and the rest is left to the next compaction.

The rewritten segments are all written before any of them is swapped in, so the disk needs room for
them. Before each group of segments, `clean` checks that the disk has room for the whole group. If
it has not, `clean` returns the groups that it has written, if they are smaller than what they
replace.

A record without a value, a tombstone, is kept for `delete.retention.ms` after it was first
cleaned, so that slow readers learn of the deletion; the batch stores the time (KIP-534). So is a
transaction's marker once the last batch of its transaction is removed (`outcomes.py`).

Batches may be removed even if they are a producer's last ones: the snapshot at the end of each
segment has the producers.
"""

import errno
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from barnabas.model.errors import StorageError
from barnabas.model.ports import Disk
from barnabas.storage import ages
from barnabas.storage.aborted import Aborted
from barnabas.storage.changes import ChangeSteps
from barnabas.storage.checkpoints import read_number, write_number
from barnabas.storage.compacting.key_map import KEYS_MAX, KeyMap
from barnabas.storage.compacting.outcomes import Outcomes
from barnabas.storage.compacting.rewriter import Mapped, Rewriter, opened
from barnabas.storage.compacting.swap import swap_in
from barnabas.storage.log import CLEANER_FILE, Log
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.storage.sweeping import CLEANING_FOLDER
from barnabas.storage.walk import batches_of

ROOM_TO_SPARE_BYTES = 1024 * 1024
"""Room for the new indexes, and for other writes to the same disk meanwhile."""
SEGMENTS_AT_ONCE = 50
"""How many segments are replaced within one event of the loop; each has up to four files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """A compaction's input, in a form that can be sent to another process."""

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
    room_bytes: int
    """The free bytes that the disk must have before the work begins."""
    truncations: int
    """How often the log had been truncated when the plan was made."""
    aborted: list[list[int]]
    """Transactions with records in the plan that are aborted by a marker behind it."""

    @property
    def output(self) -> str:
        """The folder that the result is written to."""
        return f"{self.folder}/{CLEANING_FOLDER}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


class Group(NamedTuple):
    """Adjacent segments that become one."""

    bases: list[int]


class Cleaned(NamedTuple):
    """The result of a plan: groups to swap in, and the offset up to which the log is clean now."""

    groups: list[Group]
    clean_upto: int
    records_before: int
    records_after: int
    truncations: int
    lacked_room: bool = False
    """Whether it ended early, since the disk had no room for more."""


class Urgency(NamedTuple):
    """The thresholds at which a log is compacted."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int


class Dirt(NamedTuple):
    """The part of a log that could be cleaned, and how urgent that is."""

    segments: list[Segment]
    first_dirty: int
    ratio: float
    """The share of those segments that was not cleaned before."""
    overdue: bool
    """Whether a record has waited for longer than `max.compaction.lag.ms`."""


def dirt_in(log: Log, urgency: Urgency, *, now_ms: int, upto: int, clean_upto: int) -> Dirt | None:
    """Look at a log that is clean up to an offset; None if it does not need compaction."""
    segments = []
    for segment in log.segments[:-1]:
        # Until then, only its batches show what its producers sent.
        unsafe = segment.next_offset > min(upto, log.sealed_offset)
        lag_ms = urgency.min_lag_ms
        if unsafe or (lag_ms > 0 and ages.newest_ms(segment) > now_ms - lag_ms):
            break
        segments.append(segment)
    first_dirty = max(clean_upto, log.start_offset)
    dirty = [segment for segment in segments if segment.next_offset > first_dirty]
    if not dirty:
        return None
    dirty_bytes = sum(segment.size for segment in dirty)
    ratio = dirty_bytes / max(1, sum(segment.size for segment in segments))
    overdue = _is_overdue(dirty, now_ms - urgency.max_lag_ms)
    if ratio < urgency.min_dirty_ratio and not overdue:
        return None
    return Dirt(segments, first_dirty, ratio, overdue)


def _is_overdue(dirty: list[Segment], deadline_ms: int) -> bool:
    """Tell whether the first of the segments that were never cleaned began before a time."""
    first = next((segment for segment in dirty if segment.size), None)
    return deadline_ms > 0 and first is not None and ages.oldest_ms(first) < deadline_ms


def plan(
    log: Log, urgency: Urgency, *, delete_retention_ms: int, now_ms: int, upto: int
) -> CleaningPlan | None:
    """Return the plan to clean a log, if it is dirty enough."""
    clean_upto = read_checkpoint(log)
    dirt = dirt_in(log, urgency, now_ms=now_ms, upto=upto, clean_upto=clean_upto)
    if dirt is None:
        return None
    segments, segment_bytes = dirt.segments, log.settings.segment_bytes
    first, end = segments[0].base_offset, segments[-1].next_offset
    return CleaningPlan(
        folder=log.folder,
        bases=[segment.base_offset for segment in segments],
        first_dirty=dirt.first_dirty,
        end=end,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        segment_bytes=segment_bytes,
        index_interval_bytes=log.settings.index_interval_bytes,
        room_bytes=_room_for(next(_grouped(segments, segment_bytes))),
        truncations=log.truncations,
        aborted=[list(entry) for entry in log.aborted(first, end) if entry.last_offset >= end],
    )


def clean(disk: Disk, work: CleaningPlan, keys_max: int = KEYS_MAX) -> Cleaned:
    """Carry out a plan, in another process: read sealed files, write into a new folder.

    If it fails, its output is removed.
    """
    segments = _open(disk, work)  # first, since it fails if the topic was just deleted
    disk.remove_tree(work.output)
    disk.make_folder(work.output)
    try:
        return _written(disk, work, segments, keys_max)
    except BaseException:
        with suppress(OSError):
            disk.remove_tree(work.output)
        raise


def _written(disk: Disk, work: CleaningPlan, segments: list[Segment], keys_max: int) -> Cleaned:
    """Rewrite every group of segments, while the disk has space."""
    aborted = [entry for segment in segments for entry in segment.aborted.entries()]
    aborted += [Aborted(*entry) for entry in work.aborted]
    latest = KeyMap(min(keys_max, work.end - work.first_dirty))
    clean_upto = _map_keys(segments, work, latest, Outcomes(aborted))
    outcomes = Outcomes(aborted)
    groups: list[Group] = []
    before = after = saved_bytes = 0
    reached = [segment for segment in segments if segment.base_offset < clean_upto]
    for group in _grouped(reached, work.segment_bytes):
        needed, free = _room_for(group), disk.space(work.folder)[1]
        if free < needed:
            if saved_bytes <= 0:
                problem = f"compaction needs {needed} bytes and the disk has {free}"
                raise OSError(errno.ENOSPC, problem, work.folder)
            # Later records of the same keys were not reached, so the log is no cleaner than before.
            return Cleaned(
                groups, work.first_dirty, before, after, work.truncations, lacked_room=True
            )
        output = Segment(
            disk, work.output, group[0].base_offset, create=True, interval=work.index_interval_bytes
        )
        cleaner = Rewriter(disk, output, work, Mapped(latest, clean_upto), outcomes)
        for segment in group:
            cleaner.rewrite(segment, last=segment is group[-1])
        before += cleaner.records_before
        after += cleaner.records_after
        cleaner.finish(max(segment.file.modified_ms() for segment in group))
        saved_bytes += sum(segment.size for segment in group) - output.size
        groups.append(Group([s.base_offset for s in group]))
    return Cleaned(groups, clean_upto, before, after, work.truncations)


def apply(log: Log, cleaned: Cleaned) -> ChangeSteps[list[str]]:
    """Swap the result in; return the files to delete. Nothing happens if the log moved on."""
    by_base = {segment.base_offset: segment for segment in log.segments[:-1]}
    known = all(base in by_base for group in cleaned.groups for base in group.bases)
    if cleaned.truncations != log.truncations or not known:
        return []
    retired: list[str] = []
    log.note_sparse()
    for groups in _swapped_together(cleaned.groups):
        old = [[by_base[base] for base in group.bases] for group in groups]
        retired += yield from swap_in(log, old, f"{log.folder}/{CLEANING_FOLDER}")
    write_number(log.disk, f"{log.folder}/{CLEANER_FILE}", cleaned.clean_upto, sync=False)
    return retired


def _swapped_together(groups: list[Group]) -> Iterator[list[Group]]:
    """Share syncs between groups, of at most as many segments as one event can rename."""
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
    """Return up to where a log is clean; 0 if the file is missing or damaged."""
    try:
        return read_number(log.disk, f"{log.folder}/{CLEANER_FILE}") or 0
    except StorageError:
        return 0


def _open(disk: Disk, work: CleaningPlan) -> list[Segment]:
    segments = [Segment(disk, work.folder, base) for base in work.bases]
    for segment, following in zip(segments, [*work.bases[1:], work.end], strict=True):
        segment.next_offset = following
        # Opened before retention may rename it, as far as the limit of open files allows.
        assert segment.file.size() >= segment.size
    return segments


def _map_keys(
    segments: list[Segment], work: CleaningPlan, latest: KeyMap, outcomes: Outcomes
) -> int:
    """Map keys of the dirty part to their last offset; return up to where the map has room."""
    for segment in segments:
        if segment.next_offset <= work.first_dirty:
            continue
        for header, batch in batches_of(segment.file, segment.size):
            if header.is_control or outcomes.is_aborted(header):
                continue
            for record in opened(header, batch) or ():
                if record.key is None or record.offset < work.first_dirty:
                    continue
                if not latest.put(record.key, record.offset):
                    return record.offset
    return work.end


def _room_for(group: list[Segment]) -> int:
    """Return how many bytes replacing some segments may need, with a margin."""
    return sum(segment.size for segment in group) + ROOM_TO_SPARE_BYTES


def _grouped(segments: list[Segment], segment_bytes: int) -> Iterator[list[Segment]]:
    """Join small adjacent segments, so that a log does not consist of a thousand tiny files."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        span = segment.next_offset - (group[0].base_offset if group else segment.base_offset)
        full = size + segment.size > segment_bytes or len(group) >= SEGMENTS_AT_ONCE
        if group and (full or span > RELATIVE_OFFSET_MAX):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
