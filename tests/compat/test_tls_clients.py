"""Real clients over TLS and with certificates: they produce, and consume in a group."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.broker import Broker
from barnabas.testing.cluster_processes import ClusterProcesses, Config
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from tests.support.security.certificates import (
    Certificates,
    Files,
    local_and_secure,
    secure,
)
from tests.support.security.tls_clients import trusting

kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")

pytestmark = pytest.mark.compat

LISTENERS = ("SECURE", "MUTUAL")
PATIENCE_S = 30
SIZES = (0, 1, 100, 16_384, 1_000_000)
RECORDS = [bytes([number % 251]) * SIZES[number % len(SIZES)] for number in range(60)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def alice(certificates: Certificates) -> Files:
    return certificates.client("alice")


@pytest.fixture(scope="module")
def broker(certificates: Certificates) -> Iterator[Broker]:
    files = certificates.broker()
    settings: dict[str, object] = {
        **secure(certificates, files),
        **secure(certificates, files, name="MUTUAL", clients="required"),
        "groups.initial_rebalance_delay": "0s",
        "performance.max_message_size": "2MB",
    }
    with Broker(settings=settings) as running:
        yield running


def address(broker: Broker, listener: str) -> str:
    host, port = broker.listeners[listener]
    return f"{host}:{port}"


def librdkafka(bootstrap: str, certificates: Certificates, files: Files | None) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": certificates.authority,
    }
    if files is not None:
        settings["ssl.certificate.location"] = files.certificate
        settings["ssl.key.location"] = files.key
    return settings


def produce(settings: dict[str, Any], topic: str, records: list[bytes]) -> None:
    producer = Producer({**settings, "message.max.bytes": 2_000_000, "linger.ms": 5})
    for record in records:
        producer.produce(topic, record)
    assert producer.flush(PATIENCE_S) == 0


def consume(settings: dict[str, Any], topic: str, count: int, group: str = "group") -> list[bytes]:
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def look() -> bool:
        messages = consumer.consume(100, 0.1)
        found.extend(each.value() or b"" for each in messages if each.error() is None)
        return len(found) >= count

    try:
        eventually(look, PATIENCE_S)
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("listener", LISTENERS)
def test_confluent_kafka(
    broker: Broker, certificates: Certificates, alice: Files, listener: str
) -> None:
    files = alice if listener == "MUTUAL" else None
    settings = librdkafka(address(broker, listener), certificates, files)
    topic = f"confluent-{listener}"
    produce(settings, topic, RECORDS)
    assert consume(settings, topic, len(RECORDS), topic) == RECORDS


@pytest.mark.parametrize("listener", LISTENERS)
def test_kafka_python(
    broker: Broker, certificates: Certificates, alice: Files, listener: str
) -> None:
    files = alice if listener == "MUTUAL" else None
    topic = f"python-{listener}"
    settings: dict[str, Any] = {
        "bootstrap_servers": address(broker, listener),
        "security_protocol": "SSL",
        "ssl_context": trusting(certificates, files),
    }
    producer = kafka.KafkaProducer(max_request_size=2_000_000, **settings)
    for record in RECORDS:
        producer.send(topic, record)
    producer.flush(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings)
    found = [next(consumer).value for _ in RECORDS]
    consumer.close()
    assert found == RECORDS


@pytest.mark.parametrize("listener", LISTENERS)
def test_aiokafka(broker: Broker, certificates: Certificates, alice: Files, listener: str) -> None:
    files = alice if listener == "MUTUAL" else None
    topic = f"aio-{listener}"
    settings: dict[str, Any] = {
        "bootstrap_servers": address(broker, listener),
        "security_protocol": "SSL",
        "ssl_context": trusting(certificates, files),
    }

    async def talk() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(max_request_size=2_000_000, **settings)
        await producer.start()
        for record in RECORDS:
            await producer.send_and_wait(topic, record)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **settings
        )
        await consumer.start()
        found = [(await consumer.getone()).value for _ in RECORDS]
        await consumer.stop()
        return found

    assert asyncio.run(asyncio.wait_for(talk(), PATIENCE_S)) == RECORDS


def test_a_client_without_a_certificate_gets_nothing(
    broker: Broker, certificates: Certificates
) -> None:
    settings = librdkafka(address(broker, "MUTUAL"), certificates, None)
    with pytest.raises(KafkaException, match="transport failure"):
        Producer(settings).list_topics(timeout=2)


def test_certificates_are_reloaded_under_load(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    files = certificates.broker()
    config = tmp_path / "barnabas.yaml"
    config.write_text(f"{local_and_secure(files)}security:\n  certificate_check_interval: 50ms\n")
    broker = BrokerSubprocess(
        tmp_path / "data", arguments=("--config", str(config)), listener="LOCAL"
    )
    with broker:
        settings = librdkafka(broker.listeners["SECURE"], certificates, None)
        stop, sent = Event(), [0]

        def load() -> None:
            while not stop.is_set():
                produce(settings, "load", [b"x" * 1000] * 100)  # a new connection each time
                sent[0] += 100

        thread = Thread(target=load)
        thread.start()
        try:
            for number in range(3):
                certificates.broker()  # the certificate and the key, one after the other
                broker.wait_for_log("loaded a certificate", number + 1)
        finally:
            stop.set()
            thread.join()
        assert len(consume(settings, "load", sent[0])) == sent[0]


def test_three_brokers_that_verify_each_other(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    alice = certificates.client("alice")
    environments = {}
    for number in (1, 2, 3):
        files = certificates.broker(f"broker-{number}")
        environments[number] = {
            "BARNABAS_CLUSTER_TLS_CERTIFICATE": files.certificate,
            "BARNABAS_CLUSTER_TLS_KEY": files.key,
            "BARNABAS_CLUSTER_TLS_AUTHORITIES": certificates.authority,
        }
    config = tmp_path / "barnabas.yaml"
    config.write_text(local_and_secure(files, certificates.authority))
    cluster = ClusterProcesses(
        tmp_path / "nodes", environments=environments, config=Config(config, "LOCAL")
    )
    with cluster:
        bootstrap = ",".join(node.listeners["SECURE"] for node in cluster.nodes.values())
        settings = librdkafka(bootstrap, certificates, alice)
        admin = AdminClient(settings)
        (made,) = admin.create_topics([NewTopic("load", 6, 3)]).values()
        made.result(PATIENCE_S)
        produce(settings, "load", RECORDS)
        known = admin.list_topics(timeout=PATIENCE_S).brokers.values()
        assert {f"{each.host}:{each.port}" for each in known} == set(bootstrap.split(","))
        leader = cluster.controller()
        cluster.nodes[leader].kill()
        cluster.wait_replaced(leader)
        produce(settings, "load", RECORDS)
        assert len(consume(settings, "load", 2 * len(RECORDS))) == 2 * len(RECORDS)
