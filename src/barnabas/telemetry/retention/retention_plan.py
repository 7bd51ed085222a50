"""Plans which files of a table to remove and which to merge, from names, times and sizes.

batch-0000000042.parquet, batch-0000000042-part-0001.parquet     the files of a batch
merged-0000000010-0000000042.parquet                             replaces batches 10 to 42
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

DAY_US = 86_400_000_000
MERGED_BYTES = 128 << 20
"""Files are merged up to about this size: large enough to read fast, small enough to rewrite."""
FILES_MIN = 8
"""Fewer small files are not worth a rewrite."""

_BATCH = re.compile(r"batch-(\d{10})(?:-part-\d+)?\.parquet")
_MERGED = re.compile(r"merged-(\d{10})-(\d{10})\.parquet")


class Extent(NamedTuple):
    """The batches in a file, from the first to the last."""

    first: int
    last: int

    def holds(self, other: "Extent") -> bool:
        """Return whether all batches of another file are in this one."""
        return self.first <= other.first and other.last <= self.last


class TableFile(NamedTuple):
    """A file of a table."""

    name: str
    extent: Extent
    low_us: int
    """The oldest time in the file."""
    high_us: int
    rows: int
    size: int


@dataclass(frozen=True)
class Plan:
    """The plan for a table."""

    expired: tuple[TableFile, ...] = ()
    merges: tuple[tuple[TableFile, ...], ...] = ()
    waiting: int = 0
    """Files that are too old, but that a job has not read yet."""
    kept: tuple[TableFile, ...] = field(default=())
    """The files that do not change."""


def extent_of(name: str) -> Extent | None:
    """Return the batches in a file's name; None for other files."""
    merged = _MERGED.fullmatch(name)
    if merged is not None:
        return Extent(int(merged[1]), int(merged[2]))
    batch = _BATCH.fullmatch(name)
    return None if batch is None else Extent(int(batch[1]), int(batch[1]))


def merged_name(extent: Extent) -> str:
    """Return the name of the file that replaces some batches, without its ending."""
    return f"merged-{extent.first:010d}-{extent.last:010d}"


def is_merged(name: str) -> bool:
    """Return whether a file replaces others."""
    return _MERGED.fullmatch(name) is not None


def replaced(names: Iterable[str]) -> dict[str, str]:
    """Return the files that merged files replace, each with its merged file."""
    given = sorted(names)
    known = {name: extent for name in given if (extent := extent_of(name)) is not None}
    merged = sorted(
        ((extent, name) for name, extent in known.items() if is_merged(name)),
        key=lambda each: (each[0].first, -each[0].last),
    )
    found: dict[str, str] = {}
    for name, extent in known.items():
        for outer, by in merged:
            if by != name and outer.holds(extent):
                found[name] = by
                break
    return found


def visible(names: Iterable[str]) -> list[str]:
    """Return the files of a table, without those that a merged file replaces."""
    given = list(names)
    gone = replaced(given)
    return [name for name in given if name not in gone]


def plan(
    files: Sequence[TableFile],
    *,
    cutoff_us: int | None,
    consumed: int,
    merge: bool = True,
) -> Plan:
    """Plan for a table; `consumed` is the last batch that no job will read again."""
    ordered = sorted(files, key=lambda each: each.extent)
    old = [each for each in ordered if cutoff_us is not None and each.high_us < cutoff_us]
    expired = [each for each in old if each.extent.last <= consumed]
    gone = {each.name for each in expired}
    left = [each for each in ordered if each.name not in gone]
    merges = list(_merges([e for e in left if e.extent.last <= consumed])) if merge else []
    moved = {each.name for group in merges for each in group}
    kept = tuple(each for each in left if each.name not in moved)
    return Plan(tuple(expired), tuple(merges), len(old) - len(expired), kept)


def _merges(files: Iterable[TableFile]) -> Iterable[tuple[TableFile, ...]]:
    """Yield runs of adjacent files of one day that together are not too large."""
    run: list[TableFile] = []
    day: int | None = None
    for batch in _whole_batches(files):
        own = _day(batch)
        is_next_day = None not in (day, own) and own != day
        if is_next_day or sum(each.size for each in (*run, *batch)) > MERGED_BYTES:
            yield from _worth(run)
            run, day = [], None
        if len(batch) > 1 or batch[0].size < MERGED_BYTES // 2:
            run += batch
            day = day if own is None else own
        else:
            yield from _worth(run)
            run, day = [], None
    yield from _worth(run)


def _day(batch: Iterable[TableFile]) -> int | None:
    """Return the day of the newest row; None if there are none. Late rows count for that day."""
    return max((each.high_us // DAY_US for each in batch if each.rows), default=None)


def _whole_batches(files: Iterable[TableFile]) -> Iterable[list[TableFile]]:
    """Yield the files of each batch together: a merged file replaces all of them or none."""
    group: list[TableFile] = []
    for each in files:
        if group and each.extent != group[0].extent:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _worth(run: list[TableFile]) -> Iterable[tuple[TableFile, ...]]:
    if len(run) >= FILES_MIN:
        yield tuple(run)
