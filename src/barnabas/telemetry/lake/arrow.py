"""Converts findings, alerts and windows to and from Arrow tables."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from barnabas.telemetry.findings.alerts import Alert
from barnabas.telemetry.findings.finding import Finding, Window
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema

_CONTEXT = Finding._fields[:6]
_REPORTED = Finding._fields[6:]


def table_of(
    rows: Sequence[Finding] | Sequence[Alert], columns: Sequence[lake_tables.Column]
) -> pa.Table:
    """Return rows, in the order of the table's columns, as an Arrow table."""
    target = arrow_schema(columns)
    values = zip(*rows, strict=True) if rows else ((),) * len(target)
    arrays = [pa.array(value, kind) for value, kind in zip(values, target.types, strict=True)]
    return pa.table(arrays, schema=target)


def windows_from(table: pa.Table) -> list[Window]:
    """Return the rows of a batch as windows; times as microseconds."""
    return list(map(Window._make, zip(*_columns(table, Window._fields), strict=True)))


def findings_from(table: pa.Table) -> list[Finding]:
    """Return the rows of the table `findings`."""
    return list(map(Finding._make, zip(*_columns(table, Finding._fields), strict=True)))


def found_in(table: pa.Table) -> list[Finding]:
    """Return the findings of the rules in a batch, from the column `found` of its rows."""
    found = table.column("found").combine_chunks()
    reported = pa.Table.from_struct_array(found.flatten())
    context = table.select(list(_CONTEXT)).take(found.value_parent_indices())
    columns = _columns(context, _CONTEXT) + _columns(reported, _REPORTED)
    return list(map(Finding._make, zip(*columns, strict=True)))


def _columns(table: pa.Table, names: Iterable[str]) -> list[list[object]]:
    return [_values(table.column(name)) for name in names]


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values
