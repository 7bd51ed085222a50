"""Putting a compacted segment in the place of its originals, such that a crash leaves one or the
other and never both.

    1  cleaning/B.log  ->  B.log.END.swap      from here on, it is the truth
    2  the originals from B to END  ->  .deleted
    3  B.log.END.swap  ->  B.log

The folder is synced after each step, since a power cut may take back any rename that was not:
step 3 without all of step 2 would show records twice. Recovery finds the swap name and goes on.
"""

from collections.abc import Sequence

from barnabas.model.ports import Disk
from barnabas.storage.log import Log
from barnabas.storage.names import INDEX_SUFFIXES, LOG_SUFFIX, numbered, segment_name
from barnabas.storage.segment import Segment
from barnabas.storage.snapshots import vouch_for

SWAP_SUFFIX = ".swap"


def swap_in(log: Log, old: Sequence[Segment], source: str) -> list[str]:
    """Replace neighbouring segments by the one in the folder `source`; return files to delete."""
    first = log.segments.index(old[0])
    assert log.segments[first : first + len(old)] == list(old)
    base, end = old[0].base_offset, old[-1].next_offset
    swap = f"{log.folder}/{segment_name(base)}{LOG_SUFFIX}.{segment_name(end)}{SWAP_SUFFIX}"
    log.disk.rename(f"{source}/{segment_name(base)}{LOG_SUFFIX}", swap)
    log.disk.sync_folder(log.folder)
    retired = [path for segment in old for path in log.retire(segment)]
    log.disk.sync_folder(log.folder)
    log.disk.rename(swap, f"{log.folder}/{segment_name(base)}{LOG_SUFFIX}")
    _move_indexes(log, source, base)
    log.disk.sync_folder(log.folder)
    segment = _opened(log, base, end)
    log.splice(first, len(old), [segment])
    vouch_for(log, segment)
    return retired


def finish_swap(disk: Disk, folder: str, name: str) -> None:
    """Go on where a crash stopped a swap; the indexes are made anew."""
    base, _, end, _ = name.split(".")
    for old in numbered(disk, folder, LOG_SUFFIX):
        if int(base) <= old < int(end):
            for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                disk.remove(f"{folder}/{segment_name(old)}{suffix}")
    disk.sync_folder(folder)
    disk.rename(f"{folder}/{name}", f"{folder}/{base}{LOG_SUFFIX}")
    disk.sync_folder(folder)


def _move_indexes(log: Log, source: str, base: int) -> None:
    for suffix in INDEX_SUFFIXES:
        indexed = f"{source}/{segment_name(base)}{suffix}"
        if log.disk.exists(indexed):
            log.disk.rename(indexed, f"{log.folder}/{segment_name(base)}{suffix}")


def _opened(log: Log, base: int, end: int) -> Segment:
    segment = Segment(log.disk, log.folder, base, interval=log.settings.index_interval_bytes)
    if not segment.load_indexes():
        segment.rebuild_indexes()
        segment.write_indexes()
    segment.next_offset = end
    segment.freeze()
    return segment
