"""Tests `df.write.format("barnabas")`: every column, several topics, errors, retried tasks."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.admin.transaction_admin import Transactions
from barnabas.testing.broker import Broker
from barnabas.wire.cluster_wire import Wire
from tests.support.loads.topic_reading import Seen, committed_records, create_topic


class Write(Protocol):
    def __call__(self, rows: DataFrame, **options: str) -> None: ...


@pytest.fixture
def write(sink: str, broker: Broker) -> Write:
    def write(rows: DataFrame, **options: str) -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        writer = rows.write.format(sink).mode("append").options(**named)
        writer.option("kafka.bootstrap.servers", broker.bootstrap).save()

    return write


def read(broker: Broker, topic: str) -> list[Seen]:
    return committed_records(broker.bootstrap, topic)


def test_every_column(spark: SparkSession, write: Write, broker: Broker) -> None:
    first = create_topic(broker.bootstrap, "columns-1", 4)
    second = create_topic(broker.bootstrap, "columns-2", 1)
    at = datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
    rows = spark.createDataFrame(
        [
            ("k", bytearray(b"v"), [("h", bytearray(b"1")), ("h", None)], first, 3, at, 99),
            (None, None, None, second, None, None, 99),
        ],
        "key string, value binary, headers array<struct<key string, value binary>>, "
        "topic string, partition int, timestamp timestamp, offset long",
    )
    write(rows)
    assert read(broker, first) == [
        Seen(3, b"k", b"v", (("h", b"1"), ("h", None)), int(at.timestamp() * 1000))
    ]
    (other,) = read(broker, second)
    assert (other.partition, other.key, other.value, other.headers) == (0, None, None, ())


def test_one_dict_serves_the_write_and_the_read(
    spark: SparkSession, sink: str, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "one-dict", 2)
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "topic": topic,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "exactlyOnce": "true",
        "kafka.acks": "all",
        "kafka.max.request.size": "2000000",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "500",
        "kafka.request.timeout.ms": "20000",
    }
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format(sink).mode("append").options(**options).save()
    found = spark.read.format(sink).options(**options).load()
    assert sorted(int(row.value) for row in found.collect()) == list(range(10))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_many_rows_in_every_codec(
    spark: SparkSession, write: Write, broker: Broker, codec: str
) -> None:
    topic = create_topic(broker.bootstrap, f"codec-{codec}", 3)
    rows = spark.range(20_000).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 10) AS value"
    )
    write(rows, topic=topic, kafka_compression_type=codec)
    found = {each.key: each.value for each in read(broker, topic)}
    assert found == {str(number).encode(): str(number).encode() * 10 for number in range(20_000)}


def test_values_of_nearly_a_megabyte(spark: SparkSession, write: Write, broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "large")
    write(spark.range(20).selectExpr("repeat('x', 900000) AS value"), topic=topic)
    assert [len(each.value or b"") for each in read(broker, topic)] == [900_000] * 20


def test_at_least_once(spark: SparkSession, write: Write, broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "plain", 2)
    rows = spark.range(1000).selectExpr("CAST(id AS STRING) AS value")
    write(rows, topic=topic, exactlyOnce="false")
    assert len(read(broker, topic)) == 1000


@pytest.mark.parametrize(
    ("select", "options", "remedy"),
    [
        ("id AS value", {"topic": "t"}, "CAST(value AS STRING)"),
        ("'v' AS value", {}, "set option topic"),
        ("'v' AS value", {"topic": "t", "acks": "1"}, "The sink has no option"),
        ("'v' AS value", {"topic": "t", "kafka_buffer_memory": "1"}, "queue.buffering.max.kbytes"),
    ],
)
def test_mistakes_are_reported_when_the_query_is_planned(
    spark: SparkSession, write: Write, select: str, options: dict[str, str], remedy: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        write(spark.range(1).selectExpr(select), **options)
    assert remedy in str(caught.value)


def test_a_topic_that_no_client_may_write_to(spark: SparkSession, write: Write) -> None:
    with pytest.raises(PySparkException) as caught:
        write(spark.range(1).selectExpr("'v' AS value"), topic="__consumer_offsets")
    assert "__consumer_offsets" in str(caught.value)


def test_a_task_that_fails_halfway_and_is_tried_again(
    spark: SparkSession, write: Write, broker: Broker, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "retried", 2)
    marks = str(tmp_path)

    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pathlib import Path as Place

        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        mark = Place(marks) / str(task.partitionId())
        for number, batch in enumerate(batches):
            yield batch
            if number == 2 and not mark.exists():
                mark.touch()
                raise RuntimeError("halfway")

    rows = spark.range(0, 100_000, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    write(rows.mapInArrow(fails_once, "value string"), topic=topic)
    assert len(list(tmp_path.iterdir())) == 2
    values = sorted(int(each.value or b"") for each in read(broker, topic))
    assert values == list(range(100_000))


def test_a_job_that_fails_leaves_no_row_and_no_open_transaction(
    spark: SparkSession, write: Write, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "failed")

    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        raise RuntimeError("always")

    rows = spark.range(0, 50_000, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(PySparkException):
        write(rows.mapInArrow(fails, "value string"), topic=topic)
    assert read(broker, topic) == []


def test_a_version_of_an_application_is_written_once(
    spark: SparkSession, write: Write, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "versions")
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    for version in ("7", "7", "8", "7"):
        write(rows, topic=topic, txnAppId="nightly", txnVersion=version)
    assert len(read(broker, topic)) == 20


def test_a_version_is_written_once_with_and_without_adaptive_execution(
    spark: SparkSession, write: Write, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "adaptive")
    rows = spark.range(1000).selectExpr("CAST(id AS STRING) AS value")
    counts = []
    try:
        for adaptive in ("true", "false"):
            spark.conf.set("spark.sql.adaptive.enabled", adaptive)
            spark.conf.set("spark.sql.shuffle.partitions", "7")
            shuffled = rows.repartition("value")
            counts.append(shuffled.rdd.getNumPartitions())
            write(shuffled, topic=topic, txnAppId="adaptive", txnVersion="1")
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert len(set(counts)) == 2
    assert len(read(broker, topic)) == 1000


def test_many_jobs_use_the_same_transactional_ids(
    spark: SparkSession, write: Write, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "same-ids")
    for _ in range(3):
        rows = spark.range(10).selectExpr("'v' AS value")
        write(rows, topic=topic, transactionalIdPrefix="same-ids")
    with Wire({"bootstrap.servers": broker.bootstrap}) as wire:
        ids = [each.transactional_id for each in Transactions(wire).all()]
    tasks = rows.rdd.getNumPartitions()
    assert len([each for each in ids if each.startswith("same-ids")]) <= tasks + 1
    assert len(read(broker, topic)) == 30


def test_a_finished_job_leaves_no_group_behind(
    spark: SparkSession, write: Write, broker: Broker
) -> None:
    topic = create_topic(broker.bootstrap, "groups")
    write(spark.range(10).selectExpr("'v' AS value"), topic=topic, transactionalIdPrefix="tidy")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    groups = admin.list_consumer_groups().result().valid
    assert not [each.group_id for each in groups if each.group_id.startswith("tidy")]


def test_a_topic_cannot_be_overwritten(spark: SparkSession, sink: str, broker: Broker) -> None:
    rows = spark.range(1).selectExpr("'v' AS value")
    writer = rows.write.format(sink).mode("overwrite").option("topic", "t")
    with pytest.raises(PySparkException, match="mode append"):
        writer.option("kafka.bootstrap.servers", broker.bootstrap).save()
