"""Computes the cost of idle cards: energy, its price, and the price of the card hours.

Do not simply add the two sums: energy of idle cards is paid by kWh; the hours of an idle card are
capital costs or rent, whether or not it draws power.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.catalogue import Name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BY = ("hostname", "namespace", "gpu_id")
"""The columns by which waste can be summed."""

JOULES_A_KWH = 3_600_000.0
SECONDS_AN_HOUR = 3_600.0
MIB_A_GIB = 1_024.0


def waste(findings: "DataFrame", by: str, thresholds: Thresholds) -> "DataFrame":
    """Sum idle findings by host, namespace or GPU; the most expensive first.

    Parked memory is found in idle windows: it adds GiB hours, not energy.
    """
    if by not in BY:
        raise ValueError(f"waste can be summed by {', '.join(BY)}, not by {by!r}")
    idle = F.col("finding") == Name.IDLE.value
    parked = F.col("finding") == Name.PARKED_MEMORY.value
    sums = (
        findings.where(idle | parked)
        .groupBy(by)
        .agg(
            F.count_distinct(F.when(idle, F.col("gpu_id"))).alias("gpus"),
            (_sum(idle, "seconds") / SECONDS_AN_HOUR).alias("idle_hours"),
            (_sum(idle, "joules") / JOULES_A_KWH).alias("idle_kwh"),
            (
                F.coalesce(F.sum(F.when(parked, F.col("value") * F.col("seconds"))), F.lit(0.0))
                / (MIB_A_GIB * SECONDS_AN_HOUR)
            ).alias("parked_gib_hours"),
        )
    )
    return sums.withColumns(
        {
            "energy_price": F.col("idle_kwh") * thresholds.price_per_kwh,
            "card_price": F.col("idle_hours") * thresholds.price_per_gpu_hour,
        }
    ).orderBy(F.desc("card_price"), by)


def _sum(condition: "Column", column: str) -> "Column":
    return F.coalesce(F.sum(F.when(condition, F.col(column))), F.lit(0.0))
