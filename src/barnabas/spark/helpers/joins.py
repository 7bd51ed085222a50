"""Joins a stream with another stream within a time interval, or with a table.

The state of a join of two streams grows without bound, unless both sides have a watermark and the
condition limits the distance of their times. `interval_join` requires both.

    from barnabas.spark import Timed, enrich, interval_join

    clicks_of_views = interval_join(
        Timed(views, "viewed", "1 minute"), Timed(clicks, "clicked", "1 minute"), "ad",
        after="10 minutes",
    )
    named = enrich(samples, hosts, "hostname")
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from barnabas.spark.helpers.columns import ColumnError, names, refuse_twice, require, require_time
from barnabas.spark.helpers.intervals import Duration, spark_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

How: TypeAlias = Literal["inner", "left", "right", "full"]
Table: TypeAlias = "Callable[[SparkSession], DataFrame]"
Write: TypeAlias = "Callable[[DataFrame, int], None]"

HOWS = ("inner", "left", "right", "full")
RIGHT = "__right_"


class Timed(NamedTuple):
    """One side of a join of streams."""

    frame: "DataFrame"
    time: str
    """Its column of event time."""
    lateness: Duration
    """How late a row may arrive, compared with the latest event time."""

    def watermarked(self, keys: Sequence[str]) -> "DataFrame":
        """Return the frame with its watermark; refuse it if columns are missing."""
        require(self.frame, keys)
        require_time(self.frame, self.time)
        return self.frame.withWatermark(self.time, spark_text("lateness", self.lateness))


def interval_join(
    left: Timed,
    right: Timed,
    on: str | Sequence[str],
    *,
    after: Duration,
    before: Duration = "0 seconds",
    how: How = "inner",
) -> "DataFrame":
    """Join rows of one key where left.time - before <= right.time <= left.time + after.

    A left, right or full join returns rows without a partner once the watermark has passed the
    interval, so they are late by design. The result has the keys once; all other columns of the two
    sides must have different names. Frames that do not stream are joined in the same way.
    """
    keys = _keys(on)
    _refuse_how(how)
    early, late = left.watermarked(keys), right.watermarked(keys)
    others = [name for name in late.columns if name not in keys]
    refuse_twice(early.columns, others, "rename it on one side with withColumnRenamed")
    condition = F.expr(
        f"`{right.time}` >= `{left.time}` - INTERVAL {spark_text('before', before)} AND "
        f"`{right.time}` <= `{left.time}` + INTERVAL {spark_text('after', after)}"
    )
    for key in keys:
        condition &= F.col(f"`{key}`") == F.col(f"`{RIGHT}{key}`")
    renamed = late.withColumnsRenamed({key: RIGHT + key for key in keys})
    joined = early.join(renamed, condition, how)
    return joined.select(*(_key(key) for key in keys), *_rest(early, keys), *_rest(late, keys))


def enrich(
    stream: "DataFrame",
    table: "DataFrame",
    on: str | Sequence[str],
    *,
    how: Literal["inner", "left"] = "left",
    broadcast: bool = False,
) -> "DataFrame":
    """Add the columns of a table to the rows of a stream.

    Spark plans the table once: it stays as it was when the query started, for files and for topics.
    Use `enrich_each_batch` for a table that changes. `broadcast` sends a small table to every
    worker, which avoids the shuffle. The table must have one row for each key; if it has several,
    the result has as many rows.

        enrich(samples, spark.read.parquet("hosts"), "hostname", broadcast=True)
    """
    if table.isStreaming:
        raise ValueError(
            "The table is a stream; join two streams with interval_join, or read the table with "
            "read_changelog or spark.read"
        )
    if how not in {"inner", "left"}:
        raise ValueError(f"how is {how!r}; a stream is enriched by an inner or a left join")
    keys = _keys(on)
    require(stream, keys)
    require(table, keys)
    others = [name for name in table.columns if name not in keys]
    refuse_twice(stream.columns, others, "select or rename the columns of the table first")
    return stream.join(F.broadcast(table) if broadcast else table, keys, how)


def enrich_each_batch(
    table: Table,
    on: str | Sequence[str],
    write: Write,
    *,
    how: Literal["inner", "left"] = "left",
    broadcast: bool = False,
) -> Write:
    """Return a function for foreachBatch that reopens the table in every batch.

    It is for tables that change: files that another query rewrites (`ChangelogTable.read`), or a
    compacted topic, which is then read completely in each batch. Like any function for
    foreachBatch, `write` may be called twice for a batch.

        def write(rows, batch_id):
            rows.write.mode("overwrite").parquet(f"lake/named/batch={batch_id}")

        def hosts(spark):
            return read_changelog(spark, "hosts", brokers).selectExpr("CAST(key AS STRING) host")

        samples.writeStream.foreachBatch(enrich_each_batch(hosts, "host", write)).start()
    """

    def enrich_batch(rows: "DataFrame", batch_id: int) -> None:
        opened = table(rows.sparkSession)
        write(enrich(rows, opened, on, how=how, broadcast=broadcast), batch_id)

    return enrich_batch


def _keys(on: str | Sequence[str]) -> list[str]:
    keys = names(on)
    if not keys:
        raise ColumnError("Name at least one column that both sides have: on=...")
    return keys


def _refuse_how(how: str) -> None:
    if how not in HOWS:
        raise ValueError(f"how is {how!r}; write one of {', '.join(HOWS)}")


def _key(name: str) -> "Column":
    """The key, from the side that has a row."""
    return F.coalesce(F.col(f"`{name}`"), F.col(f"`{RIGHT}{name}`")).alias(name)


def _rest(frame: "DataFrame", keys: Sequence[str]) -> list["Column"]:
    return [F.col(f"`{name}`") for name in frame.columns if name not in keys]
