"""The data classes of a report: built by `gathering`, shown by `report_page` and `summary`.

Times are seconds since 1970.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.telemetry.findings.thresholds import Thresholds

FINDINGS = {
    "xid": "XID error",
    "repeat_offender": "Repeat offender",
    "missing": "Missing",
    "ecc_trend": "ECC trend",
    "clock_skew": "Wrong clock",
    "thermal_throttled": "Too hot",
    "power_capped": "Power-capped",
    "straggler": "Straggler",
    "starved": "Starved",
    "pcie_bound": "PCIe-bound",
    "nvlink_bound": "NVLink-bound",
    "launch_bound": "Launch-bound",
    "memory_bound": "Memory-bound",
    "parked_memory": "Parked memory",
    "idle": "Idle",
    "idle_instances": "Idle MIG instances",
}
"""The display name of every finding, the most severe first."""

STILL_S = 60.0
"""A finding that lasted until this time before the end is still open: windows close late."""

HARDWARE = ("xid", "repeat_offender", "missing", "ecc_trend", "thermal_throttled")
"""Findings that point at the card or the host, not at the job."""

STATES = (
    *("missing", "throttled", "starved", "link_bound"),
    *("parked", "idle", "launch_bound", "working"),
)
"""The state of a card in a window with several findings: the first of these. A card that waits for
its own memory is working."""

STATE_OF = {
    "missing": "missing",
    "thermal_throttled": "throttled",
    "power_capped": "throttled",
    "starved": "starved",
    "parked_memory": "parked",
    "idle": "idle",
    "launch_bound": "launch_bound",
    "pcie_bound": "link_bound",
    "nvlink_bound": "link_bound",
}

STATE_LABELS = {
    "working": "Working",
    "launch_bound": "Launch-bound",
    "link_bound": "Waits for a link",
    "idle": "Idle",
    "parked": "Idle, memory parked",
    "throttled": "Throttled",
    "starved": "Starved",
    "missing": "Missing",
}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The selection of the report."""

    title: str = "GPU fleet report"
    gpu_id: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    price_per_kwh: float = Thresholds.price_per_kwh
    price_per_gpu_hour: float = Thresholds.price_per_gpu_hour
    currency: str = "$"


@dataclass(frozen=True)
class Fleet:
    """The extent of the data."""

    start_s: float
    end_s: float
    gpus: int
    hosts: int
    models: tuple[tuple[str, int], ...]
    namespaces: int
    gpu_hours: float
    energy_kwh: float
    util_mean: float | None

    @property
    def seconds(self) -> float:
        """The time of the report."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Histogram:
    """The distribution of a metric over all GPUs and windows."""

    title: str
    unit: str
    low: float
    step: float
    counts: tuple[int, ...]
    p50: float
    p95: float
    largest: float


@dataclass(frozen=True)
class Shares:
    """The states of the whole fleet: for each state, GPU seconds in each cell of time."""

    step_s: float
    counts: dict[str, list[float]]


class Mark(NamedTuple):
    """An event in a row of the map."""

    row: int
    at_s: float
    text: str


@dataclass(frozen=True)
class StateMap:
    """The states of single GPUs: a row for each, a cell for each span of time."""

    step_s: float
    gpus: list[tuple[str, str]]
    """Host and GPU of each row."""
    cells: list[list[int]]
    """The number of the state in STATES, or -1 if nothing is known."""
    marks: list[Mark]
    left_out: int


class Episode(NamedTuple):
    """A finding that lasted through adjacent windows."""

    gpu_id: str
    hostname: str
    namespace: str
    finding: str
    severity: str
    start_s: float
    end_s: float
    windows: int
    seconds: float
    joules: float
    value: float | None
    unit: str
    detail: str


class Series(NamedTuple):
    """One metric of one GPU over time."""

    name: str
    unit: str
    means: list[float | None]
    peaks: list[float | None]
    ceiling: float | None
    """The limit of the card: its power limit, its memory, its top clock."""


@dataclass(frozen=True)
class Timeline:
    """One GPU."""

    gpu_id: str
    hostname: str
    model: str
    namespace: str
    start_s: float
    end_s: float
    times_s: list[float]
    series: list[Series]
    episodes: list[Episode]
    source: str


class Waste(NamedTuple):
    """The cost of idle cards for one owner."""

    name: str
    hostname: str
    """The host of a GPU; empty if there are several hosts."""
    gpus: int
    idle_hours: float
    parked_hours: float
    parked_gib: float
    """The mean memory held while idle, over the time in which any was held."""
    kwh: float
    energy_cost: float
    card_cost: float
    """The cost of the cards for their idle hours."""


class Throttling(NamedTuple):
    """The loss of a GPU by throttling."""

    gpu_id: str
    hostname: str
    power_seconds: float
    thermal_seconds: float
    clock_lost_pct: float | None
    seconds_lost: float | None
    hottest: float | None


class Instance(NamedTuple):
    """A MIG instance over the time of the report."""

    gpu_id: str
    hostname: str
    instance: str
    profile: str
    namespace: str
    pod: str
    util_mean: float | None
    memory_gib: float | None
    idle_share: float | None


class Straggler(NamedTuple):
    """A GPU behind its peers."""

    gpu_id: str
    hostname: str
    namespace: str
    seconds: float
    episodes: int
    value: float | None
    unit: str
    detail: str


class Offender(NamedTuple):
    """A GPU with hardware problems."""

    gpu_id: str
    hostname: str
    namespace: str
    kinds: dict[str, int]
    """Episodes by finding."""
    seconds: float


class Xid(NamedTuple):
    """An XID on a GPU."""

    code: int
    severity: str
    times: int
    gpu_id: str
    hostname: str
    first_s: float
    last_s: float
    detail: str


class EccTrend(NamedTuple):
    """The corrected errors of a GPU over time."""

    gpu_id: str
    hostname: str
    grown: float
    """Corrected errors in the time of the report."""
    corrected: list[float | None]
    uncorrected: float
    remapped_rows: float
    detail: str


class Alert(NamedTuple):
    """The last message about an alert."""

    state: str
    finding: str
    severity: str
    gpu_id: str
    hostname: str
    first_s: float
    last_s: float
    message: str
    action: str


class Bottleneck(NamedTuple):
    """The bottlenecks of the cards of a namespace on one host."""

    finding: str
    namespace: str
    hostname: str
    gpus: int
    seconds: float
    value: float | None
    unit: str | None


class Named(NamedTuple):
    """A number of cards, and a few of them: host, GPU and detail."""

    total: int
    first: list[tuple[str, str, str]]


class NotLookedFor(NamedTuple):
    """A finding that needs finer samples than some cards have."""

    finding: str
    needs_s: float
    gpus: int
    interval_s: float
    """The median distance of the samples of these cards."""


@dataclass(frozen=True)
class Quality:
    """The completeness of the data."""

    samples: int
    rows: dict[str, int]
    coverage_pct: float | None
    newest_s: float | None
    refused: dict[str, int] | None
    """Counts by reason, None if no broker was asked."""
    not_looked_for: list[NotLookedFor] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The content of the page."""

    wish: Wish
    folder: str
    missing_tables: list[str]
    lost_tables: list[str]
    """The missing tables that existed before."""
    fleet: Fleet
    histograms: list[Histogram]
    shares: Shares
    map: StateMap
    timelines: list[Timeline]
    finding_totals: dict[str, tuple[int, int, float]]
    """GPUs, episodes and seconds by finding."""
    waste: dict[str, list[Waste]]
    """By host, namespace and gpu, and the total under `all`."""
    throttling: list[Throttling]
    throttled_total: Throttling
    instances: list[Instance]
    stragglers: list[Straggler]
    bottlenecks: list[Bottleneck]
    offenders: list[Offender]
    xids: list[Xid]
    ecc: list[EccTrend]
    absences: list[Episode]
    named: dict[str, Named]
    """The cards that advice is about: drain, gone, clock, worn, repeating, hot and slow."""
    alerts: list[Alert]
    alert_counts: dict[str, int]
    quality: Quality
    advice: list["Sentence"] = field(default_factory=list)


class Sentence(NamedTuple):
    """One piece of advice."""

    severity: str
    text: str
    anchor: str
