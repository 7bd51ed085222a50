"""Tests a split card and a card with a wrong clock, from the topic to findings and report."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.lake.lake_reading import Lake
from barnabas.telemetry.report.gathering import gather
from barnabas.telemetry.report.report_model import Wish
from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(280)
TOPIC = "cards"
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=10)
SECONDS = 200


def message(gpu: str, second: float, labels: dict[str, str], **metrics: float) -> bytes:
    named = {f"DCGM_FI_{name}": value for name, value in metrics.items()}
    document = {
        "timestamp": (START + timedelta(seconds=second)).isoformat(),
        "gpu_id": gpu,
        "hostname": f"host-of-{gpu}",
        "model": "NVIDIA H100",
        "labels": labels,
        "metrics": named,
    }
    return json.dumps(document).encode()


def split_card(second: int) -> list[bytes]:
    """Return seven instances of a card of 300 W, the first of which works."""
    return [
        message(
            "GPU-split",
            second,
            {"GPU_I_ID": str(7 + number), "GPU_I_PROFILE": "1g.10gb", "pod": f"pod-{number}"},
            DEV_POWER_USAGE=300,
            PROF_GR_ENGINE_ACTIVE=0.9 if number == 0 else 0,
            DEV_ROW_REMAP_FAILURE=0,
        )
        for number in range(7)
    ]


def send(broker: Broker, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(TOPIC, value, b"one partition")
    assert producer.flush(60) == 0


def table(lake: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((lake / name).glob("*.parquet"))
    rows: list[dict[str, Any]] = pa.concat_tables([pq.read_table(f) for f in files]).to_pylist()
    return rows


@pytest.fixture(scope="module")
def lake(broker: Broker, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake after some minutes of both cards."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = NewTopic(TOPIC, 1, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin.create_topics([wanted])[TOPIC].result()
    values: list[bytes] = []
    for second in range(0, SECONDS, 10):
        values += split_card(second)
        values.append(message("GPU-behind", second - 70, {}, DEV_POWER_USAGE=100))
    tick = {"timestamp": (START + timedelta(seconds=SECONDS + 130)).isoformat(), "tick": True}
    send(broker, [*values, json.dumps(tick).encode()])
    folder = tmp_path_factory.mktemp("cards")
    pipeline_jobs.drain(
        spark, pipeline_jobs.JobSettings(bootstrap=broker.bootstrap, lake=str(folder), topic=TOPIC)
    )
    return folder


def test_a_split_card_counts_once(lake: Path) -> None:
    gold = table(lake, "gold_10s")
    cards = [row for row in gold if row["level"] == "gpu"]
    assert {row["gpu_id"] for row in cards} == {"GPU-split"}
    joules = sum(row["energy_joules"] for row in cards)
    assert joules == pytest.approx(300 * sum(row["covered_seconds"] for row in cards))
    assert 300 * SECONDS <= joules <= 300 * (SECONDS + 20)
    assert {row["instance"] for row in gold if row["level"] == "instance"} == {
        str(7 + number) for number in range(7)
    }
    silver = table(lake, "silver")
    assert len(silver) == 7 * SECONDS // 10
    assert {tuple(row["other"]) for row in silver} == {(("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0.0),)}


def test_its_idle_instances_are_found_and_the_card_is_not_idle(lake: Path) -> None:
    found = [row for row in table(lake, "findings") if row["gpu_id"] == "GPU-split"]
    assert {row["finding"] for row in found} == {"idle_instances"}
    assert found[0]["value"] == 6
    assert found[0]["detail"].startswith("6 of 7 MIG instances idle: 10 (1g.10gb), 11 (1g.10gb)")


def test_a_clock_that_is_behind_is_a_finding_and_an_alert(lake: Path) -> None:
    found = [row for row in table(lake, "findings") if row["gpu_id"] == "GPU-behind"]
    assert {row["finding"] for row in found} == {"clock_skew"}
    assert {row["value"] for row in found} == {-70.0}
    raised = [row for row in table(lake, "alerts") if row["finding"] == "clock_skew"]
    assert [row["state"] for row in raised] == ["raised"]
    assert "its clock is 70 s behind the broker's" in raised[0]["message"]


def test_the_report_names_both(lake: Path) -> None:
    report = gather(Lake(lake), Wish())
    assert [each.pod for each in report.instances] == [f"pod-{number}" for number in range(7)]
    assert [each.idle_share for each in report.instances] == [0, 1, 1, 1, 1, 1, 1]
    assert report.fleet.gpu_hours == pytest.approx(SECONDS / 3600, rel=0.1)
    assert any("host-of-GPU-behind (-70 s)" in each.text for each in report.advice)
