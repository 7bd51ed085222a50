"""Sorts the files in a log's folder: its own, what a crash left behind, and foreign files.

A file belongs to the log only if its whole name is one that the log uses:

    <offset>.log .index .timeindex .txnindex .snapshot      segments and producers
    <segment's file>.<end offset>.deleted                   retired
    <offset>.log.<end offset>.swap                          compacted, not yet in place
    <offset>.log.damaged, <offset>.log.<byte>.damaged       set aside for the operator
    leader-epoch-checkpoint, log-start-offset, ...          small files
    <any of these>.tmp                                      not yet renamed
    cleaning/                                               what compaction writes

All other files are ignored: an editor's backup, the files of Apache Kafka, a folder that has a
file's name. Recovery names them in a warning, so that the operator can remove them.
"""

import re
from typing import NamedTuple

from barnabas.model.ports import Disk
from barnabas.storage.compacting.swap import SWAP_SUFFIX, finish_swap
from barnabas.storage.epochs import FILE_NAME as EPOCHS_FILE
from barnabas.storage.log import (
    CLEANER_FILE,
    DELETED,
    RESUME_FILE,
    SPARSE_FILE,
    START_OFFSET_FILE,
    TRUNCATED_FILE,
)
from barnabas.storage.names import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    offset_in,
)
from barnabas.storage.producer_snapshots import SUFFIX as SNAPSHOT_SUFFIX

CLEANING_FOLDER = "cleaning"
DAMAGED = ".damaged"
UNFINISHED = ".tmp"
SMALL_FILES = (
    EPOCHS_FILE,
    START_OFFSET_FILE,
    TRUNCATED_FILE,
    CLEANER_FILE,
    SPARSE_FILE,
    RESUME_FILE,
)

_OFFSET = "[0-9]{20}"
_INDEX = f"{_OFFSET}({'|'.join(map(re.escape, INDEX_SUFFIXES))})"
_SEGMENT = f"{_OFFSET}{re.escape(LOG_SUFFIX)}|{_INDEX}"
_KEPT = re.compile(
    f"{_SEGMENT}|{_OFFSET}{re.escape(SNAPSHOT_SUFFIX)}|{'|'.join(map(re.escape, SMALL_FILES))}"
    rf"|{_OFFSET}{re.escape(LOG_SUFFIX)}(\.[0-9]+)?{re.escape(DAMAGED)}"
)
_RETIRED = re.compile(rf"({_SEGMENT})\.[0-9]{{1,20}}{re.escape(DELETED)}")
_SWAP = re.compile(rf"({_OFFSET}){re.escape(LOG_SUFFIX)}\.({_OFFSET}){re.escape(SWAP_SUFFIX)}")
_INDEX_FILE = re.compile(_INDEX)
_NUMBERED = re.compile(rf"({_OFFSET})\..*", re.DOTALL)

NO_OTHERS = re.compile("(?!)")
"""The default for the names of the caller's other files: matches nothing."""


class Swept(NamedTuple):
    """The files in a folder, once all interrupted changes are finished or undone."""

    files: list[str]
    ignored: tuple[str, ...]
    """Names that are not the log's, left as they are."""


def sweep(disk: Disk, folder: str, others: re.Pattern[str] = NO_OTHERS) -> Swept:
    """Finish or undo changes that a crash interrupted in a log's folder.

    `others` matches the names of the caller's other files there.
    """
    files = disk.files(folder)
    folders = sorted(set(disk.list(folder)).difference(files))
    ignored = [name for name in folders if name != CLEANING_FOLDER]
    if CLEANING_FOLDER in folders:
        disk.remove_tree(f"{folder}/{CLEANING_FOLDER}")
    kept: list[str] = []
    swaps: list[str] = []
    for name in files:
        if _belongs(name, others):
            kept.append(name)
        elif _RETIRED.fullmatch(name) or _is_unfinished(name, others):
            disk.remove(f"{folder}/{name}")
        elif _is_swap(name):
            swaps.append(name)
        else:
            ignored.append(name)
    for name in swaps:
        finish_swap(disk, folder, name)
    _sweep_indexes(disk, folder, disk.files(folder) if swaps else kept)
    return Swept(kept, tuple(ignored))


def _belongs(name: str, others: re.Pattern[str]) -> bool:
    if not _KEPT.fullmatch(name):
        return others.fullmatch(name) is not None
    counted = _NUMBERED.fullmatch(name)
    return counted is None or offset_in(counted[1]) is not None


def _is_unfinished(name: str, others: re.Pattern[str]) -> bool:
    return name.endswith(UNFINISHED) and _belongs(name.removesuffix(UNFINISHED), others)


def _is_swap(name: str) -> bool:
    found = _SWAP.fullmatch(name)
    if found is None:
        return False
    base, end = offset_in(found[1]), offset_in(found[2])
    return base is not None and end is not None and base < end


def _sweep_indexes(disk: Disk, folder: str, names: list[str]) -> None:
    """Remove indexes of segments that a power failure removed.

    The next segment of that name would use their entries.
    """
    stems = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        if _INDEX_FILE.fullmatch(name) and name.partition(".")[0] not in stems:
            disk.remove(f"{folder}/{name}")
