"""Event-time windows together with their watermark, in one call.

A window without a watermark keeps its state forever; a watermark on another column than the
window's has no effect. Spark reports neither mistake, so these functions set both together:

    from pyspark.sql import functions as F
    from barnabas.spark import tumbling, window_bounds

    means = tumbling(samples, "timestamp", "10 seconds", lateness="1 minute", by="gpu_id").agg(
        F.mean("value").alias("mean")
    )
    window_bounds(means)    # window_start, window_end, gpu_id, mean

They return Spark's GroupedData: aggregate it as usual. In append mode, the query returns a window
once the watermark (the latest event time less the lateness) has passed its end. Later rows are
dropped and counted in the query's progress (numRowsDroppedByWatermark).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from barnabas.spark.helpers.columns import names, refuse_twice, require, require_time
from barnabas.spark.helpers.intervals import Duration, microseconds, positive, spark_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData

WINDOW = "window"


def tumbling(
    frame: "DataFrame",
    time: str,
    length: Duration,
    *,
    lateness: Duration,
    by: str | Sequence[str] = (),
    offset: Duration = "0 seconds",
) -> "GroupedData":
    """Group rows into windows of one length, one after the other.

    `offset` moves the grid: days that begin at 06:00 UTC are windows of "1 day" with offset
    "6 hours".

        tumbling(samples, "timestamp", "1 minute", lateness="30 seconds", by=["host"]).count()
    """
    window = F.window(
        time,
        positive("length", length),
        startTime=spark_text("offset", offset),
    )
    return _grouped(frame, time, window, lateness, by)


def hopping(
    frame: "DataFrame",
    time: str,
    length: Duration,
    every: Duration,
    *,
    lateness: Duration,
    by: str | Sequence[str] = (),
) -> "GroupedData":
    """Group rows into overlapping windows: one of `length` begins `every` interval.

    Each row is in length / every windows, and so is its cost.

        hopping(samples, "timestamp", "5 minutes", "1 minute", lateness="1 minute").count()
    """
    if microseconds("every", every) > microseconds("length", length):
        raise ValueError(
            f"every ({every}) is longer than length ({length}), so rows between two windows would "
            "be in none; choose a shorter one"
        )
    window = F.window(time, positive("length", length), positive("every", every))
    return _grouped(frame, time, window, lateness, by)


def session(
    frame: "DataFrame",
    time: str,
    gap: "Duration | Column",
    *,
    lateness: Duration,
    by: str | Sequence[str],
) -> "GroupedData":
    """Group the rows of each key into sessions, which end after a `gap` without rows.

    The gap may be a column that says how long to wait after each row. A stream needs a key, and
    cannot use update mode.

        session(clicks, "timestamp", "30 minutes", lateness="10 minutes", by="user").count()
    """
    if not names(by):
        raise ValueError("Sessions are those of a key; name its columns with by=...")
    is_text = isinstance(gap, str) or not hasattr(gap, "alias")
    window = F.session_window(time, positive("gap", gap) if is_text else gap)  # type: ignore[arg-type]
    return _grouped(frame, time, window, lateness, by)


def window_bounds(frame: "DataFrame") -> "DataFrame":
    """Turn the column `window` into `window_start` and `window_end`, at the front."""
    require(frame, [WINDOW])
    others = [name for name in frame.columns if name != WINDOW]
    refuse_twice(others, ["window_start", "window_end"], "rename it first")
    return frame.select(
        F.col(f"{WINDOW}.start").alias("window_start"),
        F.col(f"{WINDOW}.end").alias("window_end"),
        *others,
    )


def _grouped(
    frame: "DataFrame",
    time: str,
    window: "Column",
    lateness: Duration,
    by: str | Sequence[str],
) -> "GroupedData":
    require_time(frame, time)
    require(frame, names(by))
    refuse_twice([WINDOW], names(by), f"a key cannot be named {WINDOW}: rename it")
    watermarked = frame.withWatermark(time, spark_text("lateness", lateness))
    return watermarked.groupBy(window.alias(WINDOW), *names(by))
