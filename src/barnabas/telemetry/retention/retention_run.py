"""Runs retention on a lake in a folder: lists files, plans, merges and removes.

Each step leaves a lake that reads the same, or with fewer old rows:

    1. files that a merged file stands for are removed: a run before was killed between 3 and 1
    2. files whose rows are all too old are removed, the oldest first
    3. small files of a day are merged into a file beside them, which is synced and renamed; then 1
    4. notes of batches that are long gone are removed
"""

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from barnabas.telemetry.lake.lake import NOTES, ROW_GROUP_ROWS
from barnabas.telemetry.lake.lake_lock import LakeBusyError
from barnabas.telemetry.lake.lake_tables import TABLES
from barnabas.telemetry.retention import consumers, delta_log, retention_plan
from barnabas.telemetry.retention.retention_plan import Extent, Plan, TableFile

TIMES = {
    "bronze": "timestamp",
    "silver": "timestamp",
    "gold_10s": "window_end",
    "gold_1m": "window_end",
    "findings": "window_end",
    "alerts": "last_seen",
}
"""The column with the time of a row."""
NOTES_KEPT = 1000
"""The newest notes stay even without files: they are small, and show the history of jobs."""
LOCK = "_retain_lock"
GROUP_BYTES = 256 << 20
"""A group of rows is held in memory up to this size."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TableResult:
    """The result of a run for a table, or of a dry run."""

    table: str
    files: int
    """Before."""
    size: int
    plan: Plan
    notes: int = 0
    """Notes of batches long gone that were removed."""


@contextmanager
def held(lake: Path) -> Iterator[None]:
    """Allow one retention run at a time on a lake; jobs may run meanwhile."""
    with (lake / LOCK).open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LakeBusyError(f"Another retention works on {lake}; let it end first") from error
        yield


def retain(
    lake: Path, keep_us: Mapping[str, int], *, merge: bool = True, dry_run: bool = False
) -> list[TableResult]:
    """Remove files that are older than their table's `keep_us`, and merge small files."""
    found = [name for name in TABLES if (lake / name).is_dir()]
    with held(lake):
        return [
            _retain_table(lake, name, keep_us.get(name), merge=merge, dry_run=dry_run)
            for name in found
        ]


def _retain_table(
    lake: Path, table: str, keep_us: int | None, *, merge: bool, dry_run: bool
) -> TableResult:
    folder = lake / table
    consumed = consumers.consumed(lake, table)
    if not dry_run:
        _finish(folder)
    files = _files(folder, TIMES[table])
    newest_us = max((each.high_us for each in files), default=0)
    cutoff_us = None if keep_us is None else newest_us - keep_us
    plan = retention_plan.plan(files, cutoff_us=cutoff_us, consumed=consumed, merge=merge)
    notes = 0
    if not dry_run:
        if plan.expired:
            _remove(folder, [each.name for each in plan.expired])
        for group in plan.merges:
            merge_files(folder, group)
        notes = _remove_notes(lake, table, consumed)
    return TableResult(table, len(files), sum(each.size for each in files), plan, notes)


def merge_files(folder: Path, group: Sequence[TableFile]) -> str:
    """Write the rows of some files into one that replaces them, and remove them."""
    extent = Extent(group[0].extent.first, max(each.extent.last for each in group))
    name = f"{retention_plan.merged_name(extent)}.parquet"
    draft = folder / f".{name}.draft"
    rows = _write_merged(draft, [folder / each.name for each in group])
    assert rows == sum(each.rows for each in group), f"{name} holds {rows} rows"
    draft.rename(folder / name)
    _sync(folder)
    _finish(folder)
    return name


def _write_merged(draft: Path, sources: Sequence[Path]) -> int:
    """Write rows in their order; a column that earlier files lack is null in their rows."""
    schema = pa.unify_schemas([pq.read_schema(each).remove_metadata() for each in sources])
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    rows = 0
    with pq.ParquetWriter(
        draft, schema, compression="zstd", compression_level=3, use_dictionary=texts
    ) as writer:
        for group in _row_groups(sources, schema):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    _sync(draft)
    return rows


def _row_groups(sources: Sequence[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows in large groups, since small groups are slow to read."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for source in sources:
        with pq.ParquetFile(source) as file:
            for batch in file.iter_batches(ROW_GROUP_ROWS):
                waiting.append(_completed(batch, schema))
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if rows >= ROW_GROUP_ROWS or size >= GROUP_BYTES:
                    yield pa.concat_tables(waiting)
                    waiting, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(waiting)


def _completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _finish(folder: Path) -> None:
    """Remove incomplete files of a killed run, and files that a merged file replaces."""
    for draft in folder.glob(".merged-*.draft"):
        draft.unlink()
    names = _names(folder)
    by: dict[str, list[str]] = {}
    for name, merged in retention_plan.replaced(names).items():
        by.setdefault(merged, []).append(name)
    for merged, gone in by.items():
        if delta_log.is_delta(folder):
            delta_log.swap(folder, gone, merged)
        for name in gone:
            (folder / name).unlink(missing_ok=True)


def _remove(folder: Path, names: Sequence[str]) -> None:
    if delta_log.is_delta(folder):
        delta_log.swap(folder, names, None)
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _remove_notes(lake: Path, table: str, consumed: int) -> int:
    """Remove the notes of batches that no longer have files, except for the newest."""
    numbers = consumers.note_numbers(lake, table)
    extents = [retention_plan.extent_of(name) for name in _names(lake / table)]
    first = min((each.first for each in extents if each is not None), default=consumed)
    old = [n for n in numbers[:-NOTES_KEPT] if n < first and n <= consumed]
    for number in old:
        (lake / NOTES / table / f"batch-{number:010d}.json").unlink(missing_ok=True)
    return len(old)


def _files(folder: Path, column: str) -> list[TableFile]:
    return [
        each
        for name in retention_plan.visible(_names(folder))
        if (each := _table_file(folder / name, column)) is not None
    ]


def _table_file(path: Path, column: str) -> TableFile | None:
    """Return the facts in a footer; None for other files, or one that is being removed."""
    extent = retention_plan.extent_of(path.name)
    if extent is None:
        return None
    try:
        with pq.ParquetFile(path) as file:
            low, high = _times(file, column)
            return TableFile(path.name, extent, low, high, file.metadata.num_rows, _size(path))
    except FileNotFoundError:
        return None


def _times(file: pq.ParquetFile, column: str) -> tuple[int, int]:
    """Return the oldest and newest time of a file, in microseconds; 0 if it has no rows."""
    if file.metadata.num_rows == 0:
        return 0, 0
    groups = range(file.metadata.num_row_groups)
    place = file.schema_arrow.get_field_index(column)
    known = [file.metadata.row_group(n).column(_leaf(file, place)).statistics for n in groups]
    if all(each is not None and each.has_min_max for each in known):
        return min(_us(each.min) for each in known), max(_us(each.max) for each in known)
    bounds = pc.min_max(file.read(columns=[column]).column(column).cast(pa.int64())).as_py()
    return int(bounds["min"] or 0), int(bounds["max"] or 0)


def _leaf(file: pq.ParquetFile, place: int) -> int:
    """Return the index of a column in the footer, which lists the parts of nested columns."""
    name = file.schema_arrow.field(place).name
    leaves = [file.schema.column(n).path for n in range(len(file.schema))]
    return leaves.index(name)


def _us(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def _names(folder: Path) -> list[str]:
    return sorted(
        each.name
        for each in folder.iterdir()
        if each.suffix == ".parquet" and not each.name.startswith((".", "_"))
    )


def _size(path: Path) -> int:
    return path.stat().st_size


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
