"""Tests that one topic fills a lake: a wrong topic is refused, a moved lake continues."""

import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.telemetry.run_command import bind
from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.lake.lake_identity import WrongSourceError
from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(280)
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=10)
IDLE = {"DCGM_FI_DEV_GPU_UTIL": 0, "DCGM_FI_DEV_POWER_USAGE": 70}


def snapshot(gpu: int, second: int) -> bytes:
    at = (START + timedelta(seconds=second)).isoformat()
    return json.dumps({"timestamp": at, "gpu_id": f"GPU-{gpu}", "metrics": IDLE}).encode()


def tick(second: int) -> bytes:
    at = (START + timedelta(seconds=second)).isoformat()
    return json.dumps({"timestamp": at, "tick": True}).encode()


def send(broker: Broker, topic: str, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value, b"GPU")
    assert producer.flush(60) == 0


def new_topic(broker: Broker, name: str) -> str:
    wanted = NewTopic(name, 1, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([wanted])[name].result()
    return name


def settings(broker: Broker, lake: Path, topic: str) -> pipeline_jobs.JobSettings:
    return pipeline_jobs.JobSettings(bootstrap=broker.bootstrap, lake=str(lake), topic=topic)


def table(lake: Path, name: str) -> pa.Table:
    """Return the rows of a table in the order of its files."""
    files = sorted((lake / name).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


@pytest.fixture
def other_broker() -> Iterator[Broker]:
    """Another cluster."""
    with Broker() as broker:
        yield broker


def drained(
    spark: "SparkSession", chosen: pipeline_jobs.JobSettings, *, rebind: bool = False
) -> None:
    bind(chosen, rebind=rebind)
    pipeline_jobs.drain(spark, chosen)


def seconds(lake: Path) -> list[int]:
    return sorted(each.second for each in table(lake, "silver")["timestamp"].to_pylist())


def test_a_wrong_topic_changes_nothing_and_another_continues_as_configured(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic, other = new_topic(broker, "right"), new_topic(broker, "wrong")
    send(broker, topic, [snapshot(1, 0), snapshot(1, 1)])
    send(broker, other, [snapshot(2, 2)])
    chosen = settings(broker, tmp_path, topic)
    drained(spark, chosen)
    wrong = settings(broker, tmp_path, other)
    with pytest.raises(WrongSourceError, match=f"Pass --topic {topic}"):
        bind(wrong)
    send(broker, topic, [snapshot(1, 3)])
    drained(spark, chosen)
    assert seconds(tmp_path) == [0, 1, 3]
    drained(spark, wrong, rebind=True)
    assert seconds(tmp_path) == [0, 1, 2, 3]
    send(broker, other, [snapshot(2, 4)])
    drained(spark, wrong)
    assert seconds(tmp_path) == [0, 1, 2, 3, 4]
    assert table(tmp_path, "bronze").num_rows == 5


def test_a_topic_that_was_created_again_is_read_from_its_beginning(
    broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "again")
    send(broker, topic, [snapshot(1, 0), snapshot(1, 1)])
    chosen = settings(broker, tmp_path, topic)
    drained(spark, chosen)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result()
    new_topic(broker, "again")
    send(broker, topic, [snapshot(1, 2)])
    with pytest.raises(WrongSourceError, match="created again"):
        bind(chosen)
    drained(spark, chosen, rebind=True)
    assert seconds(tmp_path) == [0, 1, 2]


def starts(findings: list[dict[str, Any]]) -> set[datetime]:
    """Return the windows of findings, which have one row each."""
    found = {row["window_start"] for row in findings}
    assert len(found) == len(findings)
    return found


def test_a_moved_lake_continues_also_with_another_cluster(
    broker: Broker, other_broker: Broker, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(broker, "moved")
    send(broker, topic, [snapshot(1, s) for s in (0, 10, 20)] + [tick(130)])
    drained(spark, settings(broker, tmp_path / "a", topic))
    before = table(tmp_path / "a", "findings").to_pylist()
    assert len(before) == 3
    shutil.move(tmp_path / "a", tmp_path / "b")
    send(broker, topic, [snapshot(1, 120), tick(250)])
    drained(spark, settings(broker, tmp_path / "b", topic))
    after = table(tmp_path / "b", "findings").to_pylist()
    assert [row for row in after if row in before] == before
    assert starts(after) > starts(before)
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    new_topic(other_broker, "moved")
    send(other_broker, topic, [snapshot(1, 240), tick(370)])
    elsewhere = settings(other_broker, tmp_path / "c", topic)
    with pytest.raises(WrongSourceError, match="these brokers are cluster"):
        bind(elsewhere)
    drained(spark, elsewhere, rebind=True)
    assert starts(table(tmp_path / "c", "findings").to_pylist()) > starts(after)
    assert not (tmp_path / "a").exists()
