"""Plain values to Arrow tables and back, and Arrow tables to files named after their batch.

Files appear whole: written beside their place and renamed, so that a reader or a file stream never
meets half a file.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.telemetry import tables
from barnabas.telemetry.alerts import Alert
from barnabas.telemetry.finding import Finding, Window

_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def schema(columns: Sequence[tables.Column]) -> pa.Schema:
    """Return the Arrow schema of a table of flat columns."""
    return pa.schema([(each.name, _TYPES[each.type]) for each in columns])


def table_of(rows: Sequence[Finding] | Sequence[Alert], columns: Sequence[tables.Column]) -> pa.Table:
    """Return rows, in the order of the table's columns, as an Arrow table."""
    target = schema(columns)
    values = zip(*rows, strict=True) if rows else ((),) * len(target)
    arrays = [pa.array(value, kind) for value, kind in zip(values, target.types, strict=True)]
    return pa.table(arrays, schema=target)


def windows_of(table: pa.Table) -> list[Window]:
    """Return the rows of a batch as windows; times as microseconds."""
    return list(map(Window._make, zip(*_columns(table, Window._fields), strict=True)))


def findings_of(table: pa.Table) -> list[Finding]:
    """Return what the rules found in a batch, from the column `found` of its rows."""
    found = table.column("found").combine_chunks()
    if len(found.flatten()) == 0:
        return []
    reported = pa.Table.from_struct_array(found.flatten())
    context = table.select(list(Finding._fields[:6])).take(found.value_parent_indices())
    columns = _columns(context, Finding._fields[:6]) + _columns(reported, Finding._fields[6:])
    return list(map(Finding._make, zip(*columns, strict=True)))


def write(table: pa.Table, path: Path) -> None:
    """Write a Parquet file that replaces what a former run of the same batch left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    pq.write_table(table, draft, compression="zstd")
    os.replace(draft, path)  # noqa: PTH105


def batch_file(folder: Path, batch_id: int) -> Path:
    """Return where a batch's rows of a table are."""
    return folder / f"batch-{batch_id:010d}.parquet"


def _columns(table: pa.Table, names: Iterable[str]) -> list[list[object]]:
    return [_values(table.column(name)) for name in names]


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values
