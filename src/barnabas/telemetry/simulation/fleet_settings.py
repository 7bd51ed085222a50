"""The settings of a simulated fleet."""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.telemetry.samples.sample_messages import Layout


class Fault(StrEnum):
    """The faults of cards; the names are those of the findings."""

    IDLE = "idle"
    PARKED_MEMORY = "parked_memory"
    POWER_CAPPED = "power_capped"
    STARVED = "starved"
    LAUNCH_BOUND = "launch_bound"
    MEMORY_BOUND = "memory_bound"
    PCIE_BOUND = "pcie_bound"
    NVLINK_BOUND = "nvlink_bound"
    THERMAL_THROTTLED = "thermal_throttled"
    STRAGGLER = "straggler"
    XID = "xid"
    REPEAT_OFFENDER = "repeat_offender"
    ECC_TREND = "ecc_trend"
    MISSING = "missing"


JOB_FAULTS = (
    Fault.IDLE,
    Fault.PARKED_MEMORY,
    Fault.POWER_CAPPED,
    Fault.STARVED,
    Fault.LAUNCH_BOUND,
    Fault.MEMORY_BOUND,
    Fault.PCIE_BOUND,
    Fault.NVLINK_BOUND,
)
"""Faults of all cards of a job at once, since they follow from what the job does."""


@dataclass(frozen=True, kw_only=True)
class FleetSettings:
    """A fleet and the length of the simulation. Equal settings give equal bytes."""

    gpus: int = 64
    seed: int = 1
    start_ms: int = 1_700_000_000_000
    """Event time of the first samples."""
    interval_ms: int = 1_000
    duration_ms: int = 300_000
    layout: Layout = Layout.SNAPSHOT
    faults: tuple[Fault, ...] = tuple(Fault)
    fault_share: float = 0.2
    """The share of cards with a fault, split evenly among `faults`; each requested kind gets at
    least one card, as long as half of the fleet stays healthy."""
    late_host: bool = True
    """Whether one host's samples arrive half a minute late (in fleets of four hosts and more)."""
    source: str = "simulate"

    def __post_init__(self) -> None:
        for name, low in (("gpus", 1), ("interval_ms", 1), ("duration_ms", 1)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}")
        if not 0 <= self.fault_share <= 1:
            raise ValueError("fault_share must lie between 0 and 1")

    @property
    def ticks(self) -> int:
        """The number of samples of a card."""
        return max(1, -(-self.duration_ms // self.interval_ms))
