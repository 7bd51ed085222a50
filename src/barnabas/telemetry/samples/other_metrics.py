"""Stores metrics without a column of their own in a map from name to value.

An exporter can be configured to report any of DCGM's fields. Fields that no finding uses are kept
unchanged in the column `other` of silver, so that a new field needs no new version of the pipeline.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.samples.duplicates import text_numbers
from barnabas.telemetry.samples.metrics import NO_VALUE_32_FROM, NO_VALUE_DOUBLE_FROM, NO_VALUE_FROM

NAMES_MAX = 128
"""The limit for a row; DCGM has a few hundred fields, of which an exporter reports some dozens."""
NAME_LENGTH_MAX = 100
TYPE = pa.map_(pa.string(), pa.float64())

_NAME = re.compile(r"DCGM_(FI|EXP)_[A-Z][A-Z0-9_]*")


def is_well_formed(name: str) -> bool:
    """Return whether a name can be that of a DCGM field, or of a metric of the exporter's own."""
    return len(name) <= NAME_LENGTH_MAX and _NAME.fullmatch(name) is not None


def no_values(block: np.ndarray) -> np.ndarray:
    """Return which numbers mean "no value".

    The type of an unknown field is not known, so the marks of all types count. Each type has 16 of
    them: a real value that equals a mark is rarer than a field without a value.
    """
    wide = block == float(NO_VALUE_FROM)
    narrow = (block >= NO_VALUE_32_FROM) & (block < 2**31)
    blank = (block >= NO_VALUE_DOUBLE_FROM) & (block < NO_VALUE_DOUBLE_FROM + 16)
    marked: np.ndarray = wide | narrow | blank
    return marked


class Gathering:
    """Collects values for a column, block by block."""

    def __init__(self) -> None:
        self._rows: list[np.ndarray] = []
        self._names: list[np.ndarray] = []
        self._values: list[np.ndarray] = []

    def add(self, rows: np.ndarray, names: Sequence[str], block: np.ndarray) -> None:
        """Add a block: a line for each row, a column for each name, NaN for no value."""
        line, column = np.nonzero(~np.isnan(block))
        self._rows.append(rows[line])
        self._names.append(np.array(names, dtype=object)[column])
        self._values.append(block[line, column])

    def column(self, count: int) -> pa.MapArray:
        """Return a map for each row, null if it has no values."""
        if not self._rows:
            return pa.nulls(count, TYPE)
        rows, names, values = map(np.concatenate, (self._rows, self._names, self._values))
        order = np.argsort(rows, kind="stable")
        return _maps(rows[order], pa.array(names[order], pa.string()), values[order], count)


def entries(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Return row, name and value of each entry of a column of maps."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # the result of combining an empty one
        return np.array([], np.int64), pa.array([], pa.string()), np.array([])
    offsets = whole.offsets.to_numpy()
    rows = np.repeat(np.arange(len(whole)), np.diff(offsets))
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    return rows, whole.keys.slice(first, size), whole.items.slice(first, size).to_numpy()


def name_numbers(column: pa.MapArray) -> np.ndarray:
    """Return a hash of the names of each row, 0 if it has none."""
    found = np.zeros(len(column), dtype=np.uint64)
    rows, names, _ = entries(column)
    if len(rows):
        np.bitwise_xor.at(found, rows, text_numbers(names))
    return found


def joined(column: pa.ChunkedArray, groups: np.ndarray, count: int) -> pa.MapArray:
    """Return a map for each group of rows: of each name the first value, up to `NAMES_MAX` names.

    `groups` has the number of each row's group.
    """
    rows, names, values = entries(column)
    if len(rows) == 0:
        return pa.nulls(count, TYPE)
    encoded = pc.dictionary_encode(names)
    pairs = groups[rows] * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, firsts = np.unique(pairs, return_index=True)
    owners = groups[rows[firsts]]
    begins = np.searchsorted(owners, owners)
    firsts = firsts[np.arange(len(firsts)) - begins < NAMES_MAX]
    return _maps(groups[rows[firsts]], names.take(pa.array(firsts)), values[firsts], count)


def _maps(rows: np.ndarray, names: pa.Array, values: np.ndarray, count: int) -> pa.MapArray:
    """Return maps from entries that are in the order of their rows."""
    sizes = np.bincount(rows, minlength=count)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, names, pa.array(values), mask=pa.array(sizes == 0))
