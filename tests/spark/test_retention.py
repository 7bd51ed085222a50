"""Tests that jobs give the same results if a lake's files are removed and merged meanwhile."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.lake.lake_reading import Lake
from barnabas.telemetry.retention import consumers, retention_plan, retention_run
from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=20)
SNAPSHOT = "application/vnd.barnabas.gpu-snapshot+json"
TICK = "application/vnd.barnabas.tick+json"
TOPIC = "retained"


def send(broker: Broker, seconds: range) -> None:
    """Send a sample of three cards every five seconds, and let their windows close."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def put(key: str, document: dict[str, Any], kind: str) -> None:
        at = {"timestamp": (START + timedelta(seconds=second)).isoformat()}
        headers = [("content-type", kind.encode())]
        producer.produce(TOPIC, json.dumps({**at, **document}), key, headers=headers)

    for second in seconds:
        for gpu in ("GPU-1", "GPU-2", "GPU-3"):
            metrics = {"DCGM_FI_DEV_GPU_UTIL": second % 100, "DCGM_FI_DEV_XID_ERRORS": second // 60}
            card = {"gpu_id": gpu, "hostname": "node-1", "device": "nvidia0", "model": "H200"}
            put(gpu, {**card, "labels": {}, "metrics": metrics}, SNAPSHOT)
    second = seconds.stop + 120
    put("", {"hostname": "test", "tick": True}, TICK)
    assert producer.flush(60) == 0


def rows(lake: Path, table: str) -> list[Any]:
    columns = '* EXCLUDE (partition, "offset")' if table == "silver" else "*"
    with Lake(lake).open() as connection:
        return list(connection.sql(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall())


@pytest.mark.slow
def test_jobs_continue_after_their_input_was_removed_and_merged(
    broker: Broker, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_plan, "FILES_MIN", 2)
    monkeypatch.setattr(retention_run, "NOTES_KEPT", 2)
    config = {"message.timestamp.type": "LogAppendTime"}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result()
    told = {
        name: pipeline_jobs.JobSettings(
            bootstrap=broker.bootstrap,
            lake=str(tmp_path / name),
            topic=TOPIC,
            messages_a_batch=15,
            batches_at_once=2,
        )
        for name in ("plain", "retained")
    }
    for start in (0, 200):
        send(broker, range(start, start + 60, 5))
        for settings in told.values():
            pipeline_jobs.drain(spark, settings)
        lake = tmp_path / "retained"
        assert consumers.consumed(lake, "silver") > 0
        assert consumers.consumed(lake, "gold_10s") > 0
        done = {
            each.table: each.plan
            for each in retention_run.retain(lake, {"silver": 30_000_000, "gold_10s": 30_000_000})
        }
        assert done["silver"].expired or done["silver"].merges
        assert done["bronze"].merges
    for table in ("bronze", "gold_1m", "findings", "alerts"):
        assert rows(tmp_path / "retained", table) == rows(tmp_path / "plain", table) != []
    kept, every = (set(rows(tmp_path / name, "silver")) for name in ("retained", "plain"))
    assert kept < every
