"""Tests `barnabas exporter` as Prometheus and an operator use it, against a broker."""

import json
import os
import subprocess
import sys
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.testing.waiting import eventually
from tests.support.exporter_pages import PATIENCE_S, exporting, samples

pytestmark = pytest.mark.compat


def health(url: str) -> str:
    with urlopen(f"{url}/health", timeout=PATIENCE_S) as answer:
        return str(json.loads(answer.read())["verdict"])


def test_a_group_and_its_lag(bootstrap: str, admin: AdminClient, topic: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(10):
        producer.produce(topic, str(number), partition=1)
    assert producer.flush(PATIENCE_S) == 0
    request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 4)])]
    admin.alter_consumer_group_offsets(request, request_timeout=PATIENCE_S)[group].result()
    with exporting(bootstrap, "--cluster-name", "prod") as url:
        found = eventually(
            lambda: (page := samples(url)) and "kafka_brokers" in page and page, PATIENCE_S
        )
        assert health(url) == "ready"
    assert isinstance(found, dict)

    def of_group(name: str, label: str) -> list[Any]:
        return [each for each in found[name] if each.labels[label] == group]

    (lag,) = of_group("kafka_consumergroup_lag", "consumergroup")
    assert (lag.value, lag.labels["topic"], lag.labels["partition"]) == (6, topic, "1")
    (seconds,) = of_group("kafka_consumergroup_group_max_lag_seconds", "group")
    assert seconds.value > 0
    assert seconds.labels["cluster_name"] == "prod"
    (ends,) = [
        each
        for each in found["kafka_topic_partition_current_offset"]
        if each.labels == {"topic": topic, "partition": "1"}
    ]
    assert ends.value == 10
    assert found["barnabas_exporter_up"][0].value == 1


def test_probes(bootstrap: str) -> None:
    topic = f"probe-{uuid4().hex}"
    with exporting(bootstrap, "--probe-topic", topic) as url:
        found = eventually(
            lambda: samples(url).get("barnabas_end_to_end_seconds_count", []), PATIENCE_S
        )
        assert all(each.value >= 1 for each in found)
        assert {each.labels["leader"].isdecimal() for each in found} == {True}


def test_it_waits_for_brokers_and_says_so() -> None:
    with exporting("127.0.0.1:1") as url:
        assert samples(url)["barnabas_exporter_up"][0].value == 0
        assert "kafka_brokers" not in samples(url)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "nowhere"), b"--listen nowhere is not HOST:PORT"),
        (("--interval", "1"), b"--interval '1' is not a duration"),
        (("--interval", "10ms"), b"--interval 10ms is too short"),
    ],
)
def test_mistakes(words: tuple[str, ...], message: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "exporter", *words],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env=dict(os.environ),
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert b"Traceback" not in done.stderr
