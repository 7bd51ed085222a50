"""Opening a log: as it was left after a clean stop, or as much as can be trusted after a crash.

After a clean stop only the headers behind the last index entry are read. After a crash every
batch from the recovery point on is checked, and the log is cut at the first bad byte: what lies
below the recovery point was synced, and what was acknowledged under `flush=ack` was synced too,
so a cut can only take what nobody was promised.
"""

from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ports import Disk
from barnabas.storage.log import (
    DELETED,
    START_OFFSET_FILE,
    SWAP,
    Log,
    LogSettings,
    rebuild_indexes,
)
from barnabas.storage.producers import ProducerStates, snapshot_offsets, snapshot_path
from barnabas.storage.segment import Segment, segment_name
from barnabas.storage.walk import walk

CLEANING_FOLDER = "cleaning"
LOG_SUFFIX = ".log"


class Recovered(NamedTuple):
    """An open log, and what had to be done to it."""

    log: Log
    truncated_bytes: int
    problems: tuple[str, ...]


def open_log(
    disk: Disk, folder: str, settings: LogSettings, *, clean: bool = False, recovery_point: int = 0
) -> Recovered:
    """Open the log in a folder, making an empty one where there is none."""
    disk.make_folder(folder)
    log = Log(disk, folder, settings)
    _sweep(disk, folder)
    problems = _load_epochs(log)
    bases = _segment_bases(disk, folder)
    log.segments = [Segment(disk, folder, base) for base in bases]
    log._bases = bases
    if not log.segments:
        log.end_offset = log.start_offset = log.flushed_offset = _stored_start(disk, folder)
        log.roll()
        return Recovered(log, 0, tuple(problems))
    truncated = _load_segments(log, clean=clean, recovery_point=recovery_point, problems=problems)
    log.start_offset = max(log.segments[0].base_offset, _stored_start(disk, folder))
    log.end_offset = max(log.active.next_offset, log.start_offset)
    log.flushed_offset = log.end_offset if clean else min(recovery_point, log.end_offset)
    log.epochs.truncate_end(log.end_offset)
    _load_producers(log, problems)
    return Recovered(log, truncated, tuple(problems))


def _sweep(disk: Disk, folder: str) -> None:
    """Finish or undo what a crash left half done."""
    disk.remove_tree(f"{folder}/{CLEANING_FOLDER}")
    for name in disk.list(folder):
        if name.endswith((DELETED, ".tmp")):
            disk.remove(f"{folder}/{name}")
        elif name.endswith(SWAP):
            _finish_swap(disk, folder, name)


def _finish_swap(disk: Disk, folder: str, name: str) -> None:
    """Put a compacted segment in its place: once it has its swap name, it is the truth."""
    base, _, end, _ = name.split(".")
    for old in _segment_bases(disk, folder):
        if int(base) <= old < int(end):
            for suffix in (".log", ".index", ".timeindex"):
                disk.remove(f"{folder}/{segment_name(old)}{suffix}")
    disk.rename(f"{folder}/{name}", f"{folder}/{base}.log")


def _segment_bases(disk: Disk, folder: str) -> list[int]:
    names = [name for name in disk.list(folder) if name.endswith(LOG_SUFFIX)]
    return sorted(int(name.removesuffix(LOG_SUFFIX)) for name in names)


def _stored_start(disk: Disk, folder: str) -> int:
    path = f"{folder}/{START_OFFSET_FILE}"
    return int(disk.read_bytes(path)) if disk.exists(path) else 0


def _load_epochs(log: Log) -> list[str]:
    try:
        log.epochs.load()
    except StorageError as error:
        return [f"{error}; made anew from the log"]
    return []


def _load_segments(log: Log, *, clean: bool, recovery_point: int, problems: list[str]) -> int:
    interval = log.settings.index_interval_bytes
    for number, segment in enumerate(log.segments):
        last = number == len(log.segments) - 1
        following = segment.base_offset if last else log.segments[number + 1].base_offset
        if not last and (clean or following <= recovery_point):
            if segment.size and not segment.load_indexes() and segment.size > 4 * interval:
                rebuild_indexes(segment, interval)
            segment.next_offset = following
            segment.forget_trust()
        elif clean:
            _load_tail(log, segment)
        else:
            cut = _recover(log, segment, recovery_point, problems)
            if cut and not last:
                cut += _drop_after(log, number, problems)
                return cut
            if cut:
                return cut
    return 0


def _load_tail(log: Log, segment: Segment) -> None:
    """Take over the last segment of a clean log: read only what its index does not cover."""
    start = segment.load_indexes()
    for position, header in walk(segment.file, start, segment.size, check=False):
        segment.note(position, header, header.base_offset, log.settings.index_interval_bytes)
        log.epochs.assign(header.leader_epoch, header.base_offset)
    _note_first_append(segment)
    segment.trusted_from = segment.size


def _recover(log: Log, segment: Segment, recovery_point: int, problems: list[str]) -> int:
    """Check a segment, make its indexes anew, cut it at the first bad byte; return what fell."""
    segment.reset_indexes()
    checked_from = _take(log, segment, 0, upto_offset=recovery_point, check=False)
    end = _take(log, segment, checked_from, upto_offset=None, check=True)
    fallen = segment.file.size() - end
    if fallen:
        if segment.next_offset < recovery_point:
            problems.append(_set_aside(log, segment, end))
        segment.truncate(end, segment.next_offset)
    _note_first_append(segment)
    segment.trusted_from = checked_from
    return fallen


def _take(log: Log, segment: Segment, start: int, *, upto_offset: int | None, check: bool) -> int:
    """Note good batches from a position on; return where the first bad or unwanted one is."""
    end = start
    try:
        for position, header in walk(segment.file, start, segment.file.size(), check=check):
            if upto_offset is not None and header.last_offset >= upto_offset:
                break
            if header.base_offset < segment.next_offset:
                break  # offsets never go backwards: this is an older file's content
            segment.note(position, header, header.base_offset, log.settings.index_interval_bytes)
            log.epochs.assign(header.leader_epoch, header.base_offset)
            end = position + header.size
    except CorruptBatchError:
        pass
    return end


def _set_aside(log: Log, segment: Segment, end: int) -> str:
    """Keep bytes that were synced once but are damaged now: a person may want them."""
    path = f"{segment.paths[0]}.damaged"
    log.disk.write_atomic(path, segment.file.read(end, segment.file.size() - end))
    return f"{segment.paths[0]} is damaged at byte {end}; what followed is kept in {path}"


def _note_first_append(segment: Segment) -> None:
    for _, header in walk(segment.file, 0, segment.size, check=False):
        segment.first_append_ms = header.max_timestamp
        return


def _drop_after(log: Log, number: int, problems: list[str]) -> int:
    """Remove the segments behind a cut one: their offsets no longer follow."""
    dropped = log.segments[number + 1 :]
    for segment in dropped:
        for path in log.retire(segment):
            log.disk.remove(path)
    del log.segments[number + 1 :]
    del log._bases[number + 1 :]
    problems.append(f"{len(dropped)} segments after a damaged one were removed")
    return sum(segment.size for segment in dropped)


def _load_producers(log: Log, problems: list[str]) -> None:
    """Start from the newest good snapshot and replay the headers behind it."""
    start = log.start_offset
    for offset in reversed(snapshot_offsets(log.disk, log.folder)):
        path = snapshot_path(log.folder, offset)
        if offset > log.end_offset:
            log.disk.remove(path)
            continue
        try:
            log.producers = ProducerStates.decode(log.disk.read_bytes(path))
            start = offset
            break
        except CorruptBatchError as error:
            problems.append(f"{path}: {error}; made anew from the log")
            log.disk.remove(path)
    for segment in log.segments:
        if segment.next_offset <= start:
            continue
        for _, header in walk(segment.file, segment.position_of(start), segment.size, check=False):
            if header.producer_id >= 0 and header.base_offset >= start:
                log.producers.record(header, header.base_offset)
