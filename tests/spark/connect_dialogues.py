"""Tests the package over Spark Connect, in a client without a JVM.

    python connect_dialogues.py URL BOOTSTRAP FOLDER

prints a line for each dialogue: `pass NAME`, or `fail NAME` and the error. It is a separate
process, since a process has either sessions of Spark Connect or others.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import barnabas.spark as bs

CHANGES = "key STRING, value STRING, partition INT, offset BIGINT"
AVRO = json.dumps({"type": "record", "name": "S", "fields": [{"name": "id", "type": "long"}]})


class Talk:
    """The common resources of all dialogues."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: str) -> None:
        self.spark = spark
        self.brokers = {"kafka.bootstrap.servers": bootstrap}
        self.folder = folder

    def write(self, rows: DataFrame, topic: str) -> None:
        """Write a batch."""
        writer = rows.write.format("barnabas").mode("append")
        writer.options(**self.brokers, topic=topic).save()

    def read(self, topic: str, **options: str) -> DataFrame:
        """Read a batch."""
        committed = {"kafka.isolation.level": "read_committed", "subscribe": topic}
        reader = self.spark.read.format("barnabas").options(**self.brokers, **committed)
        return reader.options(**options).load()

    def stream(self, topic: str, **options: str) -> DataFrame:
        """Read a stream."""
        reader = self.spark.readStream.format("barnabas").options(**self.brokers, subscribe=topic)
        return reader.options(startingOffsets="earliest", **options).load()

    def finish(self, writer: Any, name: str) -> None:
        """Run a query to the end of its source."""
        query = writer.option("checkpointLocation", f"{self.folder}/checkpoints/{name}")
        query = query.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert query.exception() is None, query.exception()


def batches(talk: Talk) -> None:
    """A read returns what a batch wrote."""
    rows = talk.spark.range(100).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) value")
    talk.write(rows, "c-batches")
    assert sorted(int(row.value) for row in talk.read("c-batches").collect()) == list(range(100))


def mistakes(talk: Talk) -> None:
    """A wrong option is refused with its fix, as elsewhere."""
    with pytest.raises(PySparkException, match="did you mean startingOffsets"):
        talk.read("c-batches", startingOffset="earliest").collect()


def streams(talk: Talk) -> None:
    """A stream from topic to topic continues after a restart."""
    for first in (0, 50):
        rows = talk.spark.range(first, first + 50).selectExpr("CAST(id AS STRING) AS value")
        talk.write(rows, "c-source")
        copied = talk.stream("c-source", maxOffsetsPerTrigger="20").select("value")
        options = {**talk.brokers, "topic": "c-copies"}
        talk.finish(copied.writeStream.format("barnabas").options(**options), "copies")
    assert sorted(int(row.value) for row in talk.read("c-copies").collect()) == list(range(100))


def values(talk: Talk) -> None:
    """JSON and Avro are decoded, and undecodable rows become dead letters."""
    texts = [('{"id": 1}',), ('{"id":1}],"z":[{"id":2}',), ("{}",), (None,)]
    talk.write(talk.spark.createDataFrame(texts, "value STRING"), "c-json")
    decoded = bs.json_values(talk.read("c-json", includeHeaders="true"), "id BIGINT NOT NULL")
    assert [row.id for row in decoded.good.collect()] == [1]
    talk.write(bs.to_dlq(decoded.bad, "c-dlq"), "c-dlq")
    letters = talk.read("c-dlq", includeHeaders="true").collect()
    reasons = [{each.key: bytes(each.value) for each in row.headers} for row in letters]
    assert sorted(each["dlq.reason"] for each in reasons) == [
        *(b"bad-json", b"missing-field", b"no-value"),
    ]
    framed = [(b"\x00\x00\x00\x00\x07\x54",), (b"junk",)]
    frame = talk.spark.createDataFrame(framed, "value BINARY")
    avro = bs.avro_values(frame, AVRO, schemas={7: AVRO})
    assert [row.id for row in avro.good.collect()] == [42]
    assert [row.reason for row in avro.bad.collect()] == ["bad-frame"]


def windows(talk: Talk) -> None:
    """Windows and joins plan."""
    spark = talk.spark
    views = spark.sql("SELECT 'a' AS ad, TIMESTAMP '2026-01-01 10:00:00' AS viewed")
    clicks = spark.sql("SELECT 'a' AS ad, TIMESTAMP '2026-01-01 10:04:00' AS clicked")
    joined = bs.interval_join(
        bs.Timed(views, "viewed", "1 minute"),
        bs.Timed(clicks, "clicked", "1 minute"),
        "ad",
        after="10 minutes",
    )
    assert joined.count() == 1
    counted = bs.tumbling(views, "viewed", "10 seconds", lateness="1 minute", by="ad").count()
    assert bs.window_bounds(counted).count() == 1


def tables(talk: Talk) -> None:
    """A compacted topic is a table, and each batch joins its current content."""
    spark, brokers, folder = talk.spark, talk.brokers, talk.folder
    rows = [("h1", "r1"), ("h2", "r1"), ("h1", "r2"), ("h2", None)]
    talk.write(spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1), "c-racks")

    def racks(session: SparkSession) -> DataFrame:
        table = bs.read_changelog(session, "c-racks", brokers)
        return table.selectExpr("CAST(key AS STRING) AS host", "CAST(value AS STRING) AS rack")

    def write(placed: DataFrame, batch_id: int) -> None:
        placed.write.mode("overwrite").parquet(f"{folder}/placed/batch={batch_id}")

    assert [tuple(row) for row in racks(spark).collect()] == [("h1", "r2")]
    hosts = talk.stream("c-racks").selectExpr("CAST(key AS STRING) AS host").distinct()
    joined = bs.enrich_each_batch(racks, "host", write)
    talk.finish(hosts.writeStream.outputMode("update").foreachBatch(joined), "placed")
    found = spark.read.parquet(f"{folder}/placed").select("host", "rack").collect()
    assert sorted((row.host, row.rack or "") for row in found) == [("h1", "r2"), ("h2", "")]


def table_of_files(talk: Talk) -> None:
    """A ChangelogTable of another process is read, follows a topic, and keeps few folders."""
    table = bs.ChangelogTable(f"{talk.folder}/table")
    assert [row.key for row in table.read(talk.spark).collect()] == ["of a JVM"]
    for number in range(6):
        row = [("key", str(number), 0, number + 100)]
        table.upsert(talk.spark.createDataFrame(row, CHANGES), number)
        found = {row.key: row.value for row in table.read(talk.spark).collect()}
        assert found == {"of a JVM": "1", "key": str(number)}
    talk.write(talk.spark.sql("SELECT 'streamed' AS key, 'x' AS value"), "c-changes")
    stream = talk.stream("c-changes").select(
        F.col("key").cast("string"), F.col("value").cast("string"), "partition", "offset"
    )
    talk.finish(stream.writeStream.foreachBatch(table.upsert), "changes")
    keys = {row.key for row in table.read(talk.spark).collect()}
    assert keys == {"of a JVM", "key", "streamed"}
    assert len(list(Path(talk.folder, "table").iterdir())) == 4


def new_table(talk: Talk) -> None:
    """A ChangelogTable starts empty; one of an older release is refused."""
    with pytest.raises(FileNotFoundError, match="no batch was applied"):
        bs.ChangelogTable(f"{talk.folder}/new").read(talk.spark)
    talk.spark.range(1).write.parquet(f"{talk.folder}/old/version-0000000003")
    with pytest.raises(RuntimeError, match="an older release"):
        bs.ChangelogTable(f"{talk.folder}/old").read(talk.spark)


DIALOGUES = {
    "batches": batches,
    "mistakes": mistakes,
    "streams": streams,
    "values": values,
    "windows": windows,
    "tables": tables,
    "table-of-files": table_of_files,
    "new-table": new_table,
}


def main(url: str, bootstrap: str, folder: str) -> None:
    """Run the dialogues."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    bs.register(spark)
    talk = Talk(spark, bootstrap, folder)
    for name, dialogue in DIALOGUES.items():
        try:
            dialogue(talk)
        except Exception:  # noqa: BLE001 - the outcome of a dialogue
            lines = " | ".join(traceback.format_exc().splitlines()[-12:])
            sys.stdout.write(f"fail {name} {lines}\n")
        else:
            sys.stdout.write(f"pass {name}\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
