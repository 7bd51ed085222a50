"""Cuts the recording into phases and scales them to cards of any model.

Power becomes a share of the limit, clocks a share of the fastest, memory a share of the whole, so
that the traces fit cards of any model.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from barnabas.telemetry.samples import recording
from barnabas.telemetry.samples.sample_messages import Snapshot

STEP_MS = 100
"""The recording's interval."""
LEAD_IN_MS = 3_000
LEAD_OUT_MS = 500
"""Removed from each end of a phase: cards warm up, programs load, and sensors average."""
MAX_SM_CLOCK_MHZ = 1980.0

UTIL, MEMORY_UTIL, MEMORY, TEMPERATURE, MEMORY_TEMPERATURE, POWER, CLOCK, REASONS = range(8)

DERIVED = {
    "serving": ("memory_copy", {MEMORY_UTIL: 0.5}),
    "pcie_bound": ("launch_bound", {}),
    "nvlink_bound": ("train_steady", {MEMORY_UTIL: 0.3, POWER: 0.5}),
}
"""Phases that were not recorded: the most similar recorded one, and factors for it."""


@dataclass(frozen=True)
class Traces:
    """All phases in one table; a phase is a run of rows."""

    rows: Any
    """Float array: a row for each tenth of a second, a column for each quantity above."""
    start: dict[str, int]
    length: dict[str, int]


@lru_cache(maxsize=1)
def load_traces() -> Traces:
    """Divide the bundled recording."""
    recorded = list(recording.snapshots())
    rows: list[list[float]] = []
    start: dict[str, int] = {}
    length: dict[str, int] = {}
    for phase in recording.phases():
        low, high = phase.start_ms + LEAD_IN_MS, phase.end_ms - LEAD_OUT_MS
        inside = [_row(each) for each in recorded if low <= each.timestamp_ms < high]
        start[phase.name], length[phase.name] = len(rows), len(inside)
        rows += inside
    for name, (source, factors) in DERIVED.items():
        recorded_rows = rows[start[source] : start[source] + length[source]]
        start[name], length[name] = len(rows), len(recorded_rows)
        rows += [_scaled(row, factors) for row in recorded_rows]
    return Traces(np.array(rows), start, length)


def _scaled(row: list[float], factors: dict[int, float]) -> list[float]:
    return [value * factors.get(place, 1.0) for place, value in enumerate(row)]


def _row(snapshot: Snapshot) -> list[float]:
    metrics = snapshot.metrics
    return [
        metrics["DCGM_FI_DEV_GPU_UTIL"],
        metrics["DCGM_FI_DEV_MEM_COPY_UTIL"],
        metrics["DCGM_FI_DEV_FB_USED"] / metrics["DCGM_FI_DEV_FB_TOTAL"],
        metrics["DCGM_FI_DEV_GPU_TEMP"],
        metrics["DCGM_FI_DEV_MEMORY_TEMP"],
        metrics["DCGM_FI_DEV_POWER_USAGE"] / metrics["DCGM_FI_DEV_POWER_MGMT_LIMIT"],
        metrics["DCGM_FI_DEV_SM_CLOCK"] / MAX_SM_CLOCK_MHZ,
        metrics["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"],
    ]
