"""Splits the rows of a card with MIG instances: one row for the card, one for each instance.

    rows of silver -> rows of cards, rows of instances -> windows -> levels gpu and instance

The exporter repeats power, temperatures, clocks and error counters of the card on each of its
instances: the card has them once. Utilisation and memory belong to the instance. The memory of a
card is the sum of its instances, its utilisation their mean weighted by compute slices. A card with
a working instance is never idle.

While windows are computed, the column `gpu_id` has the card, the number and the profile of an
instance; `separated` splits them again.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples import mig
from barnabas.telemetry.samples.duplicates import source_numbers, text_numbers
from barnabas.telemetry.samples.metrics import COLUMNS
from barnabas.telemetry.windows import instants

SEPARATOR = "\x1f"
"""The separator in an instance's key; no id has a control character."""
LEVEL = "instance"
SUMMED = ("fb_used", "fb_free", "fb_total")
SHARED = (
    *("gpu_util", "mem_copy_util", "enc_util", "dec_util"),
    *("gr_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"),
)
"""Columns of which an instance has a part of the card's value, by its slices."""
_TEXTS = ("hostname", "model", "namespace", "pod")


def cards_and_instances(rows: pa.Table, thresholds: Thresholds) -> pa.Table:
    """Return rows with one for each card and time; rows of instances have their own keys."""
    if rows["instance"].null_count == rows.num_rows:
        return rows
    gpus, instances = (rows[name].combine_chunks() for name in ("gpu_id", "instance"))
    time_us = rows["timestamp"].cast(pa.int64()).to_numpy()
    rows, _ = instants.joined(rows, source_numbers(gpus, instances), time_us)
    rows = rows.set_column(
        rows.schema.get_field_index("gpu_util"), "gpu_util", pa.array(utilisation(rows))
    )
    named = pc.is_valid(rows["instance"])
    is_split = pc.is_in(rows["gpu_id"], pc.unique(rows["gpu_id"].filter(named)))
    split = rows.filter(is_split)
    parts = [rows.filter(pc.invert(is_split)), _cards(split, thresholds)]
    parts.append(_keyed(split.filter(pc.is_valid(split["instance"]))))
    return pa.concat_tables([part.cast(rows.schema) for part in parts])


def utilisation(rows: pa.Table) -> np.ndarray:
    """Return utilisation in per cent; cards with MIG report that of the graphics engine instead."""
    util, engine = (_numbers(rows[name]) for name in ("gpu_util", "gr_engine_active"))
    return np.where(np.isnan(util), 100 * engine, util)


def separated(windows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the windows of cards and those of instances, with the columns of the instance."""
    is_instance = pc.match_substring(windows["gpu_id"], SEPARATOR)
    cards, found = windows.filter(pc.invert(is_instance)), windows.filter(is_instance)
    if found.num_rows == 0:
        return cards, found
    parts = pc.split_pattern(found["gpu_id"], SEPARATOR).combine_chunks()
    changes = {name: pc.list_element(parts, place) for place, name in enumerate(_KEY)}
    changes["profile"] = pc.if_else(pc.equal(changes["profile"], ""), None, changes["profile"])
    changes["level"] = pa.array([LEVEL] * found.num_rows, pa.string())
    changes["gpus"] = pa.array(np.zeros(found.num_rows, dtype=np.int32))
    for name, column in changes.items():
        found = found.set_column(found.schema.get_field_index(name), name, column)
    return cards, found


_KEY = ("gpu_id", "instance", "profile")


def with_idle_instances(cards: pa.Table, instances: pa.Table, thresholds: Thresholds) -> pa.Table:
    """Add the number of instances, and the idle ones, to each window of a split card."""
    if instances.num_rows == 0:
        return cards
    columns = ("window_start", "gpu_id", "instance", "profile", "util_idle_share")
    counts: dict[tuple[object, str], int] = {}
    idle: dict[tuple[object, str], list[str]] = {}
    for start, gpu_id, instance, profile, share in zip(
        *(instances[name].to_pylist() for name in columns), strict=True
    ):
        key = start, gpu_id
        counts[key] = counts.get(key, 0) + 1
        names = idle.setdefault(key, [])
        if share is not None and share >= thresholds.idle_share:
            names.append(f"{instance} ({profile})" if profile else instance)
    keys = list(zip(*(cards[name].to_pylist() for name in columns[:2]), strict=True))
    changes = {
        "instances": [counts.get(key) for key in keys],
        "idle_instances": [sorted(idle[key]) if key in idle else None for key in keys],
    }
    for name, values in changes.items():
        index = cards.schema.get_field_index(name)
        cards = cards.set_column(index, name, pa.array(values, cards.schema.field(index).type))
    return cards


def _keyed(rows: pa.Table) -> pa.Table:
    """Return rows of instances under their own keys, without the card's columns."""
    profile = pc.fill_null(rows["profile"], "")
    key = pc.binary_join_element_wise(rows["gpu_id"], rows["instance"], profile, SEPARATOR)
    rows = rows.set_column(rows.schema.get_field_index("gpu_id"), "gpu_id", key)
    for index, field in enumerate(rows.schema):
        if field.name in COLUMNS and field.name not in (*SUMMED, *SHARED):
            rows = rows.set_column(index, field, pa.nulls(rows.num_rows, field.type))
    return rows


def _cards(rows: pa.Table, thresholds: Thresholds) -> pa.Table:
    """Return one row for each card and time."""
    numbers = text_numbers(rows["gpu_id"].combine_chunks())
    time_us = rows["timestamp"].cast(pa.int64()).to_numpy()
    order = np.lexsort((time_us, numbers))
    rows, numbers, time_us = rows.take(pa.array(order)), numbers[order], time_us[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (numbers[1:] != numbers[:-1]) | (time_us[1:] != time_us[:-1])
    card = _Card(rows, np.flatnonzero(fresh), np.cumsum(fresh) - 1)
    columns = [card.column(field) for field in rows.schema]
    found = pa.table(columns, schema=rows.schema)
    util = _numbers(found["gpu_util"])
    works = card.highest(_numbers(rows["gpu_util"])) > thresholds.idle_util_pct
    least = np.where(works, np.nextafter(thresholds.idle_util_pct, np.inf), -np.inf)
    index = rows.schema.get_field_index("gpu_util")
    return found.set_column(index, rows.schema.field(index), _array(np.maximum(util, least)))


class _Card:
    """Rows of split cards, sorted; `group` is the number of a row's card and time."""

    def __init__(self, rows: pa.Table, starts: np.ndarray, group: np.ndarray) -> None:
        self._rows = rows
        self._starts = starts
        self._group = group
        self._is_whole = rows["instance"].is_null().to_numpy()
        self._slices = _by_text(rows["profile"], lambda text: mig.slices(text) or np.nan)
        self._slices[self._is_whole] = 0
        of_card = self.highest(_by_text(rows["model"], mig.slices_of_card))
        self._is_known = ~np.isnan(self._sum(self._slices, ~self._is_whole))
        self._total = np.maximum(of_card, self._sum(self._slices, ~self._is_whole))

    def column(self, field: pa.Field) -> pa.Array:
        """Return a column of cards."""
        name = field.name
        if name in _TEXTS:
            return self._common(self._rows[name])
        if name in ("instance", "profile"):
            return pa.nulls(len(self._starts), field.type)
        if name not in COLUMNS:
            return self._rows[name].take(pa.array(self._starts))
        values = _numbers(self._rows[name])
        if name not in (*SUMMED, *SHARED):
            return _array(self.highest(values))
        whole = self.highest(np.where(self._is_whole, values, np.nan))
        there = ~self._is_whole & ~np.isnan(values)
        parts = self._sum(values, there) if name in SUMMED else self._mean(values, there)
        return _array(np.where(np.isnan(whole), parts, whole))

    def highest(self, values: np.ndarray) -> np.ndarray:
        """Return the highest value of each group."""
        found: np.ndarray = np.fmax.reduceat(values, self._starts)
        return found

    def _sum(self, values: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return sums, NaN if there is nothing to add up."""
        sums = np.add.reduceat(np.where(there, values, 0.0), self._starts)
        found: np.ndarray = np.where(np.logical_or.reduceat(there, self._starts), sums, np.nan)
        return found

    def _mean(self, values: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return means weighted by slices; unweighted if a profile does not name its slices."""
        by_slices = self._sum(values * self._slices, there) / self._total
        plain = self._sum(values, there) / np.add.reduceat(there, self._starts, dtype=float)
        return np.where(self._is_known, by_slices, plain)

    def _common(self, texts: pa.ChunkedArray) -> pa.Array:
        """Return the common text of a group's rows, ignoring rows without a text."""
        codes = texts.combine_chunks().dictionary_encode()
        code = pc.fill_null(codes.indices, -1).to_numpy().astype(float)
        code[code < 0] = np.nan
        low, high = np.fmin.reduceat(code, self._starts), self.highest(code)
        agreed = low == high
        places = pa.array(np.where(agreed, low, 0).astype(np.int64), mask=~agreed)
        return codes.dictionary.take(places)


def _by_text(texts: pa.ChunkedArray, number: Callable[[str | None], float]) -> np.ndarray:
    """Return a number for each text, computed once for each distinct text."""
    codes = pc.dictionary_encode(texts.combine_chunks(), null_encoding="encode")
    known = np.array([number(text) for text in codes.dictionary.to_pylist()], dtype=float)
    found: np.ndarray = known[codes.indices.to_numpy()]
    return found


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = pc.fill_null(column, np.nan).to_numpy()
    return values


def _array(values: np.ndarray) -> pa.Array:
    return pa.array(values, from_pandas=True)
