"""The recording, cut into phases and freed of the card it was made on.

Power becomes a share of the limit, clocks a share of the fastest, memory a share of the whole, so
that the traces fit cards of any model.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from barnabas.telemetry import recording
from barnabas.telemetry.messages import Snapshot

STEP_MS = 100
"""The recording's interval."""
LEAD_IN_MS = 3_000
LEAD_OUT_MS = 500
"""Cut off each phase: cards warm up, programs load, and sensors average over the edge."""
MAX_SM_CLOCK_MHZ = 1980.0

UTIL, MEMORY_UTIL, MEMORY, TEMPERATURE, MEMORY_TEMPERATURE, POWER, CLOCK, REASONS = range(8)

SM_ACTIVE = {"matmul_bf16": 0.97, "memory_copy": 0.9, "launch_bound": 0.06}
TENSOR_ACTIVE = {"matmul_bf16": 0.85, "oscillating": 0.85, "memory_copy": 0.0, "launch_bound": 0.01}
USUAL_SM_ACTIVE = 0.85
USUAL_TENSOR_ACTIVE = 0.4
"""nvidia-smi has no profiling counters; these shares of busy time are what such work shows."""


@dataclass(frozen=True)
class Traces:
    """All phases in one table; a phase is a run of rows."""

    rows: Any
    """Float array: a row for each tenth of a second, a column for each quantity above."""
    start: dict[str, int]
    length: dict[str, int]

    def sm_active(self, phase: str) -> float:
        """Return how much of the busy time the multiprocessors work."""
        return SM_ACTIVE.get(phase, USUAL_SM_ACTIVE)

    def tensor_active(self, phase: str) -> float:
        """Return how much of the busy time the tensor cores work."""
        return TENSOR_ACTIVE.get(phase, USUAL_TENSOR_ACTIVE)


@lru_cache(maxsize=1)
def load_traces() -> Traces:
    """Cut the bundled recording."""
    recorded = list(recording.snapshots())
    rows: list[list[float]] = []
    start: dict[str, int] = {}
    length: dict[str, int] = {}
    for phase in recording.phases():
        low, high = phase.start_ms + LEAD_IN_MS, phase.end_ms - LEAD_OUT_MS
        inside = [_row(each) for each in recorded if low <= each.timestamp_ms < high]
        start[phase.name], length[phase.name] = len(rows), len(inside)
        rows += inside
    return Traces(np.array(rows), start, length)


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
