"""Simulates profiling counters: how busy the multiprocessors, memory and links of a card are.

nvidia-smi has no such counters, so the recording has none. The values of each phase are estimates
from notes about an H200 and from data sheets: PCIe and NVLink were not compared with a recording.
Healthy jobs have their own traffic, and some keep a link busy while they compute: a busy link alone
does not mean that a card waits for it.
"""

from dataclasses import dataclass

import numpy as np

from barnabas.telemetry.simulation.fleet_plan import Job, Plan
from barnabas.telemetry.simulation.fleet_settings import FleetSettings
from barnabas.telemetry.windows.links import links_of

STREAMING_SHARE = 0.2
"""The share of healthy jobs that stream their input over PCIe while they compute."""
TALKING_SHARE = 0.3
"""The share of healthy jobs that exchange gradients over NVLink while they compute."""


@dataclass(frozen=True)
class Activity:
    """The counters of a phase, as shares of kernel time; `dram` of utilization.memory."""

    sm: float = 0.85
    tensor: float = 0.4
    dram: float = 0.45


USUAL = Activity()
BY_PHASE = {
    "matmul_bf16": Activity(sm=0.97, tensor=0.85),
    "oscillating": Activity(tensor=0.85),
    "memory_copy": Activity(sm=0.9, tensor=0.0, dram=0.85),
    "serving": Activity(sm=0.9, tensor=0.2),
    "launch_bound": Activity(sm=0.06, tensor=0.01),
    "pcie_bound": Activity(sm=0.06, tensor=0.01),
    "nvlink_bound": Activity(sm=0.2, tensor=0.05),
}


@dataclass(frozen=True)
class Traffic:
    """Shares of a link's capacity: PCIe out, PCIe in, NVLink each way."""

    pcie_tx: float = 0.0
    pcie_rx: float = 0.0
    nvlink: float = 0.0


QUIET = Traffic(0.001, 0.001)


class Counters:
    """Draws the link traffic of each job, healthy and under a fault."""

    def __init__(self, plan: Plan, settings: FleetSettings) -> None:
        rng = np.random.default_rng([settings.seed, 4])
        self._healthy = [_healthy(job, rng) for job in plan.jobs]
        self._bound = [_bound(rng) for _ in plan.jobs]
        self._dram = rng.uniform(0.62, 1.0, len(plan.jobs))
        capacities = [links_of(card.model.name) for card in plan.cards]
        self.pcie_capacity = np.array([each.pcie for each in capacities])
        self.nvlink_capacity = np.array([each.nvlink for each in capacities])

    def activity(self, phase: str, job: int) -> Activity:
        """Return how busy a job of a phase keeps the parts of its cards."""
        found = BY_PHASE.get(phase, USUAL)
        if phase == "memory_copy":
            return Activity(found.sm, found.tensor, found.dram * float(self._dram[job]))
        return found

    def traffic(self, phase: str, job: int) -> Traffic:
        """Return the link traffic of a job in a phase."""
        one, other, nvlink = self._bound[job]
        if phase == "pcie_bound":
            return Traffic(one, other, 0.0)
        if phase == "nvlink_bound":
            return Traffic(0.01, 0.02, nvlink)
        return self._healthy[job] if phase in ("train_steady", "serving") else QUIET


def _healthy(job: Job, rng: np.random.Generator) -> Traffic:
    streams, talks, load = rng.random(3)
    pcie = 0.55 + 0.3 * load if streams < STREAMING_SHARE else 0.05 * load
    nvlink = 0.5 + 0.2 * load if talks < TALKING_SHARE else 0.2 * load
    return Traffic(0.1 * pcie, 0.9 * pcie, nvlink if len(job.cards) > 1 else 0.0)


def _bound(rng: np.random.Generator) -> tuple[float, float, float]:
    """Draw PCIe's two directions (in, out, or in turns) and NVLink, each nearly full."""
    pcie, out, nvlink = rng.uniform(0.7, 0.98), float(rng.choice((0.0, 0.5, 1.0))), rng.random()
    return pcie * out, pcie * (1 - out), 0.6 + 0.35 * nvlink
