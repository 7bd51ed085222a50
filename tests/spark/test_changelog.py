"""Tests compacted topics as tables: read at once, followed by a stream, joined with one."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.testing import assertDataFrameEqual

from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.records import batches
from barnabas.spark import ChangelogTable, enrich_each_batch, latest, read_changelog, register
from barnabas.spark.helpers.columns import ColumnError
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.loads.load import create_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGES = "key STRING, value STRING, partition INT, offset BIGINT"


def changes(spark: "SparkSession", *rows: tuple[str | None, str | None, int]) -> "DataFrame":
    return spark.createDataFrame([(key, value, 0, offset) for key, value, offset in rows], CHANGES)


def test_the_latest_of_each_key_counts(spark: "SparkSession") -> None:
    log = changes(spark, ("a", "1", 0), ("b", "2", 1), ("a", "3", 2), ("b", None, 3), ("c", "", 4))
    assertDataFrameEqual(latest(log), changes(spark, ("a", "3", 2), ("c", "", 4)))
    assertDataFrameEqual(
        latest(log, tombstones=True), changes(spark, ("a", "3", 2), ("b", None, 3), ("c", "", 4))
    )


def test_keys_order_and_deletion_can_be_columns_of_ones_own(spark: "SparkSession") -> None:
    schema = "host STRING, gpu INT, at INT, state STRING"
    log = spark.createDataFrame(
        [("h", 0, 2, "on"), ("h", 0, 1, "gone"), ("h", 1, 1, "on"), ("h", 1, 2, "gone")], schema
    )
    found = latest(log, ["host", "gpu"], order="at", deleted="state = 'gone'")
    assertDataFrameEqual(found, spark.createDataFrame([("h", 0, 2, "on")], schema))


def test_a_row_without_a_key_is_not_lost_in_silence(spark: "SparkSession") -> None:
    with pytest.raises(PySparkException, match=r"A row has no key.* offset 7; .*IS NOT NULL"):
        latest(changes(spark, (None, "1", 7))).collect()
    with pytest.raises(ColumnError, match="There is no column offset"):
        latest(changes(spark).drop("offset"))


def test_a_stream_in_update_mode_shows_changes(spark: "SparkSession", tmp_path: Path) -> None:
    source, seen = str(tmp_path / "source"), []
    Path(source).mkdir()
    stream = spark.readStream.schema(CHANGES).parquet(source)

    def see(rows: "DataFrame", batch_id: int) -> None:
        seen.append(sorted((row.key, row.value) for row in rows.collect()))

    for rows in ([("a", "1", 0), ("b", "1", 1)], [("b", None, 2)]):
        changes(spark, *rows).coalesce(1).write.mode("append").parquet(source)
        query = (
            latest(stream, tombstones=True)
            .writeStream.outputMode("update")
            .foreachBatch(see)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert [each for each in seen if each] == [[("a", "1"), ("b", "1")], [("b", None)]]


def test_a_table_of_files_follows_the_changes(spark: "SparkSession", tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "table"))
    with pytest.raises(FileNotFoundError, match="no batch was applied"):
        table.read(spark)
    applied = [
        changes(spark, ("a", "1", 0), ("b", "1", 1)),
        changes(spark, ("b", None, 2), ("c", "1", 3)),
    ]
    for number, batch in enumerate(applied):
        table.upsert(batch, number)
    table.upsert(applied[-1], 1)
    expected = changes(spark, ("a", "1", 0), ("c", "1", 3))
    assertDataFrameEqual(table.read(spark), expected)
    (tmp_path / "table" / "version-0000000009").mkdir()
    assertDataFrameEqual(table.read(spark), expected)


def test_a_table_keeps_few_versions(spark: "SparkSession", tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path))
    for number in range(5):
        table.upsert(changes(spark, ("a", str(number), number)).coalesce(1), number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"version-{number:010d}" for number in (2, 3, 4)]


def test_a_topic_is_read_as_a_table_and_again_in_each_batch_of_a_join(
    spark: "SparkSession", broker: Broker, tmp_path: Path
) -> None:
    register(spark)
    brokers = {"kafka.bootstrap.servers": broker.bootstrap}
    create_topic(broker.bootstrap, "racks", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def racks(session: "SparkSession") -> "DataFrame":
        return read_changelog(session, "racks", brokers).select(
            F.col("key").cast("string").alias("host"), F.col("value").cast("string").alias("rack")
        )

    def write(rows: "DataFrame", batch_id: int) -> None:
        rows.write.parquet(f"{out}/batch={batch_id}")

    source, out = str(tmp_path / "source"), str(tmp_path / "out")
    Path(source).mkdir()
    stream = spark.readStream.schema("host STRING, round INT").parquet(source)
    query = (
        stream.writeStream.foreachBatch(enrich_each_batch(racks, "host", write))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for number, rack in enumerate(["r1", "r2", None]):
            producer.produce("racks", rack, "h")
            assert producer.flush(30) == 0
            rows = spark.createDataFrame([("h", number)], "host STRING, round INT")
            rows.coalesce(1).write.mode("append").parquet(source)
            query.processAllAvailable()
    finally:
        query.stop()
    found = spark.read.parquet(out).orderBy("round").collect()
    assert [(row.host, row["round"], row.rack) for row in found] == [
        ("h", 0, "r1"),
        ("h", 1, "r2"),
        ("h", 2, None),
    ]


def test_a_topic_that_compaction_has_cleaned_is_read_as_a_table(spark: "SparkSession") -> None:
    """Compaction keeps the last batch of a segment even if none of its records remain."""
    register(spark)
    config = {"cleanup.policy": "compact", "segment.bytes": "4096"}
    soon = {"storage.compaction_check_interval": "20ms", "storage.min_cleanable_dirty_ratio": "0"}
    with Broker(settings=soon) as broker:
        create_topic(broker.bootstrap, "cleaned", 1, config)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for number in range(60):
            producer.produce("cleaned", b"%0500d" % number, b"key-%d" % (number % 5))
            assert producer.flush(30) == 0
        brokers = {"kafka.bootstrap.servers": broker.bootstrap}
        eventually(lambda: has_emptied_batches(broker.bootstrap, "cleaned"))
        found = read_changelog(spark, "cleaned", brokers).selectExpr("int(string(value)) AS value")
        assert sorted(row.value for row in found.collect()) == list(range(55, 60))


def has_emptied_batches(bootstrap: str, topic: str) -> bool:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = [FetchTopic(topic=topic, partitions=[part])]
    host, _, port = bootstrap.rpartition(":")
    with RawClient((host, int(port))) as client:
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=asked)
        (answer,) = client.ask(request, 11, FetchResponse).responses
    found = batches(bytes(answer.partitions[0].records or b""))
    return any(not header.record_count for header, _ in found)


def test_the_topic_is_named_once(spark: "SparkSession") -> None:
    with pytest.raises(ValueError, match="Leave subscribe out of the options; the topic is racks"):
        read_changelog(spark, "racks", {"subscribe": "others"})
