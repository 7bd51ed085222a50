"""The known metrics: DCGM's name, our column, the unit, and the plausible range.

A sample outside its range is refused, not clipped: a card that reports 300 % of a percentage has a
fault, which an average would hide.
"""

from dataclasses import dataclass
from enum import Enum

NO_VALUE_FROM = 9_223_372_036_854_775_792
"""Numbers from here up to 2^63 mean "no value" in DCGM (blank, not supported, not permitted)."""

NO_VALUE_32_FROM = 2_147_483_632
"""The same for its 32-bit fields, up to 2^31."""

NO_VALUE_DOUBLE_FROM = 2**47
"""The same for its fields of type double, and the fifteen after it."""


class Kind(Enum):
    """How the values of a metric follow each other."""

    GAUGE = "gauge"
    COUNTER = "counter"
    LAST_EVENT = "last event"
    """Holds the code of the last event: a change is news, a repetition is not."""
    FLAGS = "flags"


@dataclass(frozen=True)
class Metric:
    """One measured quantity."""

    column: str
    dcgm: str
    unit: str
    low: float
    high: float
    kind: Kind = Kind.GAUGE
    also: tuple[str, ...] = ()
    """Other names of the same quantity, by older exporters."""


METRICS = (
    Metric("gpu_util", "DCGM_FI_DEV_GPU_UTIL", "%", 0, 100),
    Metric("mem_copy_util", "DCGM_FI_DEV_MEM_COPY_UTIL", "%", 0, 100),
    Metric("enc_util", "DCGM_FI_DEV_ENC_UTIL", "%", 0, 100),
    Metric("dec_util", "DCGM_FI_DEV_DEC_UTIL", "%", 0, 100),
    Metric("gpu_temp", "DCGM_FI_DEV_GPU_TEMP", "C", -40, 150),
    Metric("memory_temp", "DCGM_FI_DEV_MEMORY_TEMP", "C", -40, 150),
    Metric("power_usage", "DCGM_FI_DEV_POWER_USAGE", "W", 0, 5_000),
    Metric("power_limit", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "W", 0, 5_000),
    Metric("energy", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "mJ", 0, 1e18, Kind.COUNTER),
    Metric("sm_clock", "DCGM_FI_DEV_SM_CLOCK", "MHz", 0, 10_000),
    Metric("max_sm_clock", "DCGM_FI_DEV_MAX_SM_CLOCK", "MHz", 0, 10_000),
    Metric("mem_clock", "DCGM_FI_DEV_MEM_CLOCK", "MHz", 0, 20_000),
    Metric(
        "clock_reasons",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "flags",
        0,
        2**53,
        Kind.FLAGS,
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",),
    ),
    Metric("fb_used", "DCGM_FI_DEV_FB_USED", "MiB", 0, 10_000_000),
    Metric("fb_free", "DCGM_FI_DEV_FB_FREE", "MiB", 0, 10_000_000),
    Metric("fb_total", "DCGM_FI_DEV_FB_TOTAL", "MiB", 0, 10_000_000),
    Metric("xid", "DCGM_FI_DEV_XID_ERRORS", "code", 0, 100_000, Kind.LAST_EVENT),
    Metric("ecc_sbe", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "errors", 0, 1e15, Kind.COUNTER),
    Metric("ecc_dbe", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "errors", 0, 1e15, Kind.COUNTER),
    Metric(
        "remapped_rows", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "rows", 0, 1e9, Kind.COUNTER
    ),
    Metric("pcie_replay", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "replays", 0, 1e15, Kind.COUNTER),
    Metric("nvlink_bandwidth", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "MB/s", 0, 1e12),
    Metric("sm_active", "DCGM_FI_PROF_SM_ACTIVE", "ratio", 0, 1),
    Metric("tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "ratio", 0, 1),
    Metric("dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", "ratio", 0, 1),
    Metric("gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "ratio", 0, 1),
    Metric("sm_occupancy", "DCGM_FI_PROF_SM_OCCUPANCY", "ratio", 0, 1),
    Metric("pcie_tx", "DCGM_FI_PROF_PCIE_TX_BYTES", "B/s", 0, 1e13),
    Metric("pcie_rx", "DCGM_FI_PROF_PCIE_RX_BYTES", "B/s", 0, 1e13),
    Metric("nvlink_tx", "DCGM_FI_PROF_NVLINK_TX_BYTES", "B/s", 0, 1e13),
    Metric("nvlink_rx", "DCGM_FI_PROF_NVLINK_RX_BYTES", "B/s", 0, 1e13),
    Metric("pcie_link_gen", "DCGM_FI_DEV_PCIE_LINK_GEN", "generation", 0, 10),
    Metric("pcie_link_width", "DCGM_FI_DEV_PCIE_LINK_WIDTH", "lanes", 0, 64),
)
"""The metrics, in the order of the columns of the silver table."""

BY_NAME = {name: each for each in METRICS for name in (each.dcgm, *each.also)}
COLUMNS = tuple(each.column for each in METRICS)
