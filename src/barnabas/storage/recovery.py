"""Opens a log: after a clean stop as it was left, after a crash as far as it can be trusted.

After a clean stop only the headers behind the last index entry are read. After a crash the headers
behind the resume point are read (`resuming.py`), every batch from the recovery point on is checked,
and the log is truncated at the first bad byte. Everything below the recovery point was synced, and
so were all records that were acknowledged under `flush=ack`: truncation only removes records that
were not acknowledged. The rest is synced before any client reads it, since it may be in the page
cache only.
"""

import re
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ports import Disk
from barnabas.protocol.records import CONTROL
from barnabas.storage import producer_snapshots, resuming
from barnabas.storage.changes import carry_out_now
from barnabas.storage.checkpoints import read_number
from barnabas.storage.log import (
    SPARSE_FILE,
    START_OFFSET_FILE,
    TRUNCATED_FILE,
    Log,
    LogSettings,
)
from barnabas.storage.names import LOG_SUFFIX, numbered
from barnabas.storage.producer_snapshots import Doubt
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.storage.sweeping import DAMAGED, NO_OTHERS, sweep
from barnabas.storage.walk import header_at, in_order, walk

UNSYNCED_MAX = 32
"""Segments that are open at the same time until they are synced."""


class Recovered(NamedTuple):
    """An open log, and the repairs that it needed."""

    log: Log
    truncated_bytes: int
    problems: tuple[str, ...]
    lost_synced: bool = False
    """Whether synced data is missing, which the disk lost."""
    damaged_from: int | None = None
    """The offset from which on records are known to be damaged or missing. It is below the log's
    start if the first segments are missing although they were not deleted."""
    ignored: tuple[str, ...] = ()
    """Names in the folder that are not the log's; they were left as they are."""


def open_log(
    disk: Disk,
    folder: str,
    settings: LogSettings,
    *,
    root: str = "",
    clean: bool = False,
    recovery_point: int = 0,
    others: re.Pattern[str] = NO_OTHERS,
) -> Recovered:
    """Open the log in a folder; create an empty one if there is none.

    The folder is below `root`, which always exists. `others` matches the names of the caller's
    other files in it.
    """
    new_names = [] if clean and disk.exists(folder) else _parents(folder, root)
    disk.make_folder(folder)
    opening = _Opening(disk, folder, settings, recovery_point, others)
    try:
        opening.run(clean=clean)
    except CorruptBatchError:
        # A clean log with inconsistent headers was damaged since: check all of it.
        if not clean:
            raise
        clean = False
        opening = _Opening(disk, folder, settings, recovery_point, others)
        opening.run(clean=False)
    opening.make_safe(clean=clean, new_names=new_names)
    return Recovered(
        opening.log,
        opening.fallen,
        tuple(opening.problems),
        opening.lost_synced,
        opening.damaged_from,
        opening.ignored,
    )


class _Opening:
    """One log while it is opened."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        settings: LogSettings,
        recovery_point: int,
        others: re.Pattern[str],
    ) -> None:
        self.log = Log(disk, folder, settings)
        self.problems: list[str] = []
        self.fallen = 0
        self.lost_synced = False
        self.damaged_from: int | None = None
        self.ignored: tuple[str, ...] = ()
        self.recovery_point = recovery_point
        self._others = others
        self._recovered = 0
        self._resumed: tuple[Segment, resuming.ResumePoint] | None = None
        self._with_markers: set[Segment] = set()
        # Segments whose index of aborts matches no snapshot, and whether that is a problem.
        self._unvouched: dict[Segment, bool] = {}
        self._disk = disk
        self._folder = folder

    def run(self, *, clean: bool) -> None:
        """Find the valid part of the log."""
        log = self.log
        swept = sweep(self._disk, self._folder, self._others)
        self.ignored = swept.ignored
        log.sparse = SPARSE_FILE in swept.files
        cut_to = self._number(TRUNCATED_FILE)
        if cut_to is not None:
            self.recovery_point = min(self.recovery_point, cut_to)
            log.truncated_to = None if clean else cut_to
        epochs_known = self._load_epochs()
        interval = log.settings.index_interval_bytes
        bases = numbered(self._disk, self._folder, LOG_SUFFIX)
        log.splice(0, 0, [Segment(self._disk, self._folder, b, interval=interval) for b in bases])
        log.start_offset = self._number(START_OFFSET_FILE) or 0
        self._remove_segments(log.droppable())
        self._load_segments(clean=clean)
        self._set_bounds()
        if not epochs_known and self._recovered < len(log.segments) and self._resumed is None:
            self._rebuild_epochs()
        log.epochs.truncate_end(log.end_offset)
        log.epochs.truncate_start(log.start_offset)
        self._rebuild_producers()
        if (
            clean
            and log.active.size
            and not producer_snapshots.vouches_for(log, log.active, log.end_offset)
        ):
            self._unvouched[log.active] = True
        for segment, surprising in self._unvouched.items():
            if segment in log.segments:
                self._rebuild_aborted(segment, surprising=surprising)
        log.active.thaw()

    def _rebuild_producers(self) -> None:
        log = self.log
        if self._resumed is None or self._resumed[0] not in log.segments:
            log.producers, doubts = producer_snapshots.rebuild(log)
        else:
            segment, point = self._resumed
            log.producers = point.producers
            found, doubts = producer_snapshots.resume(log, log.producers, point.totals.next_offset)
            known = segment.aborted.entries()[: point.aborted.entries]
            found = [entry for entry in found if entry.last_offset < segment.next_offset]
            if segment.aborted.replace([*known, *found]):
                log.unsynced.add_paths((segment.aborted.path,))
        self._take_note(doubts)

    def _load_epochs(self) -> bool:
        try:
            return self.log.epochs.load()
        except StorageError as error:
            self.problems.append(f"{error}; rebuilt from the log")
            return False

    def _number(self, name: str) -> int | None:
        try:
            return read_number(self._disk, f"{self._folder}/{name}")
        except StorageError as error:
            self.problems.append(str(error))
            # It is unknown where the log was truncated: check all of it.
            return 0

    def _load_segments(self, *, clean: bool) -> None:
        log = self.log
        for number, segment in enumerate(log.segments):
            last = number == len(log.segments) - 1
            following = None if last else log.segments[number + 1].base_offset
            if following is not None and (clean or following < self.recovery_point):
                self._take_over(segment, following)
            elif clean:
                segment.load_tail(dense=log.is_dense)
            elif not self._recover(segment, following):
                self._drop_after(number)
                return

    def _take_over(self, segment: Segment, following: int) -> None:
        """Accept a segment unchecked: it was synced with its indexes, and not changed since."""
        try:
            if not segment.load_indexes():
                segment.rebuild_indexes()
                segment.write_indexes()
                self.log.unsynced.add_paths(segment.paths[1:])
        except CorruptBatchError as error:
            problem = f"{segment.file.path}: {error}; what follows cannot be found"
            self._take_note([Doubt(problem, segment.next_offset)])
        segment.next_offset = following
        segment.freeze()
        if not producer_snapshots.vouches_for(self.log, segment, following):
            self._unvouched[segment] = True

    def _recover(self, segment: Segment, following: int | None) -> bool:
        """Check a segment and truncate it at the first bad byte; tell if the next one follows."""
        self._recovered += 1
        # Compaction may have rewritten a sealed segment since.
        resumes = (following is None or self.log.is_dense) and self._resume(segment)
        if not resumes:
            segment.reset()
            self.log.epochs.truncate_end(segment.base_offset)
        last = segment.base_offset + RELATIVE_OFFSET_MAX if following is None else following - 1
        trusted = self.recovery_point
        checked_from = self._take(segment, segment.size, last, upto_offset=trusted, check=False)
        end = self._take(segment, checked_from, last, upto_offset=None, check=True)
        fallen = segment.file.size() - end
        if fallen:
            self.fallen += fallen
            if segment.next_offset < self.recovery_point:
                self._set_aside(segment, end)
            segment.file.truncate(end)
        segment.trust.starts_at(checked_from)
        if not resumes and (segment in self._with_markers or segment.aborted.content):
            self._unvouched[segment] = False
        if fallen or following is not None or segment.next_offset > self.recovery_point:
            if self.log.unsynced.file_count >= UNSYNCED_MAX:
                self.log.unsynced.sync_files()
            self.log.unsynced.add_file(segment.file)
        if following is None:
            return True
        segment.write_indexes()
        segment.freeze()
        self.log.unsynced.add_paths(segment.paths[1:])
        return segment.next_offset == following

    def _resume(self, segment: Segment) -> bool:
        """Begin with the totals up to a resume point, if it fits."""
        point = resuming.load(self._disk, self._folder)
        if point is None or point.totals.base_offset != segment.base_offset:
            return False
        if point.totals.next_offset > self.recovery_point:
            return False
        if not segment.aborted.begins_as(point.aborted) or not segment.resume(point.totals):
            return False
        # An epoch that began at the point may have written nothing, and another may follow there.
        known = [entry for entry in point.epochs if entry[1] < point.totals.next_offset]
        self.log.epochs.entries = known
        self._resumed = segment, point
        return True

    def _take(
        self, segment: Segment, start: int, last: int, *, upto_offset: int | None, check: bool
    ) -> int:
        """Record good batches from a position on; return where the first bad or unwanted one is."""
        end = start
        found = walk(segment.file, start, segment.file.size(), check=check)
        expected, dense = segment.next_offset, self.log.is_dense
        for position, header in in_order(found, expected, last, dense=dense):
            if upto_offset is not None and header.last_offset >= upto_offset:
                break
            segment.note(position, header, header.base_offset)
            if header.attributes & CONTROL:
                self._with_markers.add(segment)
            self.log.epochs.assign(header.leader_epoch, header.base_offset)
            end = position + header.size
        return end

    def _take_note(self, doubts: list[Doubt]) -> None:
        """Remember what to report, and where the damage begins."""
        self.problems += [doubt.problem for doubt in doubts]
        places = [doubt.damaged_at for doubt in doubts if doubt.damaged_at is not None]
        if self.damaged_from is not None:
            places.append(self.damaged_from)
        self.damaged_from = min(places, default=None)

    def _set_aside(self, segment: Segment, end: int) -> None:
        """Keep bytes that were synced once but are damaged now, for the operator."""
        path = f"{segment.paths[0]}.{end}{DAMAGED}"
        self._disk.write_atomic(path, segment.file.read(end, segment.file.size() - end))
        self.problems.append(
            f"{segment.paths[0]} is damaged at byte {end}; what followed is kept in {path}"
        )

    def _drop_after(self, number: int) -> None:
        """Remove the segments behind a truncated one: their offsets no longer follow."""
        log = self.log
        dropped = log.segments[number + 1 :]
        log.splice(number + 1, len(dropped), [])
        log.active.trust.truncate(log.active.size)
        synced = log.active.next_offset < self.recovery_point
        for segment in reversed(dropped):
            self.fallen += segment.size
            if synced:
                self._disk.rename(segment.paths[0], segment.paths[0] + DAMAGED)
            for path in segment.paths:
                self._disk.remove(path)
        self._disk.sync_folder(self._folder)
        if any(segment.size for segment in dropped):
            kept = f"kept under names that end in {DAMAGED}" if synced else "removed"
            end = log.active.next_offset
            self.problems.append(
                f"{self._folder}: {len(dropped)} segments do not follow offset {end}: {kept}"
            )

    def _set_bounds(self) -> None:
        """Find where the log starts and ends."""
        log = self.log
        start = end = log.start_offset
        if log.segments:
            if start < log.segments[0].base_offset:
                self.damaged_from, start = start, log.segments[0].base_offset
            end = log.active.next_offset
        self.lost_synced = max(start, end) < self.recovery_point
        if self.lost_synced and not self.problems:
            self.problems.append(
                f"{self._folder} ends at offset {end}, yet up to {self.recovery_point} was synced"
            )
        log.start_offset, log.end_offset = start, max(start, end)
        log.flushed_offset = min(self.recovery_point, log.end_offset)
        if end < start or not log.segments:
            # All records are below the start: begin with an empty segment.
            removed = len(log.segments)
            self._remove_segments(removed)
            log.flushed_offset = log.end_offset
            log.roll()
            if removed:  # they must not come back: the recovery point may soon be above them
                log.unsynced.add_file(log.active.file)

    def _remove_segments(self, count: int) -> None:
        """Delete the first segments again: a crash may have undone their deletion by retention."""
        for segment in self.log.segments[:count]:
            for path in segment.paths:
                self._disk.remove(path)
        self.log.splice(0, count, [])

    def _rebuild_epochs(self) -> None:
        """Read epochs from first batches; from all batches if a segment has several epochs."""
        log = self.log
        log.epochs.entries.clear()
        firsts = [_first_epoch(segment) for segment in log.segments]
        for segment, first, after in zip(log.segments, firsts, [*firsts[1:], None], strict=True):
            if first is None:
                continue
            log.epochs.assign(first, segment.base_offset)
            if after != first:
                self._read_epochs(segment)

    def _read_epochs(self, segment: Segment) -> None:
        try:
            for _, header in walk(segment.file, 0, segment.size, check=False):
                self.log.epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptBatchError as error:
            self.problems.append(f"{segment.file.path}: {error}; its epochs are not all known")

    def _rebuild_aborted(self, segment: Segment, *, surprising: bool) -> None:
        """Read the aborted transactions from the markers, if their index may be wrong."""
        log = self.log
        aborted, doubts = producer_snapshots.aborted_in(log, segment)
        self._take_note(doubts)
        if segment.aborted.replace(aborted):
            log.unsynced.add_paths((segment.aborted.path,))
            if surprising:
                self.problems.append(f"{segment.aborted.path} was damaged; rebuilt from the log")
        if segment is not log.active:
            carry_out_now(log.disk, producer_snapshots.vouching(log, segment))

    def make_safe(self, *, clean: bool, new_names: list[str]) -> None:
        """Sync the log and its folders: they may be in the page cache only."""
        log = self.log
        log.unsynced.add_folders([*new_names, self._folder])
        if clean:
            log.flushed_offset = log.end_offset
            # A clean stop stored recovery points too: none is older than the truncation.
            self._disk.remove(f"{self._folder}/{TRUNCATED_FILE}")
        elif log.unsynced.any_files:
            # Compaction may soon remove the batches from which this was learned.
            log.store_memory()
            log.flush()
        log.sealed_offset = log.active.base_offset
        log.producers.settle(log.flushed_offset)


def _first_epoch(segment: Segment) -> int | None:
    try:
        return header_at(segment.file, 0, segment.size).leader_epoch if segment.size else None
    except CorruptBatchError:
        return None


def _parents(folder: str, root: str) -> list[str]:
    """Return the folders above one, up to and including the root."""
    found = []
    while folder != root and "/" in folder:
        folder = folder.rpartition("/")[0]
        found.append(folder)
    return found if root else []
