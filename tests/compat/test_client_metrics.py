"""Tests that real clients push their metrics, and that Kafka's tool makes subscriptions."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

from barnabas.client import Consumer, Message, TopicPartition, UnknownTopicError
from barnabas.handlers.admin.config_resources import CLIENT_METRICS
from barnabas.metadata.client_metrics_config import TOPIC
from barnabas.monitor.client_metrics import ClientMetricsTable
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Wire
from tests.support.exporter_pages import exporting, samples
from tests.support.loads.kafka_tools import Done, tools

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"

INTERVAL_MS = 200
PATIENCE_S = 60.0
JAVA_RECORDS = 600
"""Half a minute of a producer that sends 20 a second."""
JAVA_SERIES = {
    "till": (
        "kafka_client_producer_record_queue_time_max",
        "kafka_client_producer_node_request_latency_max",
        "kafka_client_producer_produce_throttle_time_max",
        "kafka_client_producer_buffer_available_bytes",
    ),
    "desk": (
        "kafka_client_consumer_fetch_manager_fetch_latency_max",
        "kafka_client_consumer_coordinator_rebalance_latency_max",
        "kafka_client_consumer_poll_idle_ratio_avg",
    ),
}
"""By client id: what the dashboard Clients shows of clients, and a producer's free buffers."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Override the module's broker with one that takes metrics."""
    with Broker(settings={"observability.client_metrics": True}) as started:
        yield started


def subscribe(bootstrap: str) -> None:
    configs = [
        AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("metrics", "*"), ("interval.ms", str(INTERVAL_MS)))
    ]
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name="all", configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with Wire({"bootstrap.servers": bootstrap}) as wire:
        (answer,) = wire.ask_any(request, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0


def partitions(consumer: Consumer) -> list[TopicPartition]:
    """Return the partitions of the topic, which the first push creates."""
    try:
        return consumer.partitions(TOPIC)
    except UnknownTopicError:
        return []


def pushes(bootstrap: str) -> Iterator[Message]:
    with Consumer(bootstrap, settings={"enable.metrics.push": False}) as consumer:
        consumer.assign(eventually(lambda: partitions(consumer), PATIENCE_S), "beginning")
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "no client has pushed"
            yield message


def test_a_producer_pushes_metrics_that_become_series(broker: Broker) -> None:
    subscribe(broker.bootstrap)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "client.id": "shop", "enable.metrics.push": True}
    )
    producer.produce("orders", b"hello")
    producer.flush(PATIENCE_S)
    table = ClientMetricsTable()
    for message in pushes(broker.bootstrap):
        assert message.key is not None
        facts = json.loads(message.key)
        assert facts["client_id"] == "shop"
        assert facts["client_software_name"]
        table.apply(message.key, message.value, 0.0)
        assert table.refused == 0
        if series := table.series():
            break
    assert {each.client_id for each in series} == {"shop"}
    assert all(each.name.startswith("kafka_client_producer_") for each in series)


def test_kafkas_tool_makes_subscriptions_and_java_clients_push(broker: Broker, jars: str) -> None:
    with tools(RUN_TOOLS, jars, broker.bootstrap) as jvm:
        command = f"{TOOLS}.ClientMetricsCommand"
        altered = jvm.run(
            *(command, "--alter", "--name", "java", "--metrics", "org.apache.kafka."),
            *("--interval", str(INTERVAL_MS), "--match", "client_software_name=apache-kafka-java"),
        )
        assert altered.code == 0, altered.output
        assert jvm.run(command, "--list") == Done(0, "java\n")
        described = jvm.run(command, "--describe", "--name", "java").output
        for line in ("interval.ms=200", "metrics=org.apache.kafka.", "match=client_software_name="):
            assert line in described
        for _ in range(2):  # the topic may not exist yet when the first one ends
            jvm.run(
                f"{TOOLS}.ConsoleProducer",
                *("--topic", "orders", "--command-property", "client.id=till"),
                text="hello\n" * 10,
            )
        facts = next(
            found
            for message in pushes(broker.bootstrap)
            if (found := json.loads(message.key or b""))["client_id"] == "till"
        )
        assert facts["client_software_name"] == "apache-kafka-java"
        deleted = jvm.run(command, "--delete", "--name", "java")
        assert deleted.code == 0, deleted.output
        assert jvm.run(command, "--list").output.strip() == ""


@pytest.mark.slow
def test_metrics_of_java_clients_become_series_of_the_exporter(broker: Broker, jars: str) -> None:
    """The series of the dashboard Clients, while a producer and a consumer of Java run."""
    subscribe(broker.bootstrap)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "enable.metrics.push": False}
    )
    with (
        exporting(broker.bootstrap) as url,
        tools(RUN_TOOLS, jars, broker.bootstrap) as reading,
        tools(RUN_TOOLS, jars, broker.bootstrap) as writing,
        ThreadPoolExecutor(2) as pool,
    ):

        def clients(name: str) -> set[str]:
            return {each.labels["client_id"] for each in samples(url).get(name, [])}

        def are_shown(client_id: str) -> bool:
            return all(clients(name) == {client_id} for name in JAVA_SERIES[client_id])

        reader = pool.submit(
            reading.run,
            f"{TOOLS}.consumer.ConsoleConsumer",
            *("--topic", "orders", "--from-beginning", "--max-messages", str(JAVA_RECORDS + 1)),
            *("--command-property", "client.id=desk"),
        )
        writer = pool.submit(
            writing.run,
            f"{TOOLS}.ProducerPerformance",
            *("--topic", "orders", "--num-records", str(JAVA_RECORDS), "--throughput", "20"),
            *("--record-size", "10", "--command-property", "client.id=till"),
        )
        for client_id in JAVA_SERIES:
            eventually(partial(are_shown, client_id), PATIENCE_S)
        assert writer.result(PATIENCE_S).code == 0
        producer.produce("orders", b"the last one")
        producer.flush(PATIENCE_S)
        assert reader.result(PATIENCE_S).code == 0
        eventually(lambda: not clients(JAVA_SERIES["desk"][0]), PATIENCE_S)
