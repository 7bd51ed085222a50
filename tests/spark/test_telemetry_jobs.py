"""Tests the jobs from topic to gold, against a real broker."""

import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples import topic_setup
from barnabas.telemetry.samples.metrics import METRICS
from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOT = "application/vnd.barnabas.gpu-snapshot+json"
SAMPLE = "application/json"
TICK = "application/vnd.barnabas.tick+json"
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=10)


class Sent(NamedTuple):
    """A message of a test."""

    key: str | None
    value: bytes
    content_type: str


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def values(gpu: int, second: int) -> dict[str, float]:
    return {
        metric.dcgm: metric.low + (gpu * 7 + second * 3 + n) % 50 * (metric.high - metric.low) / 50
        for n, metric in enumerate(METRICS)
    }


def identity(gpu: int, second: float) -> dict[str, Any]:
    return {
        "timestamp": at(second),
        "gpu_id": f"GPU-{gpu}",
        "hostname": f"node-{gpu // 2}",
        "device": f"nvidia{gpu}",
    }


def snapshot(gpu: int, second: int, **changes: Any) -> Sent:
    labels = {"namespace": "research", "pod": "train"}
    known = {**identity(gpu, second), "model": "H200", "labels": labels}
    document = {**known, "metrics": values(gpu, second), **changes}
    return Sent(f"GPU-{gpu}", json.dumps(document).encode(), SNAPSHOT)


def samples(gpu: int, second: int) -> Iterator[Sent]:
    labels = {"namespace": "research", "pod": "train", "modelName": "H200"}
    for name, value in values(gpu, second).items():
        known = {**identity(gpu, second), "labels": labels}
        document = {**known, "metric_name": name, "value": value}
        yield Sent(f"GPU-{gpu}", json.dumps(document).encode(), SAMPLE)


def tick(second: float) -> Sent:
    document = {"timestamp": at(second), "hostname": "test", "tick": True}
    return Sent(None, json.dumps(document).encode(), TICK)


def send(broker: Broker, topic: str, messages: Sequence[Sent]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value, content_type in messages:
        producer.produce(topic, value, key, headers=[("content-type", content_type.encode())])
    assert producer.flush(60) == 0


def received(broker: Broker, topic: str) -> list[Any]:
    """Return all committed messages of a topic, in the order of their partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(30)
        assert message is not None, "the broker does not answer"
        if message.error():
            ended += 1
        else:
            found.append(message)
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def letters(broker: Broker, topic: str) -> list[tuple[str, dict[str, str], Any]]:
    """Return the dead letters about a topic: reason, headers and content."""
    found = []
    for message in received(broker, topics.REFUSED):
        headers = {name: value.decode() for name, value in message.headers()}
        if headers["dlq.topic"] == topic:
            found.append((headers["dlq.reason"], headers, message))
    return found


def table(lake: Path, name: str) -> pa.Table:
    """Return the rows of a table in the order of their files."""
    return pa.concat_tables(
        [pq.read_table(file) for file in sorted((lake / name).glob("*.parquet"))]
    )


def settings(broker: Broker, lake: Path, topic: str, **changes: Any) -> pipeline_jobs.JobSettings:
    return pipeline_jobs.JobSettings(
        bootstrap=broker.bootstrap, lake=str(lake), topic=topic, **changes
    )


@pytest.fixture(scope="module", autouse=True)
def register_topics(broker: Broker, spark: "SparkSession") -> None:
    topic_setup.create_missing({"bootstrap.servers": broker.bootstrap})
    for name, value in pipeline_jobs.SESSION.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


def new_topic(broker: Broker, name: str, partitions: int = 2) -> str:
    config = {"message.timestamp.type": "LogAppendTime"}
    wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([wanted])[name].result()
    return name


@pytest.mark.slow
def test_both_layouts_come_to_the_same_tables(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    fleet = [(gpu, second) for second in range(0, 70, 5) for gpu in range(4)]
    whole, apart = new_topic(broker, "whole"), new_topic(broker, "apart")
    send(broker, whole, [*(snapshot(*each) for each in fleet), tick(300)])
    send(broker, apart, [*(s for each in fleet for s in samples(*each)), tick(300)])
    for topic in (whole, apart):
        pipeline_jobs.drain(spark, settings(broker, tmp_path / topic, topic))
    order = [("timestamp", "ascending"), ("gpu_id", "ascending")]
    silver = [
        table(tmp_path / t, "silver").drop_columns(["partition", "offset"]).sort_by(order)
        for t in (whole, apart)
    ]
    assert silver[0].num_rows == len(fleet)
    assert silver[0].equals(silver[1])
    for name in ("gold_10s", "gold_1m"):
        assert table(tmp_path / whole, name).equals(table(tmp_path / apart, name))
    assert table(tmp_path / whole, "bronze").num_rows == len(fleet) + 1
    gold = table(tmp_path / whole, "gold_10s")
    assert sorted(set(gold["level"].to_pylist())) == ["gpu", "host", "model"]
    assert gold.num_rows == 7 * (4 + 2 + 1)
    assert table(tmp_path / whole, "gold_1m").num_rows == 2 * (4 + 2 + 1)
    assert letters(broker, whole) == letters(broker, apart) == []


def test_latest_state_of_each_gpu(broker: Broker, spark: "SparkSession", tmp_path: Path) -> None:
    topic = new_topic(broker, "states")
    send(broker, topic, [snapshot(80 + gpu, second) for second in (0, 9, 4) for gpu in range(2)])
    pipeline_jobs.drain(spark, settings(broker, tmp_path, topic), pipeline_jobs.JOBS[1:2])
    found = {m.key(): json.loads(m.value()) for m in received(broker, topics.LATEST)}
    for gpu in (80, 81):
        state = found[f"GPU-{gpu}".encode()]
        assert datetime.fromisoformat(state["timestamp"]) == START + timedelta(seconds=9)
        assert state["hostname"] == f"node-{gpu // 2}"
        assert state["power_usage"] == values(gpu, 9)["DCGM_FI_DEV_POWER_USAGE"]


def test_everything_refused_is_in_the_dead_letters(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "bad")
    send(broker, topic, [snapshot(1, 0), snapshot(2, 0), tick(100)])
    chosen = settings(broker, tmp_path, topic)
    pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[1:2])
    good = snapshot(1, 100)
    cases = [
        ("bad-json", Sent("GPU-1", b"{oops", SNAPSHOT)),
        ("not-an-object", Sent("GPU-1", b"[1]", SNAPSHOT)),
        ("unknown-layout", Sent("GPU-1", b"{}", SNAPSHOT)),
        ("unknown-layout", snapshot(1, 101)._replace(content_type="text/csv")),
        ("missing-field", snapshot(1, 101, gpu_id=None)),
        ("bad-timestamp", snapshot(1, 101, timestamp="yesterday")),
        ("too-large", Sent("GPU-1", b'"' + b"x" * 900_000 + b'"', SNAPSHOT)),
        ("clock-ahead", snapshot(1, 7200)),
        ("late", snapshot(1, 1)),
        ("duplicate", good),
        ("wrong-type", snapshot(1, 102, metrics={"DCGM_FI_DEV_GPU_UTIL": "hot"})),
        ("no-value", snapshot(1, 103, metrics={"DCGM_FI_DEV_GPU_UTIL": 9223372036854775794})),
        ("out-of-range", snapshot(1, 104, metrics={"DCGM_FI_DEV_GPU_UTIL": 300})),
        ("unknown-metric,out-of-range", snapshot(1, 105, metrics={
            "DCGM_FI_DEV_GPU_UTIL": 50, "DCGM_FI_DEV_GPU_TEMP": 900, "NEW": 1})),
    ]  # fmt: skip
    send(broker, topic, [good, *(message for _, message in cases), snapshot(2, 106)])
    pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[1:2])
    found = letters(broker, topic)
    assert sorted(reason for reason, _, _ in found) == sorted(reason for reason, _ in cases)
    by_place = {(h["dlq.partition"], h["dlq.offset"]): m for _, h, m in found}
    assert len(by_place) == len(cases)
    assert sorted((m.key(), m.value()) for m in by_place.values()) == sorted(
        (message.key.encode(), message.value) for _, message in cases if message.key
    )
    for _, headers, _ in found:
        assert headers["content-type"] in {SNAPSHOT, "text/csv"}
        assert headers["dlq.detail"]
        datetime.fromisoformat(headers["dlq.time"])
    silver = table(tmp_path, "silver")
    partly = [r for r in silver.to_pylist() if r["gpu_util"] == 50 and r["gpu_temp"] is None]
    assert [r["timestamp"] for r in partly] == [START + timedelta(seconds=105)]
    assert silver.num_rows == 5


def test_duplicates_of_earlier_batches(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "again")
    chosen = settings(broker, tmp_path, topic)
    for _ in range(2):
        send(broker, topic, [snapshot(gpu, 5) for gpu in range(3)])
        pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[1:2])
    assert [reason for reason, _, _ in letters(broker, topic)] == ["duplicate"] * 3
    assert table(tmp_path, "silver").num_rows == 3


def test_duplicates_in_two_partitions(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "spread")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition in (0, 1):
        for gpu in (partition, 7):
            producer.produce(topic, snapshot(gpu, 5).value, partition=partition)
    producer.flush()
    pipeline_jobs.drain(spark, settings(broker, tmp_path, topic), pipeline_jobs.JOBS[1:2])
    assert [reason for reason, _, _ in letters(broker, topic)] == ["duplicate"]
    assert sorted(table(tmp_path, "silver")["gpu_id"].to_pylist()) == ["GPU-0", "GPU-1", "GPU-7"]


NAMES = ("bronze", "silver", "gold_10s", "gold_1m")


def forget_commit(lake: Path, name: str, *, note: bool) -> None:
    """Undo Spark's note that the last batch of a job is done, and with `note` also the lake's."""
    commits = lake / "_checkpoints" / name / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()
    if note:
        max((lake / "_batches" / name).glob("*.json")).unlink()


@pytest.mark.slow
def test_a_batch_that_runs_again_changes_nothing(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "replay")
    chosen = settings(broker, tmp_path, topic)
    for begin in (0, 60):
        fleet = [snapshot(gpu, begin + second) for second in range(0, 60, 20) for gpu in range(3)]
        bad = Sent("GPU-0", b"{", SNAPSHOT)
        send(broker, topic, [*fleet, fleet[-1], bad, tick(begin + 110)])
        pipeline_jobs.drain(spark, chosen)
    before = {name: table(tmp_path, name) for name in NAMES}
    told = [(reason, m.value()) for reason, _, m in letters(broker, topic)]
    assert sorted(r for r, _ in told) == ["bad-json", "bad-json", "duplicate", "duplicate"]
    for note in (False, True):
        for name in NAMES:
            forget_commit(tmp_path, name, note=note)
        pipeline_jobs.drain(spark, chosen)
        for name in NAMES:
            assert table(tmp_path, name).equals(before[name]), name
        assert [(reason, m.value()) for reason, _, m in letters(broker, topic)] == told


def test_jobs_run_until_they_are_stopped(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "running")
    running = pipeline_jobs.start(
        spark, settings(broker, tmp_path, topic, trigger_s=0.2), pipeline_jobs.JOBS[:2]
    )
    for second in (0, 10):
        send(broker, topic, [snapshot(1, second)])
        for query in running.values():
            query.processAllAvailable()
    for query in running.values():
        query.stop()
    assert list(running) == ["bronze", "silver"]
    assert table(tmp_path, "bronze").num_rows == table(tmp_path, "silver").num_rows == 2


def test_a_lake_of_another_checkpoint_is_refused(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    topic = new_topic(broker, "foreign")
    send(broker, topic, [snapshot(1, 0)])
    chosen = settings(broker, tmp_path, topic)
    pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[:1])
    shutil.rmtree(tmp_path / "_checkpoints")
    with pytest.raises(StreamingQueryException, match="holds batch 0 of another run"):
        pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[:1])


@pytest.mark.slow
def test_delta_counts_each_batch_once(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    topic = new_topic(broker, "delta")
    chosen = settings(broker, tmp_path, topic, table_format="delta")
    for second in (0, 20):
        send(broker, topic, [snapshot(gpu, second) for gpu in range(3)])
        pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[1:2])
    forget_commit(tmp_path, "silver", note=True)
    pipeline_jobs.drain(spark, chosen, pipeline_jobs.JOBS[1:2])
    listed = DeltaTable(str(tmp_path / "silver"))
    assert listed.to_pyarrow_table().num_rows == table(tmp_path, "silver").num_rows == 6
    assert listed.version() == 1
