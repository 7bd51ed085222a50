"""Rules that need a single window of a single GPU: gold rows in, findings out.

Each rule is a condition and a finding, in Spark's built-in expressions. A rule whose metrics were
not sampled compares with null, and finds nothing. Findings that need earlier windows (XIDs, trends,
stalls, missing cards) are in `gpu_history`, those that need other cards in `fleet_comparison`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry.findings import bottlenecks
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FOUND = "found"
"""The column with the findings of a row, an array of structs."""

_REPORTED = ("finding", "severity", "value", "unit", "seconds", "joules", "detail")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition over a gold row, and its finding."""

    name: Name
    condition: "Column"
    value: "Column"
    seconds: "Column"
    detail: "Column"
    joules: "Column | None" = None

    def found(self) -> "Column":
        """Return the finding as a struct, null if the condition is false."""
        entry = CATALOGUE[self.name]
        columns = (
            F.lit(self.name.value),
            F.lit(entry.severity.value),
            self.value.cast("double"),
            F.lit(entry.unit),
            self.seconds.cast("double"),
            (F.lit(None) if self.joules is None else self.joules).cast("double"),
            self.detail,
        )
        named = (column.alias(name) for column, name in zip(columns, _REPORTED, strict=True))
        return F.when(self.condition, F.struct(*named))


def findings(gold: "DataFrame", thresholds: Thresholds) -> "DataFrame":
    """Return the findings of rows of level gpu, one row each, in the columns of the table."""
    rows = with_findings(gold, window_rules(thresholds)).withColumn(FOUND, F.explode(FOUND))
    wanted = (F.col(f"{FOUND}.{name}") for name in _REPORTED)
    context = (each.name for each in lake_tables.FINDINGS if each.name not in _REPORTED)
    return rows.select(*context, *wanted)


def with_findings(gold: "DataFrame", rules: tuple[Rule, ...]) -> "DataFrame":
    """Add the column `found` to rows of level gpu, in one pass for all rules."""
    found = F.array_compact(F.array(*(rule.found() for rule in rules)))
    return gold.where(F.col("level") == "gpu").withColumn(FOUND, found)


def window_rules(thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return the rules over single windows."""
    return (
        _idle(thresholds),
        _parked_memory(thresholds),
        _idle_instances(thresholds),
        _launch_bound(thresholds),
        _memory_bound(thresholds),
        _link_bound(Name.PCIE_BOUND, "PCIe", bottlenecks.pcie_share(), thresholds),
        _link_bound(Name.NVLINK_BOUND, "NVLink", bottlenecks.nvlink_share(), thresholds),
        _throttled(Name.POWER_CAPPED, "power_capped_share", "under the power cap", thresholds),
        _throttled(Name.THERMAL_THROTTLED, "thermal_share", "throttled by heat", thresholds),
    )


def covered_seconds() -> "Column":
    """Return the covered time of a row; rows of version 0.1 do not have it."""
    return F.coalesce(F.col("covered_seconds"), _window_seconds())


def _window_seconds() -> "Column":
    return (F.unix_micros("window_end") - F.unix_micros("window_start")) / 1e6


def is_fine(name: Name, thresholds: Thresholds) -> "Column":
    """Return whether samples are frequent enough for a finding; True if the rate is unknown."""
    limit_s = thresholds.coarse_above_s(name)
    return F.lit(True) if limit_s is None else ~(F.col("interval_s") > limit_s).eqNullSafe(True)


def _joules() -> "Column":
    """Return the energy of the row.

    The sum of the energy counter is correct. If samples are further apart than windows it corrects
    earlier windows, so the power of the sample describes the window better.
    """
    by_power = F.col("power_usage_mean") * covered_seconds()
    is_spread = F.col("interval_s") > _window_seconds()
    return F.coalesce(F.when(is_spread, by_power), F.col("energy_joules"), by_power)


def _is_idle(thresholds: Thresholds) -> "Column":
    """Whether nothing runs: GPU utilisation does not count what moves over links."""
    no_kernels = F.col("util_idle_share") >= thresholds.idle_share
    return no_kernels & ~_moves(thresholds)


def _moves(thresholds: Thresholds) -> "Column":
    """Whether the card certainly moves data, over a link or in its memory."""
    memory_bound = bottlenecks.known(bottlenecks.is_memory_bound(thresholds))
    return bottlenecks.is_transferring(thresholds) | memory_bound


def _idle(thresholds: Thresholds) -> Rule:
    share = F.col("util_idle_share")
    watts = F.coalesce(F.col("power_usage_mean"), F.col("energy_joules") / covered_seconds())
    return Rule(
        name=Name.IDLE,
        condition=_is_idle(thresholds),
        value=watts,
        seconds=share * covered_seconds(),
        joules=share * _joules(),
        detail=F.format_string("idle %.0f%% of the window", share * 100),
    )


def _parked_memory(thresholds: Thresholds) -> Rule:
    """Memory that an idle card holds; its joules are counted for the idle card only."""
    share = F.col("fb_used_p50") / F.col("fb_total")
    return Rule(
        name=Name.PARKED_MEMORY,
        condition=_is_idle(thresholds) & (share >= thresholds.parked_memory_share),
        value=F.col("fb_used_p50"),
        seconds=F.col("util_idle_share") * covered_seconds(),
        detail=F.format_string(
            "%.0f MiB (%.0f%%) held while idle", F.col("fb_used_p50"), share * 100
        ),
    )


def _idle_instances(thresholds: Thresholds) -> Rule:
    """Idle instances of a working card, without the card's hours and joules."""
    count = F.size("idle_instances")
    return Rule(
        name=Name.IDLE_INSTANCES,
        condition=(count > 0) & ~_is_idle(thresholds),
        value=count,
        seconds=covered_seconds(),
        detail=F.format_string(
            "%d of %d MIG instances idle: %s",
            count,
            F.col("instances"),
            F.concat_ws(", ", "idle_instances"),
        ),
    )


def _launch_bound(thresholds: Thresholds) -> Rule:
    """Kernels run most of the time but draw little power: launches, not work.

    A card that waits for a link looks the same, unless its traffic is sampled. The median sample
    decides about utilisation, to exclude a job with pauses, whose bursts do draw power. Hardly any
    sample may draw working power, because the mean of bursts and pauses is low too. A single sample
    is not enough: one in five samples of a job with pauses looks like this.
    """
    power_share = F.col("power_usage_p95") / F.col("power_limit")
    occupied = F.coalesce(F.col("sm_active_mean") >= thresholds.working_sm_active, F.lit(False))
    looks_busy = F.col("gpu_util_p50") >= thresholds.looks_busy_util_pct
    frugal = power_share < thresholds.working_power_share
    return Rule(
        name=Name.LAUNCH_BOUND,
        condition=looks_busy
        & frugal
        & ~occupied
        & ~_is_idle(thresholds)
        & ~_moves(thresholds)
        & is_fine(Name.LAUNCH_BOUND, thresholds),
        value=F.col("gpu_util_mean"),
        seconds=covered_seconds(),
        detail=F.format_string(
            "%.0f%% utilised within %.0f%% of the power limit: launches, not work",
            F.col("gpu_util_mean"),
            power_share * 100,
        ),
    )


def _memory_bound(thresholds: Thresholds) -> Rule:
    busy_pct = F.coalesce(F.col("dram_active_mean") * 100, F.col("mem_copy_util_p50"))
    return Rule(
        name=Name.MEMORY_BOUND,
        condition=bottlenecks.is_memory_bound(thresholds),
        value=busy_pct,
        seconds=covered_seconds(),
        detail=F.format_string("memory busy %.0f%%: the kernels wait for it", busy_pct),
    )


def _link_bound(name: Name, link: str, share: "Column", thresholds: Thresholds) -> Rule:
    return Rule(
        name=name,
        condition=bottlenecks.is_link_bound(share, thresholds),
        value=share * 100,
        seconds=covered_seconds(),
        detail=F.format_string(
            f"{link} moves %.0f%% of what it can: the card waits for it", share * 100
        ),
    )


def _throttled(name: Name, share_column: str, words: str, thresholds: Thresholds) -> Rule:
    share = F.col(share_column)
    return Rule(
        name=name,
        condition=share >= thresholds.capped_share,
        value=F.lit(None).cast("double"),  # the lost clock speed; see `throttling`
        seconds=share * covered_seconds(),
        detail=F.format_string(f"{words} %.0f%% of the window", share * 100),
    )
