"""Computes gold rows from the bundled recording with pandas, to compare with and as test input.

The recording can be rearranged in another order, with other lengths, at another rate and with other
window edges: findings about a phase must not depend on any of these.
"""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake_tables import GOLD, ROLLED

SOFTWARE_POWER_CAP = 0x4
THERMAL = 0x20 | 0x40
WINDOW_US = 10_000_000

_COLUMNS = {
    "uuid": "gpu_id",
    "name": "model",
    "utilization.gpu [%]": "gpu_util",
    "utilization.memory [%]": "mem_copy_util",
    "memory.total [MiB]": "fb_total",
    "memory.used [MiB]": "fb_used",
    "temperature.gpu": "gpu_temp",
    "temperature.memory": "memory_temp",
    "power.draw.instant [W]": "power_usage",
    "power.limit [W]": "power_limit",
    "clocks.current.sm [MHz]": "sm_clock",
    "ecc.errors.corrected.volatile.total": "ecc_sbe",
    "ecc.errors.uncorrected.volatile.total": "ecc_dbe",
}


def training_window(start: datetime, gpu: str, **metrics: Any) -> dict[str, Any]:
    """Return the gold row of a 10 s window in which a healthy card trains."""
    healthy = {
        "window_start": start,
        "window_end": start + timedelta(seconds=10),
        "level": "gpu",
        "gpu_id": gpu,
        "gpu_util_mean": 96.0,
        "gpu_util_p50": 97.0,
        "util_idle_share": 0.0,
        "util_busy_share": 1.0,
        "util_falls": 0,
        "fb_used_p50": 100_000.0,
        "fb_total": 143_771.0,
        "power_usage_mean": 600.0,
        "power_usage_p95": 640.0,
        "power_limit": 700.0,
    }
    return {**healthy, **metrics}


@dataclass(frozen=True)
class Span:
    """A phase, from its start up to its end, in microseconds."""

    phase: str
    start: int
    end: int


def recorded_samples() -> pd.DataFrame:
    """Return the recording, a row per sample, with `at` in microseconds and the phase's name."""
    packed = files("barnabas.telemetry").joinpath("data", "h200.csv.gz").read_bytes()
    raw = pd.read_csv(StringIO(gzip.decompress(packed).decode()), skipinitialspace=True)
    samples = raw.rename(columns=_COLUMNS)
    times = pd.to_datetime(raw["timestamp"], format="%Y/%m/%d %H:%M:%S.%f", utc=True)
    samples["at"] = times.astype("int64") // 1000
    samples["reasons"] = raw["clocks_event_reasons.active"].map(lambda text: int(text, 16))
    samples["hostname"] = "h200-node"
    samples["phase"] = ""
    for span in recorded_phases():
        inside = (samples["at"] >= span.start) & (samples["at"] < span.end)
        samples.loc[inside, "phase"] = span.phase
    return samples


def recorded_phases() -> list[Span]:
    """Return the phases of the recording."""
    text = files("barnabas.telemetry").joinpath("data", "h200_phases.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return [
        Span(row["phase"], *(round(float(row[edge]) * 1e6) for edge in ("start_unix", "end_unix")))
        for row in rows
    ]


def rearranged(
    samples: pd.DataFrame, plan: Sequence[tuple[str, float]], *, every: int = 1, start: int = 0
) -> tuple[pd.DataFrame, list[Span]]:
    """Return a recording that follows a plan: phases with their lengths in seconds.

    A phase that is longer than its recording is repeated from its start, without its first second,
    which belongs to the change of phases. `every` thins the samples out.
    """
    pieces, spans, now = [], [], start
    for phase, seconds in plan:
        recorded = samples[samples["phase"] == phase]
        settled = recorded.index[recorded["at"] >= recorded["at"].iloc[0] + 1_000_000]
        count = round(seconds * 10 / every)
        chosen = recorded.loc[np.resize(settled, count * every)[::every]].copy()
        chosen["at"] = now + np.arange(count) * 100_000 * every
        end = now + count * 100_000 * every
        pieces.append(chosen)
        spans.append(Span(phase, now, end))
        now = end
    return pd.concat(pieces, ignore_index=True), spans


def gold_rows(samples: pd.DataFrame, thresholds: Thresholds) -> list[dict[str, Any]]:
    """Return the windows of samples as rows of table gold_10s, level gpu."""
    rows = samples.sort_values(["gpu_id", "at"])
    rows = rows.assign(window=rows["at"] // WINDOW_US * WINDOW_US)
    return [
        _gold_row(gpu_id, window, group, thresholds)
        for (gpu_id, window), group in rows.groupby(["gpu_id", "window"])
    ]


def _gold_row(
    gpu_id: str, window: int, group: pd.DataFrame, thresholds: Thresholds
) -> dict[str, Any]:
    first = group.iloc[0]
    idle = group["gpu_util"] <= thresholds.idle_util_pct
    busy = group["gpu_util"] >= thresholds.busy_util_pct
    row: dict[str, Any] = {each.name: None for each in GOLD}
    row |= {
        "window_start": pd.Timestamp(window, unit="us", tz="UTC").to_pydatetime(),
        "window_end": pd.Timestamp(window + WINDOW_US, unit="us", tz="UTC").to_pydatetime(),
        "level": "gpu",
        "gpu_id": gpu_id,
        "hostname": first["hostname"],
        "model": first["model"],
        "gpus": 1,
        "samples": len(group),
        "util_idle_share": float(idle.mean()),
        "util_busy_share": float(busy.mean()),
        "util_falls": int((busy.shift(1, fill_value=False) & idle).sum()),
        "fb_total": float(group["fb_total"].max()),
        "power_limit": float(group["power_limit"].max()),
        "power_capped_share": float((group["reasons"] & SOFTWARE_POWER_CAP > 0).mean()),
        "thermal_share": float((group["reasons"] & THERMAL > 0).mean()),
        "sm_clock_top": 1980.0,
        "energy_joules": float(group["power_usage"].mean() * WINDOW_US / 1e6),
        "ecc_sbe_last": float(group["ecc_sbe"].iloc[-1]),
        "ecc_dbe_last": float(group["ecc_dbe"].iloc[-1]),
        "xids": None,
    }
    return row | _statistics(group)


def _statistics(group: pd.DataFrame) -> dict[str, float]:
    found = {}
    for metric in (name for name in ROLLED if name in group):
        found[f"{metric}_mean"] = float(group[metric].mean())
        found[f"{metric}_p50"] = float(group[metric].quantile(0.5))
        found[f"{metric}_p95"] = float(group[metric].quantile(0.95))
        found[f"{metric}_max"] = float(group[metric].max())
    return found
