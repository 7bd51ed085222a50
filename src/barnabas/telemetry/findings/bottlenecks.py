"""Conditions over gold rows for a card that waits for its memory, PCIe or NVLink.

Profiling counters decide if they are sampled. Without them, nvidia-smi's utilization.memory decides
about memory, and there is no decision about links: nvidia-smi has no column for their traffic.

A condition is null if its metrics were not sampled; `known` turns that into false.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.windows.links import LANE_BYTES, LANES

if TYPE_CHECKING:
    from pyspark.sql import Column

SLOW_LINK = LANE_BYTES[3] * LANES
"""PCIe 3 with 16 lanes: cards in use have no slower link."""
LINK_SHARE = "link_share"
"""The column with the share of its capacity that the busier link of a row moves."""


def known(condition: "Column") -> "Column":
    """Return whether a condition is known to hold."""
    return F.coalesce(condition, F.lit(False))


def pcie_share() -> "Column":
    """Return how much of its capacity PCIe moves."""
    return F.col("pcie_traffic") / F.col("pcie_capacity")


def nvlink_share() -> "Column":
    """Return how much of its capacity NVLink moves in its busier direction."""
    return F.col("nvlink_traffic") / F.col("nvlink_capacity")


def link_share() -> "Column":
    """Return how much of its capacity the busier link moves; null where neither is known."""
    return F.greatest(pcie_share(), nvlink_share())


def is_link_bound(share: "Column", thresholds: Thresholds) -> "Column":
    """Whether a link is busy while the multiprocessors are not.

    A job that copies and computes at the same time keeps both busy, and waits for neither. If SM
    activity is not sampled (it is not in the exporter's default), power distinguishes work from
    waiting.
    """
    power_share = F.col("power_usage_mean") / F.col("power_limit")
    works = F.coalesce(
        F.col("sm_active_mean") >= thresholds.working_sm_active,
        power_share >= thresholds.working_power_share,
    )
    return (share >= thresholds.link_bound_share) & ~works


def is_memory_bound(thresholds: Thresholds) -> "Column":
    """Whether the card's own memory is the limit: by the counter, otherwise by nvidia-smi."""
    dram, tensor = F.col("dram_active_mean"), F.col("tensor_active_mean")
    counted = (dram >= thresholds.memory_bound_dram_active) & ~known(tensor >= dram)
    power_share = F.col("power_usage_p95") / F.col("power_limit")
    sampled = (F.col("mem_copy_util_p50") >= thresholds.memory_bound_mem_util_pct) & (
        power_share < thresholds.memory_bound_power_share
    )
    return F.when(dram.isNotNull(), counted).otherwise(sampled)


def is_transferring(thresholds: Thresholds) -> "Column":
    """Whether a link moves enough for the card to wait for it.

    A link of unknown capacity counts as a slow one: better no finding than a wrong one.
    """
    shares = (
        F.col(f"{link}_traffic") / F.coalesce(F.col(f"{link}_capacity"), F.lit(SLOW_LINK))
        for link in ("pcie", "nvlink")
    )
    return known(F.greatest(*shares) >= thresholds.quiet_link_share)
