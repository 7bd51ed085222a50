"""Tests reads and writes on three brokers, one of which is killed meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.loads.topic_reading import committed_records, create_topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = 6
ROWS = 30_000
ROWS_A_BATCH = 3_000
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def topic(cluster: ClusterProcesses, name: str) -> str:
    """Create a topic with replicas on all brokers."""
    made = create_topic(cluster.bootstrap, name, PARTITIONS)
    cluster.wait_healthy((made,))
    return made


def write(spark: SparkSession, sink: str, cluster: ClusterProcesses, topic: str) -> None:
    rows = spark.range(ROWS).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 10) AS value"
    )
    writer = rows.write.format(sink).mode("append").option("topic", topic)
    writer.option("kafka.bootstrap.servers", cluster.bootstrap).save()


def written(cluster: ClusterProcesses, topic: str) -> list[int]:
    """Return the keys of all committed records, in order."""
    return sorted(int(each.key or b"") for each in committed_records(cluster.bootstrap, topic))


def batch(spark: SparkSession, sink: str, cluster: ClusterProcesses, topic: str) -> list[int]:
    """Return the keys that Spark reads, in order."""
    reader = spark.read.format(sink).option("kafka.bootstrap.servers", cluster.bootstrap)
    rows = reader.option("subscribe", topic).load().selectExpr("CAST(key AS STRING) AS key")
    return sorted(int(row.key) for row in rows.collect())


def copying(
    rows: DataFrame, sink: str, cluster: ClusterProcesses, to: str, checkpoint: Path
) -> StreamingQuery:
    writer = rows.writeStream.format(sink).option("topic", to)
    writer = writer.option("kafka.bootstrap.servers", cluster.bootstrap)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def lose_leader(cluster: ClusterProcesses, topic: str) -> int:
    """Kill the leader of the first partition; return its number once others lead everything."""
    leader = cluster.leader_of(topic, 0)
    cluster.nodes[leader].kill()
    cluster.wait_replaced(leader)
    return leader


def test_written_records_are_read_from_any_leader(
    spark: SparkSession, sink: str, cluster: ClusterProcesses
) -> None:
    name = topic(cluster, "batch")
    write(spark, sink, cluster, name)
    assert written(cluster, name) == list(range(ROWS))
    assert batch(spark, sink, cluster, name) == list(range(ROWS))
    lost = lose_leader(cluster, name)
    assert batch(spark, sink, cluster, name) == list(range(ROWS))
    write(spark, sink, cluster, name)
    cluster.nodes[lost].start()
    cluster.wait_healthy((name,))
    assert written(cluster, name) == sorted([*range(ROWS), *range(ROWS)])


def test_a_stream_copies_each_row_once_when_a_leader_dies(
    spark: SparkSession, sink: str, cluster: ClusterProcesses, tmp_path: Path
) -> None:
    source, target = topic(cluster, "stream-in"), topic(cluster, "stream-out")
    write(spark, sink, cluster, source)
    reader = spark.readStream.format(sink).option("kafka.bootstrap.servers", cluster.bootstrap)
    reader = reader.option("startingOffsets", "earliest").option("subscribe", source)
    rows = reader.option("maxOffsetsPerTrigger", str(ROWS_A_BATCH)).load().select("key", "value")
    query = copying(rows, sink, cluster, target, tmp_path / "checkpoint")
    try:
        eventually(lambda: query.lastProgress, PATIENCE_S)
        lost = lose_leader(cluster, target)
        cluster.nodes[lost].start()
        query.processAllAvailable()
    finally:
        query.stop()
    cluster.wait_healthy((source, target))
    assert len(query.recentProgress) > 2
    assert written(cluster, target) == list(range(ROWS))
