"""Reads compacted topics as tables: the latest record of each key, unless it is a tombstone.

    from barnabas.spark import ChangelogTable, latest, read_changelog

    read_changelog(spark, "gpu-latest", {"kafka.bootstrap.servers": "127.0.0.1:9092"})

That reads the whole topic and reduces it, so the cost depends on the size of the topic. To follow a
topic, either let Spark keep the table as the state of a query, which returns the changes:

    latest(stream, tombstones=True).writeStream.outputMode("update") ...

or keep it as files:

    table = ChangelogTable("lake/gpu-latest")
    stream.writeStream.foreachBatch(table.upsert).option("checkpointLocation", ...).start()
    table.read(spark)

Offsets decide which record is the latest. That is right while a key stays in its partition, as
compaction itself demands; after partitions were added to a topic, rewrite it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from barnabas.spark.helpers.changelog_versions import versions_of
from barnabas.spark.helpers.columns import ColumnError, names, require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY, ORDER, DELETED = "key", "offset", "value IS NULL"
LATEST = "__latest"


def latest(
    frame: "DataFrame",
    key: str | Sequence[str] = KEY,
    *,
    order: str | Sequence[str] = ORDER,
    deleted: str = DELETED,
    tombstones: bool = False,
) -> "DataFrame":
    """Return the latest row of each key.

    `deleted` is a condition in SQL that is true for tombstones. They are omitted, unless
    `tombstones` asks for them: a stream in update mode must return them, so that its reader can
    delete rows. A row without a key stops the query, since it does not belong to any row of the
    table; filter such rows out if you expect them.

        latest(records).selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        latest(samples, ["host", "gpu"], order=["time", "offset"], deleted="status = 'gone'")
    """
    keys = names(key)
    if not keys:
        raise ColumnError("Name the columns that are the key of the table")
    require(frame, [*keys, *names(order)])
    others = [name for name in frame.columns if name not in keys]
    newest = F.max_by(
        F.struct(*(F.col(f"`{name}`") for name in others)),
        F.struct(*(F.col(f"`{name}`") for name in names(order))),
    )
    reduced = _keyed(frame, keys).groupBy(*keys).agg(newest.alias(LATEST))
    columns = [name if name in keys else f"{LATEST}.`{name}`" for name in frame.columns]
    rows = reduced.select(*columns)
    return rows if tombstones else rows.where(~F.coalesce(F.expr(deleted), F.lit(False)))


def read_changelog(
    spark: "SparkSession",
    topic: str,
    options: Mapping[str, str],
    *,
    source: str = "barnabas",
) -> "DataFrame":
    """Return a compacted topic as a table: its records, the latest of each key.

    `options` are those of spark.read. The read ends where the topic ends when Spark plans the read;
    use `enrich_each_batch` for a stream that must follow the topic. `source` may be "kafka", for
    Spark's JVM connector.

        hosts = read_changelog(spark, "hosts", {"kafka.bootstrap.servers": "127.0.0.1:9092"})
    """
    taken = {"subscribe", "subscribepattern", "assign"} & {name.lower() for name in options}
    if taken:
        raise ValueError(f"Leave {taken.pop()} out of the options; the topic is {topic}")
    return latest(spark.read.format(source).options(**options).option("subscribe", topic).load())


class ChangelogTable:
    """A table in a folder of Parquet files, updated by batches of changes.

    Each batch rewrites the whole table into a new folder, which becomes valid when it is marked as
    complete: readers see all of a batch or nothing of it. That suits tables of up to some millions
    of rows; use `deltalake` and its merge for larger ones. A batch that is repeated after a crash
    changes nothing, because the table has the offsets of its rows.

    One query writes a table. The last versions are kept for their readers. The folder can be on any
    file system that Spark supports (s3a://..., hdfs://..., a local folder). Sessions of Spark
    Connect and others may read and write the same table.
    """

    def __init__(
        self,
        folder: str,
        key: str | Sequence[str] = KEY,
        *,
        order: str | Sequence[str] = ORDER,
        deleted: str = DELETED,
    ) -> None:
        """Take the folder, and the arguments of `latest`."""
        self._folder = str(folder).rstrip("/")
        self._key = key
        self._order = order
        self._deleted = deleted

    def upsert(self, changes: "DataFrame", batch_id: int) -> None:
        """Apply a batch of changes; made for foreachBatch."""
        del batch_id
        if changes.isStreaming:
            raise ValueError("upsert takes a batch: stream.writeStream.foreachBatch(table.upsert)")
        versions = versions_of(changes.sparkSession, self._folder)
        whole = versions.whole()
        if whole:
            table = changes.sparkSession.read.parquet(versions.path(whole[-1]))
            changes = table.unionByName(changes)
        rows = latest(changes, self._key, order=self._order, deleted=self._deleted)
        version = versions.next(whole)
        rows.write.mode("overwrite").parquet(versions.path(version))
        versions.mark(version)
        versions.forget([*whole, version])

    def read(self, spark: "SparkSession") -> "DataFrame":
        """Return the table as of the last batch that was applied."""
        versions = versions_of(spark, self._folder)
        whole = versions.whole()
        if not whole:
            raise FileNotFoundError(
                f"No table in {self._folder} yet: no batch was applied; start the query that "
                "calls upsert"
            )
        return spark.read.parquet(versions.path(whole[-1]))


def _keyed(frame: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """Refuse rows without a key."""
    where = [name for name in ("topic", "partition", "offset") if name in frame.columns]
    place = F.concat_ws(" ", *(F.format_string(f"{name} %s", F.col(name)) for name in where))
    complaint = F.concat(
        F.lit(f"A row has no {' or '.join(keys)}, so it cannot be in the table: "),
        place,
        F.lit(f"; leave such rows out: .where('{keys[0]} IS NOT NULL')"),
    )
    checked = {
        name: F.when(F.col(f"`{name}`").isNotNull(), F.col(f"`{name}`")).otherwise(
            F.raise_error(complaint)
        )
        for name in keys
    }
    return frame.withColumns(checked)
