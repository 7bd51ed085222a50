"""Replaces segments by their compacted versions; a crash leaves one or the other, never both.

    1  cleaning/B.log  ->  B.log.END.swap      from here on, the compacted version is valid
    2  the originals from B to END  ->  .deleted
    3  B.log.END.swap  ->  B.log

The folder is synced after each step, since a power failure may undo any rename that was not synced:
step 3 without all of step 2 would show records twice. Recovery finds the swap name and continues.

Until step 3 the log reads the originals, which it has open. Several segments are swapped in
together, to share the syncs.
"""

from collections.abc import Sequence
from contextlib import suppress

from barnabas.model.ports import Disk
from barnabas.storage.changes import ChangeSteps, Sync
from barnabas.storage.log import Log, retired_path
from barnabas.storage.names import INDEX_SUFFIXES, LOG_SUFFIX, numbered, segment_name
from barnabas.storage.producer_snapshots import vouching
from barnabas.storage.segment import Segment

SWAP_SUFFIX = ".swap"


def swap_in(log: Log, groups: Sequence[Sequence[Segment]], source: str) -> ChangeSteps[list[str]]:
    """Replace each group of adjacent segments by the segment in the folder `source`.

    Returns the files that can be deleted. If the disk refuses, the originals stay.
    """
    names_safe = Sync(folders=(log.folder,))
    placing = False
    try:
        for group in groups:
            log.disk.rename(f"{source}/{_name(group)}", _swap_path(log, group))
        yield names_safe
        retired = [path for group in groups for path in _retire(log, group)]
        yield names_safe
        placing = True
        for group in groups:
            _place(log, group, source)
    except OSError:
        yield from _undo(log, groups, placing=placing)
        raise
    swapped = [(group, _opened(log, group)) for group in groups]
    for group, segment in swapped:
        log.splice(log.segments.index(group[0]), len(group), [segment])
    for _, segment in swapped:
        yield from vouching(log, segment)
    yield names_safe
    return retired


def finish_swap(disk: Disk, folder: str, name: str) -> None:
    """Continue a swap that a crash interrupted; the indexes are rebuilt."""
    base, _, end, _ = name.split(".")
    for old in {int(base), *numbered(disk, folder, LOG_SUFFIX)}:
        if int(base) <= old < int(end):
            for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                disk.remove(f"{folder}/{segment_name(old)}{suffix}")
    disk.sync_folder(folder)
    disk.rename(f"{folder}/{name}", f"{folder}/{base}{LOG_SUFFIX}")
    disk.sync_folder(folder)


def _name(group: Sequence[Segment]) -> str:
    return f"{segment_name(group[0].base_offset)}{LOG_SUFFIX}"


def _swap_path(log: Log, group: Sequence[Segment]) -> str:
    return f"{log.folder}/{_name(group)}.{segment_name(group[-1].next_offset)}{SWAP_SUFFIX}"


def _retire(log: Log, group: Sequence[Segment]) -> list[str]:
    """Rename the originals, which may still be read for a while."""
    for segment in group:
        segment.hold()
    return [path for segment in group for path in log.retire(segment)]


def _place(log: Log, group: Sequence[Segment], source: str) -> None:
    """Rename a segment after its indexes: without the index of aborts it must not be read."""
    stem = segment_name(group[0].base_offset)
    for suffix in INDEX_SUFFIXES:
        if log.disk.exists(f"{source}/{stem}{suffix}"):
            log.disk.rename(f"{source}/{stem}{suffix}", f"{log.folder}/{stem}{suffix}")
    log.disk.rename(_swap_path(log, group), f"{log.folder}/{_name(group)}")


def _undo(log: Log, groups: Sequence[Sequence[Segment]], *, placing: bool) -> ChangeSteps[None]:
    """Rename the originals back, then remove their replacements.

    A replacement that already has its final name stays: the next start uses it.
    """
    disk = log.disk
    left = [group for group in groups if disk.exists(_swap_path(log, group))]
    for segment in (segment for group in left for segment in group):
        for path in segment.paths:
            retired = retired_path(path, segment)
            if disk.exists(retired):
                disk.rename(retired, path)
            elif placing:  # then it belongs to the replacement
                disk.remove(path)
        segment.renamed("")
    yield Sync(folders=(log.folder,))
    for group in left:
        disk.remove(_swap_path(log, group))
    yield Sync(folders=(log.folder,))


def _opened(log: Log, group: Sequence[Segment]) -> Segment:
    """Open the segment under its final name."""
    base = group[0].base_offset
    segment = Segment(log.disk, log.folder, base, interval=log.settings.index_interval_bytes)
    if not segment.load_indexes():
        segment.rebuild_indexes()
        with suppress(OSError):  # a full disk may accept them later
            segment.write_indexes()
    segment.next_offset = group[-1].next_offset
    segment.freeze()
    return segment
