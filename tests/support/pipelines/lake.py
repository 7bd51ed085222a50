"""Writes lakes for tests without running the pipeline, from labelled GPU histories.

    fleet = fleet_of(500, windows=8640, seed=1)
    write_lake(folder, fleet)

A story says what each GPU does in each window of 10 s. Metrics are drawn around typical values of
that state on an H200. The findings are the story's own labels: so what a report says about the lake
can be checked against the story.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.telemetry.lake.lake_tables import (
    ALERTS,
    FINDINGS,
    GOLD,
    ROLLED,
    SILVER,
    STATISTICS,
    Column,
)
from barnabas.telemetry.samples.metrics import COLUMNS

WINDOW_S = 10
START = datetime(2026, 11, 14, tzinfo=UTC)
MEMORY_MIB = 143_771.0
POWER_LIMIT_W = 700.0
TOP_CLOCK_MHZ = 1980.0
MODEL = "NVIDIA H200"
GPUS_PER_HOST = 8
WINDOWS_PER_FILE = 360

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A state of a GPU, its typical metrics, and its findings."""

    name: str
    util: float
    power: float
    clock: float
    memory_share: float
    temperature: float
    spread: float = 0.02
    findings: tuple[str, ...] = ()


STATES = (
    State("working", 97, 540, 1850, 0.62, 58),
    State("idle", 0, 78, 345, 0.0, 33, findings=("idle",)),
    State("parked_memory", 0, 121, 1980, 0.74, 38, findings=("idle", "parked_memory")),
    State("power_capped", 100, 694, 1490, 0.62, 66, 0.01, ("power_capped",)),
    State("thermal_throttled", 99, 480, 1215, 0.62, 88, 0.02, ("thermal_throttled",)),
    State("starved", 46, 260, 1900, 0.55, 47, 0.2, ("starved",)),
    State("launch_bound", 99, 128, 1975, 0.02, 41, 0.01, ("launch_bound",)),
    State("straggler", 98, 430, 1330, 0.62, 57, 0.02, ("straggler",)),
    State("missing", 0, 0, 0, 0, 0, findings=("missing",)),
    State("memory_bound", 100, 400, 1980, 0.5, 50, findings=("memory_bound",)),
    State("pcie_bound", 45, 130, 1980, 0.5, 41, findings=("pcie_bound",)),
    State("nvlink_bound", 96, 300, 1980, 0.6, 48, findings=("nvlink_bound",)),
)
NUMBERS = {state.name: number for number, state in enumerate(STATES)}
SEVERITIES = {
    "xid": "critical",
    "missing": "critical",
    "repeat_offender": "critical",
} | dict.fromkeys(("thermal_throttled", "straggler", "ecc_trend", "starved"), "warning")


@dataclass
class Story:
    """One GPU: its identity, its state in each window, and its events."""

    gpu_id: str
    hostname: str
    namespace: str
    states: npt.NDArray[np.int8]
    xids: dict[int, int] = field(default_factory=dict)
    """XID errors by window."""
    ecc_per_hour: float = 0.0

    def during(self, state: str, first: int, last: int) -> "Story":
        """Set the state of windows first to last (not included)."""
        self.states[first:last] = NUMBERS[state]
        return self


def story(gpu: int, windows: int, namespace: str = "training", state: str = "working") -> Story:
    """Return the story of a GPU that is in one state all the time."""
    return Story(
        gpu_id=f"GPU-{gpu * 2654435761 % 2**32:08x}-5e00-4000-8000-{gpu:012x}",
        hostname=f"node-{gpu // GPUS_PER_HOST:04d}",
        namespace=namespace,
        states=np.full(windows, NUMBERS[state], dtype=np.int8),
    )


def h200(scale: int = 1) -> list[Story]:
    """Return a card that goes through the phases of the project's recording."""
    lengths = (
        ("idle", 3),
        ("power_capped", 5),
        ("working", 3),
        ("launch_bound", 3),
        ("working", 4),
        ("starved", 4),
        ("power_capped", 3),
        ("parked_memory", 3),
        ("idle", 1),
    )
    one = story(0xA1, scale * sum(length for _, length in lengths), "default")
    at = 0
    for state, length in lengths:
        one.during(state, at, at + scale * length)
        at += scale * length
    return [one]


def fleet_of(gpus: int, *, windows: int, seed: int) -> list[Story]:
    """Return a fleet with some of all common problems."""
    rng = np.random.default_rng(seed)
    stories = [story(gpu, windows) for gpu in range(gpus)]
    for host in range(0, gpus, GPUS_PER_HOST):
        _live(stories[host : host + GPUS_PER_HOST], windows, rng)
    _break(stories, windows, rng)
    return stories


def _live(host: list[Story], windows: int, rng: np.random.Generator) -> None:
    """Give the cards of one host a job, or none."""
    kind = rng.choice(
        ["train", "train", "train", "research", "serve", "notebook", "empty", "starved"]
    )
    for each in host:
        each.namespace = {"notebook": "notebooks", "serve": "inference", "empty": "unassigned"}.get(
            str(kind), "training" if kind == "train" else "research"
        )
        if kind == "empty":
            each.during("idle", 0, windows)
        elif kind == "notebook":
            each.during("parked_memory", 0, windows)
            for begin in rng.integers(0, windows, 3):
                each.during("working", begin, begin + windows // 40)
        elif kind == "serve":
            each.during("launch_bound", 0, windows // 3)
    if kind in ("train", "starved", "research"):
        _train(host, windows, rng, "starved" if kind == "starved" else "power_capped")


def _train(host: list[Story], windows: int, rng: np.random.Generator, trouble: str) -> None:
    """Run one job on all cards of a host: they stop, start and throttle together."""
    idle_from = int(rng.integers(0, windows))
    trouble_at = rng.integers(0, windows, 5)
    for each in host:
        for begin in trouble_at:
            each.during(trouble, begin, begin + windows // 24)
        each.during("idle", idle_from, idle_from + windows // 12)


def _break(stories: list[Story], windows: int, rng: np.random.Generator) -> None:
    """Break one in about thirty cards."""
    chosen = rng.permutation(len(stories))[: max(6, len(stories) // 30)]
    for number, gpu in enumerate(chosen):
        each, begin = stories[gpu], int(rng.integers(0, max(1, windows * 3 // 4)))
        match number % 6:
            case 0:
                each.during("missing", begin, windows if number < 6 else begin + windows // 10)
            case 1:
                each.xids = {begin: 79}
                each.during("missing", begin + 1, windows)
            case 2:
                each.xids = {min(begin + 7 * k, windows - 1): (13, 31, 43)[k % 3] for k in range(5)}
            case 3:
                each.ecc_per_hour = float(rng.integers(12, 90))
            case 4:
                each.during("thermal_throttled", begin, begin + windows // 6)
            case _:
                each.during("straggler", begin, begin + windows // 3)


def write_lake(
    folder: Path, stories: list[Story], *, start: datetime = START, samples_per_window: int = 0
) -> Path:
    """Write the tables that readers use; silver only if samples are requested."""
    rng = np.random.default_rng(len(stories))
    windows = len(stories[0].states)
    origin_us = int(start.timestamp() * 1e6)
    for number, first in enumerate(range(0, windows, WINDOWS_PER_FILE)):
        last = min(windows, first + WINDOWS_PER_FILE)
        part = _Part(stories, first, last, origin_us, rng)
        _save(folder, "gold_10s", number, part.gold(), GOLD)
        _save(folder, "gold_1m", number, part.gold(per_row=6), GOLD)
        _save(folder, "findings", number, part.findings(), FINDINGS)
        if samples_per_window:
            _save(folder, "silver", number, part.silver(samples_per_window), SILVER)
    _save(folder, "alerts", 0, _alerts(stories, origin_us), ALERTS)
    return folder


class _Part:
    """The windows of one file, as arrays of window by GPU."""

    def __init__(
        self,
        stories: list[Story],
        first: int,
        last: int,
        origin_us: int,
        rng: np.random.Generator,
    ) -> None:
        self._stories, self._first, self._last = stories, first, last
        self._rng = rng
        self._states = np.stack([each.states[first:last] for each in stories], axis=1)
        starts = np.arange(first, last) * WINDOW_S * 1_000_000 + origin_us
        self._starts = np.repeat(starts[:, None], len(stories), axis=1)

    def _drawn(self, attribute: str) -> Floats:
        means = np.array([getattr(state, attribute) for state in STATES])[self._states]
        spreads = np.array([state.spread for state in STATES])[self._states]
        drawn: Floats = np.round(means * (1 + spreads * self._rng.standard_normal(means.shape)), 1)
        return np.maximum(drawn, 0)

    def _metrics(self) -> dict[str, Floats]:
        util = np.clip(self._drawn("util"), 0, 100)
        memory = np.round(self._drawn("memory_share") * MEMORY_MIB)
        temperature = np.round(self._drawn("temperature"))
        return {
            "gpu_util": util,
            "mem_copy_util": np.round(util * 0.4),
            "fb_used": np.minimum(memory, MEMORY_MIB),
            "power_usage": self._drawn("power"),
            "gpu_temp": temperature,
            "memory_temp": temperature + 6,
            "sm_clock": np.minimum(np.round(self._drawn("clock") / 15) * 15, TOP_CLOCK_MHZ),
            "sm_active": np.round(util * 0.009, 3),
        }

    def gold(self, per_row: int = 1) -> dict[str, Any]:
        """Return the rollups of cards that report; a row covers `per_row` windows."""
        there = (self._states != NUMBERS["missing"])[::per_row].ravel()
        row = {name: each[::per_row].ravel()[there] for name, each in self._metrics().items()}
        starts = self._starts[::per_row].ravel()[there]
        count = len(starts)
        columns: dict[str, Any] = self._identity(there) | {
            "window_start": starts,
            "window_end": starts + WINDOW_S * per_row * 1_000_000,
            "level": ["gpu"] * count,
            "gpus": np.ones(count, np.int32),
            "samples": np.full(count, 10 * per_row),
            "covered_seconds": np.full(count, float(WINDOW_S * per_row)),
            "interval_s": np.ones(count),
            "fb_total": np.full(count, MEMORY_MIB),
            "power_limit": np.full(count, POWER_LIMIT_W),
            "sm_clock_top": np.full(count, TOP_CLOCK_MHZ),
            "energy_joules": row["power_usage"] * WINDOW_S * per_row,
            "ecc_sbe_last": self._errors()[::per_row].ravel()[there],
            "ecc_dbe_last": np.zeros(count),
            "remapped_rows_last": np.zeros(count),
        }
        for metric in ROLLED:
            for statistic, factor in zip(STATISTICS, (1.0, 1.0, 1.03, 1.06), strict=True):
                columns[f"{metric}_{statistic}"] = _bounded(metric, row[metric] * factor)
        return columns

    def silver(self, per_window: int) -> dict[str, Any]:
        """Return samples, evenly spaced in each window."""
        there = np.repeat((self._states != NUMBERS["missing"]), per_window, axis=0).ravel()
        step_us = WINDOW_S * 1_000_000 // per_window
        steps = np.tile(np.arange(per_window) * step_us, len(self._starts))[:, None]
        self._states = np.repeat(self._states, per_window, axis=0)
        starts = (np.repeat(self._starts, per_window, axis=0) + steps).ravel()[there]
        count = len(starts)
        metrics = {name: each.ravel()[there] for name, each in self._metrics().items()}
        extra = {
            "power_limit": POWER_LIMIT_W,
            "max_sm_clock": TOP_CLOCK_MHZ,
            "fb_total": MEMORY_MIB,
        }
        columns = self._identity(there) | {"timestamp": starts, "offset": np.arange(count)}
        columns |= {name: each for name, each in metrics.items() if name in COLUMNS}
        return columns | {name: np.full(count, value) for name, value in extra.items()}

    def findings(self) -> dict[str, Any]:
        """Return the labels of the stories."""
        rows = [*self._state_findings(), *self._event_findings()]
        return {column.name: [row.get(column.name) for row in rows] for column in FINDINGS}

    def _state_findings(self) -> Iterator[dict[str, Any]]:
        for number, state in enumerate(STATES):
            windows, gpus = np.nonzero(self._states == number)
            for name in state.findings:
                value, unit = _measured(name, state)
                for window, gpu in zip(windows.tolist(), gpus.tolist(), strict=True):
                    yield self._finding(
                        window, gpu, name, value, unit, f"as the story says: {name}"
                    ) | {
                        "joules": state.power * WINDOW_S
                        if name in ("idle", "parked_memory")
                        else 0.0
                    }

    def _event_findings(self) -> Iterator[dict[str, Any]]:
        for gpu, each in enumerate(self._stories):
            for count, (window, xid) in enumerate(sorted(each.xids.items()), 1):
                if self._first <= window < self._last:
                    at = window - self._first
                    yield self._finding(at, gpu, "xid", xid, "code", XID_ADVICE[xid])
                    if count >= 3:
                        text = f"{count} XIDs in a day"
                        yield self._finding(at, gpu, "repeat_offender", count, "XIDs", text)
            if each.ecc_per_hour:
                for window in range(self._last - self._first):
                    rate = each.ecc_per_hour
                    text = f"{rate:.0f} corrected errors within an hour"
                    yield self._finding(window, gpu, "ecc_trend", rate, "errors", text)

    def _finding(
        self, window: int, gpu: int, name: str, value: float, unit: str, detail: str
    ) -> dict[str, Any]:
        one = self._stories[gpu]
        severity = SEVERITIES.get(name, "info")
        if name == "xid" and value in (13, 31, 43):
            severity = "warning"
        start = int(self._starts[window, gpu])
        return {
            "window_start": start,
            "window_end": start + WINDOW_S * 1_000_000,
            "gpu_id": one.gpu_id,
            "hostname": one.hostname,
            "model": MODEL,
            "namespace": one.namespace,
            "finding": name,
            "severity": severity,
            "value": float(value),
            "unit": unit,
            "seconds": float(WINDOW_S),
            "joules": 0.0,
            "detail": detail,
        }

    def _identity(self, there: npt.NDArray[np.bool_]) -> dict[str, Any]:
        rows = len(there) // len(self._stories)
        names = ("gpu_id", "hostname", "namespace")
        values = {
            name: np.tile(np.array([getattr(each, name) for each in self._stories]), rows)[there]
            for name in names
        }
        return values | {"model": np.full(int(there.sum()), MODEL)}

    def _errors(self) -> Floats:
        hours = (np.arange(self._first, self._last) * WINDOW_S / 3600)[:, None]
        rates = np.array([each.ecc_per_hour for each in self._stories])[None, :]
        floored: Floats = np.floor(hours * rates)
        return floored


XID_ADVICE = {
    13: "Graphics engine exception: look at the job",
    31: "Memory page fault: look at the job",
    43: "GPU stopped processing: look at the job",
    79: "GPU has fallen off the bus: drain the host and reset it",
}


def _measured(finding: str, state: State) -> tuple[float, str]:
    match finding:
        case "parked_memory":
            return round(state.memory_share * MEMORY_MIB), "MiB"
        case "power_capped" | "thermal_throttled":
            return TOP_CLOCK_MHZ - state.clock, "MHz"
        case "straggler":
            return -28.0, "%"
        case "missing":
            return 60.0, "s"
        case _:
            return state.util, "%"


def _bounded(metric: str, values: Floats) -> Floats:
    top = {
        "gpu_util": 100.0,
        "mem_copy_util": 100.0,
        "fb_used": MEMORY_MIB,
        "sm_clock": TOP_CLOCK_MHZ,
        "sm_active": 1.0,
    }
    bounded: Floats = np.round(np.minimum(values, top.get(metric, np.inf)), 2).astype(np.float64)
    return bounded


def _alerts(stories: list[Story], origin_us: int) -> dict[str, Any]:
    rows = [row for each in stories for row in _alerts_of(each, origin_us)]
    return {column.name: [row[column.name] for row in rows] for column in ALERTS}


def _alerts_of(one: Story, origin_us: int) -> Iterator[dict[str, Any]]:
    for name in ("missing", "thermal_throttled", "straggler"):
        windows = np.nonzero(one.states == NUMBERS[name])[0]
        if len(windows):
            first, last = int(windows[0]), int(windows[-1])
            yield _alert(one, name, "raised", first, first, origin_us)
            if last < len(one.states) - 1:
                yield _alert(one, name, "cleared", first, last, origin_us)
    for window, xid in one.xids.items():
        yield _alert(one, "xid", "raised", window, window, origin_us) | {
            "message": f"XID {xid}",
            "action": XID_ADVICE[xid],
        }


def _alert(
    one: Story, name: str, state: str, first: int, last: int, origin_us: int
) -> dict[str, Any]:
    return {
        "alert_id": f"{one.gpu_id}/{name}/{first}",
        "state": state,
        "finding": name,
        "severity": SEVERITIES.get(name, "info"),
        "gpu_id": one.gpu_id,
        "hostname": one.hostname,
        "model": MODEL,
        "namespace": one.namespace,
        "first_seen": origin_us + first * WINDOW_S * 1_000_000,
        "last_seen": origin_us + (last + 1) * WINDOW_S * 1_000_000,
        "value": 0.0,
        "unit": "",
        "message": f"{name} on {one.hostname}",
        "action": "look at the host",
        "gpus": [one.gpu_id],
    }


ARROW_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<string>": pa.list_(pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "array<struct<timestamp:timestamp,xid:int>>": pa.list_(
        pa.struct([("timestamp", pa.timestamp("us", "UTC")), ("xid", pa.int32())])
    ),
}


def _save(
    folder: Path, table: str, batch: int, columns: dict[str, Any], contract: tuple[Column, ...]
) -> None:
    count = len(next(iter(columns.values())))
    arrays = {}
    for column in contract:
        kind = ARROW_TYPES[column.type]
        values = columns.get(column.name)
        arrays[column.name] = pa.nulls(count, kind) if values is None else pa.array(values, kind)
    target = folder / table
    target.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays), target / f"batch-{batch:010d}.parquet", compression="zstd")
