"""Carries each GPU's last sample forward, so that windows without a sample are covered too.

    cover(before, closed windows, ...) -> all windows, the last samples for the next batch

Spark's windows have their own samples only. Here the last sample before a window also covers the
beginning of the window. A window in which a GPU has no sample, because the GPU is sampled more
rarely, gets a row that repeats that last sample, with `samples` 0. So a card that is sampled every
30 s has as many rows, hours and findings as one that is sampled every second.

A sample is valid for two intervals of its card, at least 10 s and at most `stands_at_most_s`: one
scrape may be lost, and a card that stops reporting does not count for long.

Energy is that of the energy counter, if there is one. Between two readings of it, windows get the
power of the last sample; the window with the next reading gets the difference to the counter. If
that is negative the next windows get less, so that sums stay correct.

Spark closes windows in the order of time, for all GPUs together. So rows can be written up to the
end of the newest window, and they do not depend on how the stream is divided into batches.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.finding import SECOND_US
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake_tables import ROLLED, STATISTICS, values_of
from barnabas.telemetry.windows import links
from barnabas.telemetry.windows.rollups import (
    MOMENT,
    WITH_VALUES,
    by_gpu,
    stands_s,
    with_levels,
)

_TEXTS = ("gpu_id", "hostname", "model", "namespace", "pod")
_KEPT = (
    *("fb_total", "power_limit", "sm_clock_top"),
    *("ecc_sbe_last", "ecc_dbe_last", "remapped_rows_last", "pcie_replay_last"),
    *links.GOLD_COLUMNS,
)
_FLAGS = ("capped", "thermal")
_NUMBERS = ("interval_s", "watts", "counter", "debt", *_FLAGS, *_KEPT, *ROLLED)
LAST = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        ("last_us", pa.int64()),
        *((name, pa.float64()) for name in _NUMBERS),
    ]
)
"""The last sample of each GPU. `debt` is energy that windows got in excess of the counter."""


@dataclass(frozen=True)
class Lasts:
    """The state from one batch to the next."""

    rows: pa.Table
    until_us: int
    """The end of the newest window that was closed."""


NOTHING = Lasts(LAST.empty_table(), 0)


def rollup(rows: pa.Table, width_s: int, thresholds: Thresholds) -> pa.Table:
    """Return all levels of the windows of silver rows, which must be all rows there are."""
    closed = by_gpu(rows, width_s, thresholds)
    return with_levels(cover(NOTHING, closed, width_s, thresholds)[0], thresholds)


def cover(
    before: Lasts, closed: pa.Table, width_s: int, thresholds: Thresholds
) -> tuple[pa.Table, Lasts]:
    """Return closed windows of GPUs, and the windows that earlier samples cover."""
    if closed.num_rows == 0:
        return closed, before
    return _Chain(before, closed, width_s * SECOND_US, thresholds).covered()


class _Chain:
    """The last samples of the previous batch and all closed windows, by GPU and time.

    Arrays have an entry for each; a window is represented by its last sample. `follows` is true if
    the previous entry belongs to the same GPU.
    """

    def __init__(
        self, before: Lasts, closed: pa.Table, width_us: int, thresholds: Thresholds
    ) -> None:
        self._closed = closed
        self._before = before
        self._width_us = width_us
        self._thresholds = thresholds
        self._old = before.rows.num_rows
        last_us = _whole(closed["last_us"])
        gpus = _numbered(before.rows["gpu_id"], closed["gpu_id"])
        times = np.concatenate((_whole(before.rows["last_us"]), last_us))
        self._order = np.lexsort((times, gpus))
        gpus = gpus[self._order]
        self.last_us = times[self._order]
        self.is_window = self._order >= self._old
        self.follows = np.zeros(len(gpus), dtype=bool)
        self.follows[1:] = gpus[1:] == gpus[:-1]
        self._set_edges(last_us)
        self.until_us = int((last_us // width_us).max() + 1) * width_us
        self._set_times()

    def _set_edges(self, last_us: np.ndarray) -> None:
        """Set when windows begin; entries of the previous batch begin at its end."""
        width_us = self._width_us
        ended = np.full(self._old, self._before.until_us)
        starts = last_us // width_us * width_us
        self.start_us = np.concatenate((ended, starts))[self._order]
        self.end_us = np.concatenate((ended, starts + width_us))[self._order]
        self.first_us = self._joined(None, "first_us")

    def _set_times(self) -> None:
        """Compute how long each sample is valid, and how much of its own window it covers."""
        gap_us = np.where(self.follows, self.first_us - _previous(self.last_us), np.inf)
        own_s = self._joined("interval_s", "interval_s")
        is_near = gap_us <= self._thresholds.stands_at_most_s * SECOND_US
        gap_s = np.where(is_near, gap_us, np.nan) / SECOND_US
        is_lone = self.is_window & np.isnan(own_s)
        self.interval_s = np.where(is_lone, gap_s, own_s)
        self.gap_s = gap_s
        longest_us = (stands_s(self.interval_s, self._thresholds) * SECOND_US).astype(np.int64)
        self.stands_until_us = self.last_us + longest_us
        before_us = np.where(self.follows, _previous(self.stands_until_us), 0)
        self.goes_on = self.is_window & (before_us >= self.first_us)
        lead_us = np.minimum(before_us, self.first_us) - self.start_us
        self.lead_s = np.where(self.is_window, np.maximum(lead_us, 0), 0) / SECOND_US
        tail_us = np.minimum(self.end_us, self.stands_until_us) - self.last_us
        self.tail_s = np.where(self.is_window, np.maximum(tail_us, 0), 0) / SECOND_US

    def covered(self) -> tuple[pa.Table, Lasts]:
        """Return all rows, and the last samples."""
        counts = self._row_counts()
        source = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        is_own = (place == 0) & self.is_window[source]
        held = source[~is_own]
        start_us = self.end_us[held] + (place - self.is_window[source])[~is_own] * self._width_us
        covered_us = np.minimum(self.stands_until_us[held], start_us + self._width_us) - start_us
        joules = np.empty(len(source))
        joules[is_own] = self._own_joules()[source[is_own]]
        joules[~is_own] = self._watts[held] * covered_us / SECOND_US
        joules, debt = self._paid(joules, source, counts)
        whole = self._own_rows(joules[is_own], source[is_own])
        if len(held):
            repeated = self._held_rows(held, start_us, covered_us / SECOND_US, joules[~is_own])
            whole = pa.concat_tables([whole, repeated])
        return whole, Lasts(self._lasts(debt), self.until_us)

    def _row_counts(self) -> np.ndarray:
        """Return the number of rows of each entry: its own, and those until the next one."""
        limit_us = np.full(len(self.last_us), self.until_us)
        limit_us[:-1] = np.where(self.follows[1:], self.start_us[1:], self.until_us)
        held_us = np.minimum(self.stands_until_us, limit_us) - self.end_us
        held = -(-np.maximum(held_us, 0) // self._width_us)
        counts: np.ndarray = held + self.is_window
        return counts

    # Energy

    def _own_joules(self) -> np.ndarray:
        """Return the energy of each window, by the counter or by power."""
        counter = _previous(self._joined("counter", "counter_last"))
        grown = (self._joined(None, "counter_first") - counter) / 1e3
        watts_before = np.where(self.follows, _previous(self._watts), np.nan)
        told_s = np.where(self.follows, self.start_us - _previous(self.last_us), 0) / SECOND_US
        is_counted = self.goes_on & (grown >= 0)
        lead = np.where(
            is_counted, grown - _known(watts_before * told_s), _known(watts_before * self.lead_s)
        )
        tail = _known(self._watts * self.tail_s)
        joules: np.ndarray = self._joined(None, "energy_joules") + lead + tail
        return joules

    @cached_property
    def _watts(self) -> np.ndarray:
        """The power at the end of each entry; if only the counter is sampled, its mean."""
        watts = self._joined("watts", "watts_at_end")
        if not np.isnan(watts).any():
            return watts
        counter = _previous(self._joined("counter", "counter_last"))
        grown = (self._joined(None, "counter_first") - counter) / 1e3
        counted = np.where(self.goes_on & (grown >= 0), grown / self.gap_s, np.nan)
        return np.where(np.isnan(watts), counted, watts)

    def _paid(
        self, joules: np.ndarray, source: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the energy of rows without negative values, and the debt of each entry."""
        debt = _known(self._joined("debt", None))
        owing = debt > 0
        owing[source[joules < 0]] = True
        starts = np.flatnonzero(~self.goes_on)
        ends = np.append(starts[1:], len(counts))
        row_ends = np.cumsum(counts)
        for run in np.unique(np.searchsorted(starts, np.flatnonzero(owing), "right") - 1):
            first, last = starts[run], ends[run] - 1
            rows = slice(row_ends[first] - counts[first], row_ends[last])
            joules[rows], debt[last] = _settled(joules[rows].tolist(), float(debt[first]))
        return joules, debt

    # Rows

    def _own_rows(self, joules: np.ndarray, entries: np.ndarray) -> pa.Table:
        """Return the closed windows, in their order."""
        place = self._order[entries] - self._old
        own_s = _numbers(self._closed["covered_seconds"])[place] + self.tail_s[entries]
        lead_s = self.lead_s[entries]
        columns = {
            "covered_seconds": own_s + lead_s,
            "interval_s": self.interval_s[entries],
            "energy_joules": joules,
        }
        if lead_s.any():
            columns |= self._blended(entries, place, own_s)
        whole = self._closed
        for name, values in columns.items():
            arranged = np.empty(len(values))
            arranged[place] = values
            index = whole.schema.get_field_index(name)
            whole = whole.set_column(index, WITH_VALUES.field(name), _array(arranged))
        return whole

    def _blended(
        self, entries: np.ndarray, place: np.ndarray, own_s: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return shares of whole windows: by their own samples, and by the previous sample."""
        lead_s = self.lead_s[entries]
        found = {}
        for name, flags in self._flags.items():
            own = _numbers(self._closed[name])[place]
            lead = _previous(flags)[entries]
            mixed = (own * own_s + lead * lead_s) / np.maximum(own_s + lead_s, 1e-6)
            found[name] = np.where((lead_s > 0) & ~np.isnan(mixed), mixed, own)
        return found

    def _held_rows(
        self, entries: np.ndarray, start_us: np.ndarray, covered_s: np.ndarray, joules: np.ndarray
    ) -> pa.Table:
        """Return rows for windows without samples."""
        count = len(entries)
        lasts = self._last_samples(entries)
        columns: dict[str, pa.Array] = {name: lasts[name] for name in (*_TEXTS, *_KEPT)}
        columns |= {
            "window_start": pa.array(start_us).cast(MOMENT),
            "window_end": pa.array(start_us + self._width_us).cast(MOMENT),
            "level": pa.array(["gpu"] * count, pa.string()),
            "gpus": pa.array(np.ones(count, dtype=np.int32)),
            "samples": pa.array(np.zeros(count, dtype=np.int64)),
            "covered_seconds": _array(covered_s),
            "interval_s": lasts["interval_s"],
            "energy_joules": _array(joules),
            "util_falls": pa.array(np.zeros(count, dtype=np.int32)),
        }
        columns |= {name: _array(flags[entries]) for name, flags in self._flags.items()}
        for metric in ROLLED:
            columns |= {f"{metric}_{each}": lasts[metric] for each in STATISTICS}
            columns[values_of(metric)] = _singles(lasts[metric])
        arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in WITH_VALUES]
        return pa.table(arrays, schema=WITH_VALUES)

    @cached_property
    def _flags(self) -> dict[str, np.ndarray]:
        """The shares by the last sample of each entry: 0, 1 or NaN."""
        util = self._metric("gpu_util")
        there = ~np.isnan(util)
        idle, busy = (
            util <= self._thresholds.idle_util_pct,
            util >= self._thresholds.busy_util_pct,
        )
        return {
            "util_idle_share": np.where(there, idle, np.nan),
            "util_busy_share": np.where(there, busy, np.nan),
            "power_capped_share": self._joined("capped", "capped_at_end"),
            "thermal_share": self._joined("thermal", "thermal_at_end"),
        }

    def _lasts(self, debt: np.ndarray) -> pa.Table:
        """Return the last sample of each GPU that may still be valid."""
        is_last = np.append(~self.follows[1:], True)
        is_live = self.last_us + self._thresholds.stands_at_most_s * SECOND_US > self.until_us
        entries = np.flatnonzero(is_last & is_live)
        found = self._last_samples(entries)
        index = found.schema.get_field_index("debt")
        return found.set_column(index, LAST.field("debt"), _array(debt[entries]))

    def _last_samples(self, entries: np.ndarray) -> pa.Table:
        """Return the columns of the last samples of some entries, without their debts."""
        texts = {
            name: _chosen(self._before.rows[name], self._closed[name], self._order[entries])
            for name in _TEXTS
        }
        arrays = [
            *texts.values(),
            pa.array(self.last_us[entries]),
            *(_array(self._last_numbers[name][entries]) for name in _NUMBERS),
        ]
        return pa.table(arrays, schema=LAST)

    @cached_property
    def _last_numbers(self) -> dict[str, np.ndarray]:
        return {
            "interval_s": self.interval_s,
            "watts": self._watts,
            "counter": self._joined("counter", "counter_last"),
            "debt": np.zeros(len(self.last_us)),
            **{name: self._joined(name, f"{name}_at_end") for name in _FLAGS},
            **{name: self._joined(name, name) for name in _KEPT},
            **{metric: self._metric(metric) for metric in ROLLED},
        }

    def _metric(self, metric: str) -> np.ndarray:
        known = _last_of_lists(self._closed[values_of(metric)])
        before = _numbers(self._before.rows[metric])
        values: np.ndarray = np.concatenate((before, known))[self._order]
        return values

    def _joined(self, before: str | None, closed: str | None) -> np.ndarray:
        """Return a column of both, in the order of entries; NaN if there is none."""
        old = np.full(self._old, np.nan) if before is None else _numbers(self._before.rows[before])
        new = (
            np.full(self._closed.num_rows, np.nan)
            if closed is None
            else _numbers(self._closed[closed])
        )
        values: np.ndarray = np.concatenate((old, new))[self._order]
        return values


def _settled(joules: list[float], debt: float) -> tuple[list[float], float]:
    """Subtract a debt and negative values from the following rows."""
    settled = []
    for each in joules:
        if isnan(each):
            settled.append(each)
            continue
        settled.append(max(0.0, each - debt))
        debt = max(0.0, debt - each)
    return settled, debt


def _previous(values: np.ndarray) -> np.ndarray:
    """Return the value of the previous entry; the first one keeps its own."""
    return np.concatenate((values[:1], values[:-1]))


def _known(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), 0.0, values)


def _whole(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.to_numpy()
    return values


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    return values


def _array(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)


def _numbered(*columns: pa.ChunkedArray) -> np.ndarray:
    """Return a number for each text, equal for equal texts."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    numbers: np.ndarray = encoded.indices.to_numpy()
    return numbers


def _chosen(first: pa.ChunkedArray, second: pa.ChunkedArray, places: np.ndarray) -> pa.Array:
    both = pa.chunked_array([*first.chunks, *second.chunks], pa.string())
    return both.take(pa.array(places)).combine_chunks()


def _last_of_lists(lists: pa.ChunkedArray) -> np.ndarray:
    """Return the last value of each list, NaN where it is empty."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    values = pc.list_flatten(lists).to_numpy()
    found = np.full(len(sizes), np.nan)
    full = sizes > 0
    found[full] = values[np.cumsum(sizes)[full] - 1]
    return found


def _singles(values: pa.Array) -> pa.ListArray:
    """Return lists of one value each, empty if it is null."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    there = values.is_valid()
    ends = np.cumsum(there.to_numpy(zero_copy_only=False))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.filter(there))
