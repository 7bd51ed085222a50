"""Merges the rows of one GPU or MIG instance at one time into a single row.

An exporter that sends each metric in a separate message creates many rows for a time, each with one
value. They are joined with the first value of each metric.
"""

import numpy as np
import pyarrow as pa

from barnabas.telemetry.samples import other_metrics
from barnabas.telemetry.samples.metrics import COLUMNS

IDENTITY = ("profile", "hostname", "device", "model", "namespace", "pod", "container")


def joined(rows: pa.Table, sources: np.ndarray, time_us: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """Return the rows, one for each source and time, and the index of each row's first part.

    `sources` has a number for each GPU or instance. Rows keep the order of their first parts.
    """
    order = np.lexsort((time_us, sources))
    fresh = _changes(sources[order], time_us[order])
    if fresh.all():
        return rows, np.arange(len(order))
    starts = order[fresh]
    instants = np.empty(len(order), dtype=np.int64)
    instants[order] = np.cumsum(fresh) - 1
    rank = np.argsort(np.argsort(starts))
    instants = rank[instants]
    firsts = np.sort(starts)
    return _joined_columns(rows, instants, firsts), firsts


def _changes(sources: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    fresh = np.ones(len(sources), dtype=bool)
    fresh[1:] = (sources[1:] != sources[:-1]) | (time_us[1:] != time_us[:-1])
    return fresh


def _joined_columns(rows: pa.Table, instants: np.ndarray, firsts: np.ndarray) -> pa.Table:
    places = pa.array(firsts)

    def column(name: str) -> pa.ChunkedArray | pa.Array:
        if name == "other":
            return other_metrics.joined(rows.column(name), instants, len(firsts))
        if name in COLUMNS or name in IDENTITY:
            return _first_values(rows.column(name), instants, len(firsts))
        return rows.column(name).take(places)

    return pa.table([column(name) for name in rows.schema.names], schema=rows.schema)


def _first_values(column: pa.ChunkedArray, instants: np.ndarray, count: int) -> pa.ChunkedArray:
    """Return the first value of each time that is not null."""
    there = np.flatnonzero(column.is_valid().to_numpy())[::-1]
    places = np.full(count, -1, dtype=np.int64)
    places[instants[there]] = there
    return column.take(pa.array(places, mask=places < 0))
