"""The catalogue of findings: the severity of each, and its action.

A *state* lasts and ends by itself (a card is idle until it works). An *event* happens: an XID has
no end that could be observed, so its alert stands for a while and then clears.
"""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.telemetry.findings.severity import Severity


class Name(StrEnum):
    """The values of the column `finding`."""

    IDLE = "idle"
    PARKED_MEMORY = "parked_memory"
    LAUNCH_BOUND = "launch_bound"
    MEMORY_BOUND = "memory_bound"
    PCIE_BOUND = "pcie_bound"
    NVLINK_BOUND = "nvlink_bound"
    POWER_CAPPED = "power_capped"
    THERMAL_THROTTLED = "thermal_throttled"
    STRAGGLER = "straggler"
    STARVED = "starved"
    XID = "xid"
    REPEAT_OFFENDER = "repeat_offender"
    ECC_TREND = "ecc_trend"
    MISSING = "missing"
    IDLE_INSTANCES = "idle_instances"
    CLOCK_SKEW = "clock_skew"


@dataclass(frozen=True)
class Entry:
    """One finding of the catalogue."""

    severity: Severity
    unit: str
    action: str
    is_event: bool = False


CATALOGUE = {
    Name.IDLE: Entry(Severity.INFO, "W", "give the card to another job, or power it down"),
    Name.PARKED_MEMORY: Entry(
        Severity.WARNING, "MiB", "ask the owner to end the process that holds the memory"
    ),
    Name.LAUNCH_BOUND: Entry(
        Severity.INFO, "% util", "batch the work: larger kernels, CUDA graphs, fewer launches"
    ),
    Name.MEMORY_BOUND: Entry(
        Severity.INFO,
        "% memory",
        "none if such is the work; else larger batches, fused kernels, smaller types",
    ),
    Name.PCIE_BOUND: Entry(
        Severity.WARNING,
        "% link",
        "move less between host and card, pin and prefetch; check generation and width of the link",
    ),
    Name.NVLINK_BOUND: Entry(
        Severity.WARNING,
        "% link",
        "overlap communication with computation, communicate less often, split the model otherwise",
    ),
    Name.POWER_CAPPED: Entry(
        Severity.INFO, "% clock", "none if the cap is meant; else raise it or even out the load"
    ),
    Name.THERMAL_THROTTLED: Entry(
        Severity.WARNING, "% clock", "check fans, air flow and inlet temperature of the node"
    ),
    Name.STRAGGLER: Entry(
        Severity.WARNING, "% off", "compare the card with its peers; move the job off it"
    ),
    Name.STARVED: Entry(
        Severity.WARNING, "% idle", "speed up the input pipeline: workers, prefetch, storage"
    ),
    Name.XID: Entry(Severity.INFO, "xid", "", is_event=True),
    Name.REPEAT_OFFENDER: Entry(
        Severity.WARNING, "xids", "take the card out and run diagnostics on it", is_event=True
    ),
    Name.ECC_TREND: Entry(
        Severity.WARNING, "errors", "plan a reset; replace the card if the errors go on"
    ),
    Name.MISSING: Entry(
        Severity.CRITICAL, "s", "check the exporter, the driver and the node, in this order"
    ),
    Name.IDLE_INSTANCES: Entry(
        Severity.INFO, "instances", "give the instances to others, or split the card differently"
    ),
    Name.CLOCK_SKEW: Entry(
        Severity.WARNING,
        "s",
        "set the clock of the node: check its NTP service (chrony, timesyncd)",
    ),
}
"""The severity of these also depends on the code or the count."""

NEED_FINE_SAMPLES = frozenset({Name.LAUNCH_BOUND, Name.STARVED})
"""Findings about changes within seconds, which are not computed if samples are further apart."""
