"""Silver rows to rows of gold: windows by GPU, by host and by model.

The rows of a window are sorted by GPU and time once; everything else is a pass over columns with
the number of the window and GPU beside each value. Windows of GPUs carry their samples to those of
hosts and models, whose percentiles are exact, too.

A GPU belongs to the host, model, namespace and pod that its last sample in the window names.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry import instants, tables
from barnabas.telemetry import statistics as st
from barnabas.telemetry.duplicates import text_numbers
from barnabas.telemetry.lake import arrow_schema
from barnabas.telemetry.tables import ROLLED
from barnabas.telemetry.thresholds import Thresholds

GOLD = arrow_schema(tables.GOLD)
MOMENT = pa.timestamp("us", tz="UTC")


def values_of(metric: str) -> str:
    """Return the name of the column that has the samples of a metric."""
    return f"{metric}_values"


WITH_VALUES = pa.schema(
    [*GOLD, *(pa.field(values_of(metric), pa.list_(pa.float64())) for metric in ROLLED)]
)
"""Windows of GPUs on their way to the other levels."""
NEEDED = (
    *("gpu_id", "timestamp", "hostname", "model", "namespace", "pod"),
    *ROLLED,
    *("fb_total", "fb_free", "power_limit", "max_sm_clock", "clock_reasons", "energy"),
    *("ecc_sbe", "ecc_dbe", "remapped_rows", "pcie_replay", "xid"),
)
"""The columns of silver that gold is made of."""

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
    """The place of the first row of each cell."""
    lasts: np.ndarray
    width_s: int
    column: dict[str, np.ndarray]

    @property
    def window_us(self) -> np.ndarray:
        """The start of the window of each cell."""
        width_us = self.width_s * 1_000_000
        starts: np.ndarray = self.time_us[self.firsts] // width_us * width_us
        return starts


def rollup(rows: pa.Table, width_s: int, thresholds: Thresholds) -> pa.Table:
    """Return all levels of the windows of silver rows, which must be all rows of those windows."""
    return with_levels(by_gpu(rows, width_s, thresholds))


def by_gpu(rows: pa.Table, width_s: int, thresholds: Thresholds) -> pa.Table:
    """Return the windows of GPUs, with their samples of each rolled metric beside."""
    if rows.num_rows == 0:
        return WITH_VALUES.empty_table()
    frame = _frame(rows, width_s)
    found = _table(frame, _cell_columns(frame, thresholds))
    for metric in ROLLED:
        found = found.append_column(WITH_VALUES.field(values_of(metric)), _values(frame, metric))
    return found


def _values(frame: _Frame, metric: str) -> pa.ListArray:
    """Return the samples of a metric in each cell."""
    values = frame.column[metric]
    there = ~np.isnan(values)
    ends = np.cumsum(np.bincount(frame.cell[there], minlength=frame.cells))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values[there]))


def with_levels(gpus: pa.Table) -> pa.Table:
    """Return whole windows of GPUs, and those of their hosts and models, without the samples."""
    levels = [_level(gpus, "host", "hostname"), _level(gpus, "model", "model")]
    return pa.concat_tables([gpus.select(GOLD.names), *levels])


def _level(gpus: pa.Table, level: str, by: str) -> pa.Table:
    """Return the windows of all GPUs of a host or model; GPUs that name none are left out."""
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
    columns["energy_joules"] = _sums(_numbers(gpus["energy_joules"]), group, count)
    for metric in ROLLED:
        columns |= _summaries(metric, *_grouped(gpus[values_of(metric)], group), count)
    return _gold(columns, count)


def _grouped(lists: pa.ChunkedArray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values out of lists, each with the group of its list."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pc.list_flatten(lists).to_numpy(), np.repeat(group, sizes)


def _sums(values: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of each group, NaN where nothing is known."""
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
    return _Frame(
        rows=rows.select(["gpu_id", "hostname", "model", "namespace", "pod"]).take(pa.array(order)),
        time_us=time_us[order],
        cell=np.cumsum(fresh) - 1,
        cells=len(firsts),
        firsts=firsts,
        lasts=np.append(firsts[1:], len(order)) - 1,
        width_s=width_s,
        column={name: _numbers(rows[name])[order] for name in NEEDED if _is_number(rows, name)},
    )


def _is_number(rows: pa.Table, name: str) -> bool:
    return bool(pa.types.is_floating(rows.schema.field(name).type))


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = pc.fill_null(column, np.nan).to_numpy()
    return values


def _ranks(texts: pa.Array) -> np.ndarray:
    """Return numbers that sort as the texts do."""
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
    columns["energy_joules"] = _joules(frame)
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
    told = ~np.isnan(reasons)
    bits = np.where(told, reasons, 0).astype(np.int64)
    power, limit = frame.column["power_usage"], frame.column["power_limit"]
    measured = ~np.isnan(power) & ~np.isnan(limit) & (limit > 0)
    at_limit = measured & (power >= limit * AT_LIMIT_SHARE)
    capped = np.where(told, (bits & POWER_CAPPED) != 0, at_limit)
    hot = (bits & THERMAL) != 0
    return {
        "power_capped_share": st.share(capped, told | measured, frame.cell, frame.cells),
        "thermal_share": st.share(hot, told, frame.cell, frame.cells),
    }


def _states(frame: _Frame) -> dict[str, object]:
    """Return what holds at the end of the window."""

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


def _joules(frame: _Frame) -> np.ndarray:
    """Return the energy of each cell: mean power by the energy counter, or by samples of power,
    over the time that the samples stand for.

    n samples of a span stand for n intervals, the last up to the next window; a lone sample
    stands for the window. A counter that fell was reset and says nothing.
    """
    span_s = (frame.time_us[frame.lasts] - frame.time_us[frame.firsts]) / 1e6
    samples = frame.lasts - frame.firsts + 1
    interval_s = st.divided(span_s, samples - 1)
    covered_s = np.where(samples > 1, np.minimum(span_s + interval_s, frame.width_s), frame.width_s)
    counted = _counter_watts(frame)
    power = frame.column["power_usage"]
    there = ~np.isnan(power)
    sums = np.bincount(frame.cell[there], weights=power[there], minlength=frame.cells)
    sampled = st.divided(sums, np.bincount(frame.cell[there], minlength=frame.cells))
    return _or_else(counted, sampled) * covered_s


def _counter_watts(frame: _Frame) -> np.ndarray:
    energy = frame.column["energy"]
    times = np.where(np.isnan(energy), np.nan, frame.time_us)
    grown = st.last(energy, frame.cell, frame.cells) - st.first(energy, frame.cell, frame.cells)
    span_us = st.last(times, frame.cell, frame.cells) - st.first(times, frame.cell, frame.cells)
    watts = np.full(frame.cells, np.nan)
    usable = (grown >= 0) & (span_us > 0)
    watts[usable] = grown[usable] / 1e3 / (span_us[usable] / 1e6)
    return watts


def _xids(frame: _Frame) -> pa.Array:
    """Return the changes of the XID of each cell, zeros left out; null where it is not sampled."""
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
