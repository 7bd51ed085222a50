"""Finds stragglers: cards that are slower than the other cards of the same job.

Peers are the cards of one host, model and pod in one window: the finest grouping that telemetry has
of a job. A window closes for all cards in the same micro-batch, so this is a plain transformation.

Only working cards are compared, and only if they work in lockstep. When one card of a job stops,
the others soon wait for it, so an idle card beside busy ones belongs to another job or none. Cards
with very different power run different work, so their clocks are not comparable. A card that works
harder than its peers at a lower clock is not a straggler. The measure is the median absolute
deviation, which a single straggler does not distort, unlike the standard deviation.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry.findings.rules import Rule, covered_seconds
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.catalogue import Name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COMPARED = {
    "gpu_util_mean": "utilisation",
    "power_usage_mean": "power",
    "sm_clock_mean": "SM clock",
}
"""The columns in which a straggler is detected, with their names."""

WINDOW_S = 10.0
PEERS = ("window_start", "level", "hostname", "model", "namespace", "pod")


def with_peers(gold: "DataFrame", thresholds: Thresholds) -> "DataFrame":
    """Add the distance below its peers to each row: `behind_pct` and `behind_in`."""
    peers = Window.partitionBy(*PEERS)
    rows = gold.withColumn("_works", _works(thresholds))
    for metric in COMPARED:
        compared = F.when(F.col("_works"), F.col(metric))
        rows = rows.withColumn(f"_median_{metric}", F.median(compared).over(peers))
    for metric in COMPARED:
        distance = F.when(F.col("_works"), F.abs(F.col(metric) - F.col(f"_median_{metric}")))
        rows = rows.withColumn(f"_mad_{metric}", F.median(distance).over(peers))
    rows = rows.withColumn("_peers", F.count(F.when(F.col("_works"), 1)).over(peers))
    worst = F.greatest(*(_behind(metric, thresholds) for metric in COMPARED))
    rows = rows.withColumn("_worst", F.when(_is_comparable(thresholds), worst))
    return rows.withColumns(
        {"behind_pct": F.col("_worst.percent"), "behind_in": F.col("_worst.metric")}
    ).drop(*(name for name in rows.columns if name.startswith("_")))


def straggler() -> Rule:
    """Return the rule over rows with the columns about peers."""
    behind = F.col("behind_pct")
    return Rule(
        name=Name.STRAGGLER,
        condition=behind.isNotNull(),
        value=behind,
        seconds=covered_seconds(),
        detail=F.format_string("%s %.0f%% below its peers", F.col("behind_in"), behind),
    )


def _works(thresholds: Thresholds) -> "Column":
    """Whether a card runs a job: it is not idle, and is used or holds memory.

    A card that should have reported in the window and did not is not compared: its last sample is
    older than those of its peers.
    """
    looks_busy = F.col("gpu_util_p50") >= thresholds.looks_busy_util_pct
    holds = F.coalesce(F.col("fb_used_p50") >= thresholds.held_memory_mib, F.lit(False))
    is_idle = F.col("util_idle_share") >= thresholds.idle_share
    is_silent = (F.col("samples") == 0) & (F.col("interval_s") <= WINDOW_S)
    reports = ~F.coalesce(is_silent, F.lit(False))
    return F.coalesce((looks_busy | holds) & ~is_idle & reports, F.lit(False))


def _is_comparable(thresholds: Thresholds) -> "Column":
    enough = F.col("_works") & (F.col("_peers") >= thresholds.straggler_peers)
    same_power = F.coalesce(_is_tight("power_usage_mean", thresholds), F.lit(True))
    works_harder = F.coalesce(
        _is_ahead("power_usage_mean", thresholds) | _is_ahead("gpu_util_mean", thresholds),
        F.lit(False),
    )
    return enough & _is_tight("gpu_util_mean", thresholds) & same_power & ~works_harder


def _is_tight(metric: str, thresholds: Thresholds) -> "Column":
    spread = F.col(f"_mad_{metric}") / F.col(f"_median_{metric}")
    return spread * 100 <= thresholds.straggler_lockstep_pct


def _is_ahead(metric: str, thresholds: Thresholds) -> "Column":
    ahead = F.col(metric) / F.col(f"_median_{metric}") - 1
    return ahead * 100 >= thresholds.straggler_floor_pct


def _behind(metric: str, thresholds: Thresholds) -> "Column":
    """Return the distance below the median, null if it is within the peers' spread."""
    median, mad = F.col(f"_median_{metric}"), F.col(f"_mad_{metric}")
    behind = median - F.col(metric)
    percent = behind / median * 100
    is_far = (behind >= mad * thresholds.straggler_mads) & (
        percent >= thresholds.straggler_floor_pct
    )
    named = F.struct(percent.alias("percent"), F.lit(COMPARED[metric]).alias("metric"))
    return F.when(is_far, named)
