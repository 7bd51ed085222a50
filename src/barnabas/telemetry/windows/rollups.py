"""Aggregates silver rows into gold rows: windows by GPU, by host and by model.

The rows of a window are sorted by GPU and time once; all other steps are passes over columns with
the number of the window and GPU for each value. Windows of GPUs pass their samples to those of
hosts and models, so their percentiles are exact, too.

A GPU belongs to the host, model, namespace and pod that its last sample in the window names.

`by_gpu` uses one window only, and covers the time from the first to the last sample in it.
`covering` adds the times between windows: the previous sample, and the time until the next.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.thresholds import STANDS_AT_LEAST_S, STANDS_INTERVALS, Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.lake.lake_tables import EDGES, ROLLED, values_of
from barnabas.telemetry.samples.duplicates import text_numbers
from barnabas.telemetry.windows import instants, links
from barnabas.telemetry.windows import statistics as st
from barnabas.telemetry.windows.instances import (
    cards_and_instances,
    separated,
    utilisation,
    with_idle_instances,
)

GOLD = arrow_schema(lake_tables.GOLD)
SILVER = arrow_schema(lake_tables.SILVER)
MOMENT = pa.timestamp("us", tz="UTC")


WITH_VALUES = pa.schema(
    [
        *GOLD,
        *arrow_schema(EDGES),
        *(pa.field(values_of(metric), pa.list_(pa.float64())) for metric in ROLLED),
    ]
)
"""The columns of windows of GPUs before `covering` and before the other levels."""
NEEDED = (
    *("gpu_id", "instance", "profile", "timestamp", "hostname", "model", "namespace", "pod"),
    *ROLLED,
    "gr_engine_active",
    *("fb_total", "fb_free", "power_limit", "max_sm_clock", "clock_reasons", "energy"),
    *("ecc_sbe", "ecc_dbe", "remapped_rows", "pcie_replay", "xid"),
    *links.SILVER_COLUMNS,
)
"""The columns of silver that gold needs."""

POWER_CAPPED = 0x4 | 0x80
"""Clock event reasons: software power cap, hardware power brake."""
THERMAL = 0x20 | 0x40
"""Clock event reasons: software and hardware thermal slowdown."""
AT_LIMIT_SHARE = 0.98
"""The power controller holds a capped card within a few watts of its limit, above and below."""


@dataclass
class _Frame:
    """Rows sorted by window, GPU and time; `cell` is the number of a row's window and GPU."""

    rows: pa.Table
    time_us: np.ndarray
    cell: np.ndarray
    cells: int
    firsts: np.ndarray
    """The index of the first row of each cell."""
    lasts: np.ndarray
    width_s: int
    column: dict[str, np.ndarray]

    @property
    def window_us(self) -> np.ndarray:
        """The start of the window of each cell."""
        width_us = self.width_s * 1_000_000
        starts: np.ndarray = self.time_us[self.firsts] // width_us * width_us
        return starts


def stands_s(interval_s: np.ndarray, thresholds: Thresholds) -> np.ndarray:
    """Return the maximum validity of samples, by the intervals of their cards.

    The first sample of a card has no interval yet: it is valid until the card is missing.
    """
    at_most_s = max(thresholds.stands_at_most_s, STANDS_AT_LEAST_S)
    longest = np.clip(interval_s * STANDS_INTERVALS, STANDS_AT_LEAST_S, at_most_s)
    return np.where(np.isnan(interval_s), thresholds.missing_after_s, longest)


def by_gpu(rows: pa.Table, width_s: int, thresholds: Thresholds) -> pa.Table:
    """Return the windows of GPUs, with their samples of each aggregated metric."""
    if rows.num_rows == 0:
        return WITH_VALUES.empty_table()
    frame = _frame(cards_and_instances(_complete(rows), thresholds), width_s)
    columns = _cell_columns(frame, thresholds)
    found = _table(frame, columns)
    for field in arrow_schema(EDGES):
        found = found.append_column(field, _array(columns[field.name], field.type, frame.cells))
    for metric in ROLLED:
        found = found.append_column(WITH_VALUES.field(values_of(metric)), _values(frame, metric))
    return found


def _complete(rows: pa.Table) -> pa.Table:
    """Add the columns that rows of an earlier release lack; they were not sampled."""
    for name in (each for each in NEEDED if each not in rows.schema.names):
        field = SILVER.field(name)
        rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


def _values(frame: _Frame, metric: str) -> pa.ListArray:
    """Return the samples of a metric in each cell."""
    values = frame.column[metric]
    there = ~np.isnan(values)
    ends = np.cumsum(np.bincount(frame.cell[there], minlength=frame.cells))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values[there]))


def with_levels(windows: pa.Table, thresholds: Thresholds) -> pa.Table:
    """Return whole windows of GPUs and instances, and those of hosts and models, without samples.

    Hosts and models have the GPUs' samples, in which those of instances are.
    """
    gpus, parts = separated(windows)
    gpus = with_idle_instances(gpus, parts, thresholds)
    levels = [_level(gpus, "host", "hostname"), _level(gpus, "model", "model")]
    own = [each.select(GOLD.names) for each in (gpus, parts)]
    return pa.concat_tables([*own, *levels])


def _level(gpus: pa.Table, level: str, by: str) -> pa.Table:
    """Return the windows of all GPUs of a host or model; GPUs without one are omitted."""
    gpus = gpus.filter(pc.is_valid(gpus[by]))
    if gpus.num_rows == 0:
        return GOLD.empty_table()
    window_us = gpus["window_start"].cast(pa.int64()).to_numpy()
    pairs = np.stack((window_us, _ranks(gpus[by].combine_chunks())))
    _, firsts, group = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    group, count = group.reshape(-1), len(firsts)
    places = pa.array(firsts)
    columns: dict[str, object] = {
        name: gpus[name].take(places) for name in ("window_start", "window_end", by)
    }
    columns["level"] = pa.array([level] * count, pa.string())
    columns["gpus"] = np.bincount(group, minlength=count).astype(np.int32)
    samples = gpus["samples"].to_numpy()
    columns["samples"] = np.bincount(group, weights=samples, minlength=count)
    for name in ("covered_seconds", "energy_joules"):
        columns[name] = _sums(_numbers(gpus[name]), group, count)
    for metric in ROLLED:
        columns |= _summaries(metric, *_grouped(gpus[values_of(metric)], group), count)
    return _gold(columns, count)


def _grouped(lists: pa.ChunkedArray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values in lists, each with the group of its list."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pc.list_flatten(lists).to_numpy(), np.repeat(group, sizes)


def _sums(values: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of each group, NaN if no value is known."""
    known = ~np.isnan(values)
    sums = np.bincount(group[known], weights=values[known], minlength=count)
    totals: np.ndarray = np.where(np.bincount(group[known], minlength=count) > 0, sums, np.nan)
    return totals


def _frame(rows: pa.Table, width_s: int) -> _Frame:
    gpus = text_numbers(rows["gpu_id"].combine_chunks())
    time_us = rows["timestamp"].cast(pa.int64()).to_numpy()
    rows, kept = instants.joined(rows, gpus, time_us)
    gpus, time_us = gpus[kept], time_us[kept]
    names = _ranks(rows["gpu_id"].combine_chunks())
    window = time_us // (width_s * 1_000_000)
    order = np.lexsort((time_us, names, window))
    window, names = window[order], names[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (window[1:] != window[:-1]) | (names[1:] != names[:-1])
    firsts = np.flatnonzero(fresh)
    column = {name: _numbers(rows[name])[order] for name in NEEDED if _is_number(rows, name)}
    column["gpu_util"] = utilisation(rows)[order]
    return _Frame(
        rows=rows.select(["gpu_id", "hostname", "model", "namespace", "pod"]).take(pa.array(order)),
        time_us=time_us[order],
        cell=np.cumsum(fresh) - 1,
        cells=len(firsts),
        firsts=firsts,
        lasts=np.append(firsts[1:], len(order)) - 1,
        width_s=width_s,
        column=column,
    )


def _is_number(rows: pa.Table, name: str) -> bool:
    return bool(pa.types.is_floating(rows.schema.field(name).type))


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = pc.fill_null(column, np.nan).to_numpy()
    return values


def _ranks(texts: pa.Array) -> np.ndarray:
    """Return numbers with the same order as the texts."""
    encoded = pc.dictionary_encode(texts)
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    found: np.ndarray = ranks[encoded.indices.to_numpy()]
    return found


def _cell_columns(frame: _Frame, thresholds: Thresholds) -> dict[str, object]:
    """Return the columns of level gpu."""
    newest = frame.rows.take(pa.array(frame.lasts))
    columns: dict[str, object] = {name: newest[name] for name in newest.schema.names}
    columns["gpus"] = np.ones(frame.cells, dtype=np.int32)
    columns["samples"] = np.bincount(frame.cell, minlength=frame.cells)
    for metric in ROLLED:
        columns |= _summaries(metric, frame.column[metric], frame.cell, frame.cells)
    columns |= _utilisation(frame, thresholds) | _throttling(frame) | _states(frame)
    models = newest["model"].to_pylist()
    columns |= links.columns_of(frame.column, models, frame.cell, frame.cells)
    columns |= _span(frame, thresholds)
    columns["xids"] = _xids(frame)
    return columns


def _summaries(
    metric: str, values: np.ndarray, groups: np.ndarray, count: int
) -> dict[str, object]:
    summary = st.summary(values, groups, count)
    return {f"{metric}_{name}": numbers for name, numbers in summary._asdict().items()}


def _utilisation(frame: _Frame, thresholds: Thresholds) -> dict[str, object]:
    util = frame.column["gpu_util"]
    there = ~np.isnan(util)
    util, cell = util[there], frame.cell[there]
    idle, busy = util <= thresholds.idle_util_pct, util >= thresholds.busy_util_pct
    all_of_them = np.ones(len(util), dtype=bool)
    falls = (cell[1:] == cell[:-1]) & busy[:-1] & idle[1:]
    return {
        "util_idle_share": st.share(idle, all_of_them, cell, frame.cells),
        "util_busy_share": st.share(busy, all_of_them, cell, frame.cells),
        "util_falls": np.bincount(cell[1:][falls], minlength=frame.cells),
    }


def _throttling(frame: _Frame) -> dict[str, object]:
    reasons = frame.column["clock_reasons"]
    reported = ~np.isnan(reasons)
    bits = np.where(reported, reasons, 0).astype(np.int64)
    power, limit = frame.column["power_usage"], frame.column["power_limit"]
    measured = ~np.isnan(power) & ~np.isnan(limit) & (limit > 0)
    at_limit = measured & (power >= limit * AT_LIMIT_SHARE)
    capped = np.where(reported, (bits & POWER_CAPPED) != 0, at_limit)
    hot = (bits & THERMAL) != 0
    known = reported | measured
    return {
        "power_capped_share": st.share(capped, known, frame.cell, frame.cells),
        "thermal_share": st.share(hot, reported, frame.cell, frame.cells),
        "capped_at_end": np.where(known, capped, np.nan)[frame.lasts],
        "thermal_at_end": np.where(reported, hot, np.nan)[frame.lasts],
    }


def _states(frame: _Frame) -> dict[str, object]:
    """Return the values at the end of the window."""

    def last(values: np.ndarray) -> np.ndarray:
        return st.last(values, frame.cell, frame.cells)

    column = frame.column
    total = _or_else(column["fb_total"], column["fb_used"] + column["fb_free"])
    return {
        "fb_total": last(total),
        "power_limit": last(column["power_limit"]),
        "sm_clock_top": _or_else(last(column["max_sm_clock"]), _highest(frame, "sm_clock")),
        "ecc_sbe_last": last(column["ecc_sbe"]),
        "ecc_dbe_last": last(column["ecc_dbe"]),
        "remapped_rows_last": last(column["remapped_rows"]),
        "pcie_replay_last": last(column["pcie_replay"]),
    }


def _highest(frame: _Frame, name: str) -> np.ndarray:
    """Return the highest value of each cell."""
    highest: np.ndarray = np.fmax.reduceat(frame.column[name], frame.firsts)
    return highest


def _or_else(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), others, values)


def _span(frame: _Frame, thresholds: Thresholds) -> dict[str, object]:
    """Return time and energy from the first to the last sample of each cell, and both edges.

    The energy is that of the energy counter, or of power: each sample until the next. A counter
    that decreased was reset, and is ignored.
    """
    first_us, last_us = frame.time_us[frame.firsts], frame.time_us[frame.lasts]
    span_s = (last_us - first_us) / 1e6
    interval_s = st.divided(span_s, frame.lasts - frame.firsts)
    gaps_s = np.zeros(len(frame.time_us))
    gaps_s[:-1] = np.diff(frame.time_us) / 1e6
    gaps_s[frame.lasts] = 0.0
    covered_s = span_s
    if frame.width_s > STANDS_AT_LEAST_S:
        gaps_s = np.minimum(gaps_s, stands_s(interval_s, thresholds)[frame.cell])
        covered_s = np.add.reduceat(gaps_s, frame.firsts)
    counter_first, counter_last, counted_w = _counter(frame)
    at_end_w = st.last(frame.column["power_usage"], frame.cell, frame.cells)
    watts = _or_else(counted_w, _mean_watts(frame, gaps_s))
    return {
        "covered_seconds": covered_s,
        "interval_s": interval_s,
        "energy_joules": np.where(np.isnan(watts) & ~np.isnan(counter_last), 0, watts * covered_s),
        "first_us": first_us,
        "last_us": last_us,
        "counter_first": counter_first,
        "counter_last": counter_last,
        "watts_at_end": _or_else(at_end_w, counted_w),
    }


def _mean_watts(frame: _Frame, gaps_s: np.ndarray) -> np.ndarray:
    """Return the mean of power, each sample weighted by the time until the next."""
    power = frame.column["power_usage"]
    there = ~np.isnan(power)
    power = np.where(there, power, 0.0)
    if frame.cells == len(power):
        return np.where(there, power, np.nan)
    sums = np.add.reduceat(power * gaps_s, frame.firsts)
    weighted = st.divided(sums, np.add.reduceat(gaps_s * there, frame.firsts))
    if not np.isnan(weighted).any():
        return weighted
    plain = np.add.reduceat(power, frame.firsts)
    return _or_else(
        weighted, st.divided(plain, np.bincount(frame.cell[there], minlength=frame.cells))
    )


def _counter(frame: _Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the energy counter at both edges of each cell, and the mean power between them."""
    energy = frame.column["energy"]
    times = np.where(np.isnan(energy), np.nan, frame.time_us)
    first, last = (edge(energy, frame.cell, frame.cells) for edge in (st.first, st.last))
    start_us, end_us = (edge(times, frame.cell, frame.cells) for edge in (st.first, st.last))
    watts = np.full(frame.cells, np.nan)
    usable = (last >= first) & (end_us > start_us)
    watts[usable] = (last - first)[usable] / 1e3 / ((end_us - start_us)[usable] / 1e6)
    return first, last, watts


def _xids(frame: _Frame) -> pa.Array:
    """Return the changes of the XID of each cell, without zeros; null if it is not sampled."""
    xid = frame.column["xid"]
    there = np.flatnonzero(~np.isnan(xid))
    codes, cell = xid[there].astype(np.int32), frame.cell[there]
    news = np.ones(len(codes), dtype=bool)
    news[1:] = (codes[1:] != codes[:-1]) | (cell[1:] != cell[:-1])
    news &= codes != 0
    times = pa.array(frame.time_us[there][news]).cast(MOMENT)
    entries = pa.StructArray.from_arrays([times, pa.array(codes[news])], ["timestamp", "xid"])
    ends = np.cumsum(np.bincount(cell[news], minlength=frame.cells))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    unsampled = pa.array(np.bincount(cell, minlength=frame.cells) == 0)
    return pa.ListArray.from_arrays(offsets, entries, mask=unsampled)


def _table(frame: _Frame, columns: dict[str, object]) -> pa.Table:
    starts = frame.window_us
    columns["window_start"] = pa.array(starts).cast(MOMENT)
    columns["window_end"] = pa.array(starts + frame.width_s * 1_000_000).cast(MOMENT)
    columns["level"] = pa.array(["gpu"] * frame.cells, pa.string())
    return _gold(columns, frame.cells)


def _gold(columns: dict[str, object], count: int) -> pa.Table:
    arrays = [_array(columns.get(field.name), field.type, count) for field in GOLD]
    return pa.table(arrays, schema=GOLD)


def _array(values: object, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, np.ndarray):
        return pa.array(values, from_pandas=True).cast(kind)
    return values.cast(kind)  # type: ignore[attr-defined]
