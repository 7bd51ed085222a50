"""Tests spark.readStream.format("barnabas") against a real broker."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.spark import observed, source_metrics
from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

PATIENCE_S = 60


class Topic:
    """A topic to write to, and the streams that read it."""

    def __init__(
        self, spark: SparkSession, bootstrap: str, folder: Path, partitions: int = 1
    ) -> None:
        self.name = f"s-{uuid4().hex[:12]}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.admin.create_topics([NewTopic(self.name, num_partitions=partitions)])[
            self.name
        ].result()
        self.folder = folder
        self._spark = spark
        self.bootstrap = bootstrap
        self.batches: dict[int, list[int]] = {}
        self.tasks: dict[int, int] = {}
        self.progress: list[StreamingQueryProgress] = []

    def write(
        self, *values: int, partition: int = 0, name: str | None = None, first_ms: int = 0
    ) -> None:
        """Write with a new producer, which knows of new partitions."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number, value in enumerate(values):
            time_ms = first_ms + number if first_ms else 0
            producer.produce(
                name or self.name, str(value).encode(), partition=partition, timestamp=time_ms
            )
        producer.flush()

    def start(self, trigger: dict[str, Any], **options: str | None) -> StreamingQuery:
        names = {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": self.name,
            "startingOffsets": "earliest",
            **options,
        }
        chosen = {name: value for name, value in names.items() if value is not None}
        frame = observed(self._spark.readStream.format("barnabas").options(**chosen).load())
        return (
            frame.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.folder))
            .trigger(**trigger)
            .start()
        )

    def drain(self, **options: str) -> list[list[int]]:
        """Read the available records, and return the values of each batch."""
        self.batches = {}
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(PATIENCE_S)
        self.progress = [each for each in query.recentProgress if each.numInputRows]
        return [self.batches[number] for number in sorted(self.batches)]

    def _keep(self, frame: DataFrame, number: int) -> None:
        rows = frame.selectExpr(
            "int(string(value)) AS value", "spark_partition_id() AS task"
        ).collect()
        self.tasks[number] = len({row.task for row in rows})
        self.batches[number] = sorted(row.value for row in rows)

    @property
    def values(self) -> list[int]:
        return sorted(value for batch in list(self.batches.values()) for value in batch)

    def committed(self, group: str) -> dict[int, int]:
        """Return the offsets of the group."""
        asked = [ConsumerGroupTopicPartitions(group)]
        answer = self.admin.list_consumer_group_offsets(asked)[group].result()
        return {each.partition: each.offset for each in answer.topic_partitions}


@pytest.fixture
def topic(spark: SparkSession, broker: Broker, tmp_path: Path) -> Topic:
    return Topic(spark, broker.bootstrap, tmp_path / "checkpoint")


def test_a_restart_continues_where_the_last_run_ended(topic: Topic) -> None:
    topic.write(*range(5))
    assert topic.drain() == [[0, 1, 2, 3, 4]]
    topic.write(5, 6)
    assert topic.drain() == [[5, 6]]
    assert topic.drain() == []


def test_batches_are_limited_and_progress_shows_in_the_group(topic: Topic) -> None:
    topic.write(*range(10))
    found = topic.drain(maxOffsetsPerTrigger="4", groupIdPrefix="mine")
    assert [len(batch) for batch in found] == [4, 4, 2]
    metrics = [each for progress in topic.progress for each in source_metrics(progress)]
    assert [each.offsets_behind_latest for each in metrics] == [6, 2, 0]
    assert [(each.rows, each.bytes) for each in metrics] == [(4, 4), (4, 4), (2, 2)]
    assert {each.source for each in metrics} == {
        f"barnabas: topic {topic.name} at {topic.bootstrap}"
    }
    assert topic.values == list(range(10))
    assert topic.committed(f"mine-{topic.name}") == {0: 10}
    assert {each.fetch_ms for each in metrics} == {None}
    topic.write(10, 11, 12)
    topic.drain(includeFetchTime="true", **{"kafka.group.id": "other"})
    assert topic.committed("other") == {0: 13}
    (timed,) = [each for progress in topic.progress for each in source_metrics(progress)]
    assert (timed.rows, timed.bytes) == (3, 6)
    assert timed.fetch_ms


@pytest.mark.slow
def test_partitions_with_little_news_share_a_task_unless_more_are_asked_for(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = Topic(spark, broker.bootstrap, tmp_path / "checkpoint", partitions=3)
    for partition in range(3):
        topic.write(*range(10 * partition, 10 * partition + 10), partition=partition)
    assert topic.drain() == [list(range(30))]
    assert topic.tasks.pop(0) == 1
    wishes = ({"minPartitions": "3"}, 3), ({"maxRecordsPerPartition": "25"}, 2)
    for options, tasks in (*wishes, ({"maxPartitions": "2"}, 2)):
        for partition in range(3):
            topic.write(*range(10), partition=partition)
        assert topic.drain(**options) == [sorted(3 * list(range(10)))]
        assert topic.tasks.popitem()[1] == tasks


def test_a_repeated_first_batch_reads_the_same_again(topic: Topic) -> None:
    """Spark does not log where the first batch started; `latest` has moved since."""
    topic.write(1, 2)
    query = topic.start({"processingTime": "0 seconds"}, startingOffsets="latest")
    eventually(lambda: query.lastProgress, PATIENCE_S)
    topic.write(3, 4)
    eventually(lambda: topic.values == [3, 4], PATIENCE_S)
    query.stop()
    forget_commits(topic.folder, after=0)
    topic.write(5)
    topic.batches = {}
    topic.drain(startingOffsets="latest")
    assert topic.values == [3, 4, 5]


def test_the_very_first_batch_repeated(topic: Topic, tmp_path: Path) -> None:
    topic.write(1, 2, 3)
    assert topic.drain(maxOffsetsPerTrigger="2") == [[1, 2], [3]]
    forget_commits(topic.folder, after=-1)
    shutil.rmtree(topic.folder / "sources", ignore_errors=True)
    topic.write(4)
    assert topic.drain(startingOffsets="latest") == [[1, 2], [3, 4]]


def test_a_first_batch_is_repeated_though_a_partition_was_added(topic: Topic) -> None:
    """Spark requests the initial offset again; startingOffsets leaves the new partition out."""
    topic.write(1, 2, 3)
    starts = json.dumps({topic.name: {"0": 1}})
    assert topic.drain(startingOffsets=starts) == [[2, 3]]
    forget_commits(topic.folder, after=-1)
    topic.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
    topic.write(4, partition=1)
    assert topic.drain(startingOffsets=starts) == [[2, 3], [4]]


def forget_commits(folder: Path, after: int) -> None:
    """Make Spark assume that it crashed while it worked on a batch."""
    for kind, last in (("commits", after), ("offsets", after + 1)):
        for file in (folder / kind).iterdir():
            number = file.name.strip(".").removesuffix(".crc")
            if number.isdecimal() and int(number) > last:
                file.unlink()


def test_new_partitions_and_topics_are_found_in_mid_stream(topic: Topic, broker: Broker) -> None:
    query = topic.start(
        {"processingTime": "0 seconds"},
        subscribe=None,
        subscribePattern=f"{topic.name}.*",
        minPartitions="3",
    )
    try:
        topic.write(1)
        eventually(lambda: topic.values == [1], PATIENCE_S)
        topic.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
        topic.write(2, partition=1)
        eventually(lambda: topic.values == [1, 2], PATIENCE_S)
        second = f"{topic.name}-second"
        topic.admin.create_topics([NewTopic(second, num_partitions=1)])[second].result()
        topic.write(3, name=second)
        eventually(lambda: topic.values == [1, 2, 3], PATIENCE_S)
        assert any(each.sources[0].latestOffset for each in query.recentProgress)
    finally:
        query.stop()


def test_deleted_records_stop_a_stream_or_are_passed_over(topic: Topic) -> None:
    topic.write(*range(4))
    assert topic.drain() == [[0, 1, 2, 3]]
    topic.write(*range(4, 10))
    for future in topic.admin.delete_records([ClientPartition(topic.name, 0, 7)]).values():
        future.result()
    query = topic.start({"availableNow": True})
    with pytest.raises(Exception, match=r"-0: offsets 4 to 6 \(3 offsets\) were deleted"):
        query.awaitTermination(PATIENCE_S)
    assert topic.drain(failOnDataLoss="false") == [[7, 8, 9]]


@pytest.mark.parametrize("count", [2, 7])
def test_a_recreated_topic_is_read_from_its_start_when_losses_are_allowed(
    topic: Topic, count: int
) -> None:
    """Whether it is shorter or longer than the previous topic of that name."""
    topic.write(*range(5))
    topic.drain()
    topic.admin.delete_topics([topic.name])[topic.name].result()
    wanted = NewTopic(topic.name, num_partitions=1)
    eventually(lambda: made(topic.admin, wanted))
    topic.write(*range(100, 100 + count))
    query = topic.start({"availableNow": True})
    with pytest.raises(Exception, match="the topic was deleted and created again"):
        query.awaitTermination(PATIENCE_S)
    assert topic.drain(failOnDataLoss="false") == [list(range(100, 100 + count))]


def made(admin: AdminClient, wanted: NewTopic) -> bool:
    return admin.create_topics([wanted])[wanted.topic].exception() is None


def test_small_batches_wait_but_not_the_first_nor_for_an_end_that_is_fixed(topic: Topic) -> None:
    topic.write(1, 2)
    waiting = topic.start({"processingTime": "0 seconds"}, minOffsetsPerTrigger="4")
    try:
        eventually(lambda: topic.values == [1, 2], PATIENCE_S)
        topic.write(3, 4)
        topic.write(5, 6)
        eventually(lambda: 4 in [each.numInputRows for each in waiting.recentProgress], PATIENCE_S)
        assert topic.values == [1, 2, 3, 4, 5, 6]
    finally:
        waiting.stop()
    topic.write(7)
    assert topic.drain(minOffsetsPerTrigger="4") == [[7]]


def test_a_start_by_time(topic: Topic) -> None:
    topic.write(*range(4), first_ms=1_700_000_000_000)
    times = json.dumps({topic.name: {"0": 1_700_000_000_002}})
    assert topic.drain(startingOffsetsByTimestamp=times) == [[2, 3]]


def test_the_broker_dies_and_comes_back_in_mid_stream(spark: SparkSession, tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path / "data") as broker:
        topic = Topic(spark, broker.bootstrap, tmp_path / "checkpoint", partitions=2)
        topic.write(*range(100))
        small = {"kafka.max.partition.fetch.bytes": "200", "maxOffsetsPerTrigger": "60"}
        query = topic.start({"processingTime": "0 seconds"}, **small)
        for life in range(1, 3):
            eventually(partial(has_read, topic, query, 100 * life), PATIENCE_S)
            broker.kill()
            broker.start()
            topic.write(*range(100 * life, 100 * life + 100), partition=life % 2)
        eventually(partial(has_read, topic, query, 300), PATIENCE_S)
        query.stop()
        assert topic.values == list(range(300))


def has_read(topic: Topic, query: StreamingQuery, count: int) -> bool:
    assert query.exception() is None
    return len(topic.values) >= count
