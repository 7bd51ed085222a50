"""Every compat client on every security protocol: it writes records, and reads them in a group.

Apache Kafka's tools manage ACLs, quotas, users and delegation tokens in the same ways.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import Jvm, tools
from tests.support.security.four_protocols import NAMED, WAYS, Site, broker_of

kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"
CONFIGS = "kafka.admin.ConfigCommand"
VALUES = [f"record {number}" for number in range(100)]
RECORDS = [value.encode() for value in VALUES]
PATIENCE_S = 60.0
PATIENCE_MS = str(round(PATIENCE_S * 1000))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with broker_of(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_confluent_kafka(site: Site, topic: str, way: str) -> None:
    given = site.librdkafka(way)
    producer = Producer({**given, "enable.idempotence": True})
    for record in RECORDS:
        producer.produce(topic, record)
    assert producer.flush(PATIENCE_S) == 0
    assert read(given, topic) == RECORDS


def read(given: dict[str, Any], topic: str) -> list[bytes]:
    consumer = Consumer({**given, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def look() -> bool:
        messages = consumer.consume(100, 0.1)
        found.extend(each.value() or b"" for each in messages if each.error() is None)
        return len(found) >= len(RECORDS)

    try:
        eventually(look, PATIENCE_S)
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("way", WAYS)
def test_kafka_python(site: Site, topic: str, way: str) -> None:
    given = site.python(way)
    producer = kafka.KafkaProducer(**given)
    for record in RECORDS:
        producer.send(topic, record)
    producer.flush(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **given)
    found = [next(consumer).value for _ in RECORDS]
    consumer.close()
    assert found == RECORDS


@pytest.mark.parametrize("way", WAYS)
def test_aiokafka(site: Site, topic: str, way: str) -> None:
    given = site.python(way)

    async def talk() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**given) as producer:
            for record in RECORDS:
                await producer.send_and_wait(topic, record)
        async with aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **given
        ) as consumer:
            return [(await consumer.getone()).value for _ in RECORDS]

    assert asyncio.run(asyncio.wait_for(talk(), PATIENCE_S)) == RECORDS


@pytest.mark.parametrize("way", WAYS)
def test_kcat(site: Site, topic: str, way: str, tmp_path: Path) -> None:
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("kcat is not installed (Debian package kcat)")
    base = [program, "-F", str(site.librdkafka_file(tmp_path, way)), "-t", topic]
    subprocess.run([*base, "-P"], input=b"\n".join(RECORDS), check=True, timeout=PATIENCE_S)
    shown = subprocess.run(
        [*base, "-C", "-o", "beginning", "-e", "-q"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert shown.stdout.splitlines() == RECORDS


# --- Java ---


@pytest.fixture(scope="module")
def jvm(site: Site, jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, site.address("PLAINTEXT")) as running:
        yield running


Tool = Callable[..., str]


@pytest.fixture
def tool(jvm: Jvm, site: Site, way: str, tmp_path: Path) -> Tool:
    """Run one of Kafka's tools in the way of this test; return its output."""
    there, config = jvm.at(site.address(way)), str(site.java_file(tmp_path, way))

    def run(name: str, *words: str, text: str = "", code: int = 0) -> str:
        done = there.run(name, "--command-config", config, *words, text=text)
        assert done.code == code, done.output
        return done.output

    return run


@pytest.mark.parametrize("way", WAYS)
def test_java_clients(tool: Tool, topic: str) -> None:
    """Those of the console: a producer, and a consumer in a group."""
    tool(f"{TOOLS}.TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    text = "".join(f"{value}\n" for value in VALUES)
    tool(f"{TOOLS}.ConsoleProducer", "--topic", topic, text=text)
    wanted = ("--max-messages", str(len(VALUES)), "--timeout-ms", PATIENCE_MS)
    group = ("--group", topic, "--from-beginning")
    shown = tool(f"{TOOLS}.consumer.ConsoleConsumer", "--topic", topic, *group, *wanted)
    assert [line for line in shown.splitlines() if line.startswith("record")] == VALUES
    groups = tool(f"{TOOLS}.consumer.group.ConsumerGroupCommand", "--list")
    assert topic in groups.split()


@pytest.mark.parametrize("way", WAYS)
def test_kafka_acls(tool: Tool, topic: str) -> None:
    acls = f"{TOOLS}.AclCommand"
    tool(acls, "--add", "--allow-principal", "User:grace", "--producer", "--topic", topic)
    shown = tool(acls, "--list", "--topic", topic)
    assert "principal=User:grace, host=*, operation=WRITE, permissionType=ALLOW" in shown
    tool(acls, "--remove", "--force", "--topic", topic)
    assert "grace" not in tool(acls, "--list", "--topic", topic)


@pytest.mark.parametrize("way", WAYS)
def test_kafka_configs_sets_quotas_of_users_clients_and_ips(tool: Tool, topic: str) -> None:
    quotas = {
        ("--entity-type", "users", "--entity-name", topic): "producer_byte_rate=1048576.0",
        ("--entity-type", "clients", "--entity-name", topic): "consumer_byte_rate=2097152.0",
        ("--entity-type", "ips", "--entity-name", "203.0.113.7"): "connection_creation_rate=5.0",
    }
    for which, quota in quotas.items():
        tool(CONFIGS, *which, "--alter", "--add-config", quota)
        assert quota in tool(CONFIGS, *which, "--describe")
        key = quota.partition("=")[0]
        tool(CONFIGS, *which, "--alter", "--delete-config", key)
        assert key not in tool(CONFIGS, *which, "--describe")


@pytest.mark.parametrize("way", WAYS)
def test_kafka_configs_manages_users(site: Site, tool: Tool, topic: str) -> None:
    """The user that it creates can log in with both mechanisms, and no more once it is deleted."""
    which = ("--entity-type", "users", "--entity-name", topic)
    for name, iterations in (("SCRAM-SHA-256", 8192), ("SCRAM-SHA-512", 4096)):
        credential = f"{name}=[iterations={iterations},password=the-password]"
        tool(CONFIGS, *which, "--alter", "--add-config", credential)
        assert f"{name}=iterations={iterations}" in tool(CONFIGS, *which, "--describe")
    user = site.librdkafka("SASL_SSL", user=topic, password="the-password")
    for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        client = AdminClient({**user, "sasl.mechanism": name})
        assert client.list_topics(timeout=PATIENCE_S).brokers
        tool(CONFIGS, *which, "--alter", "--delete-config", name)
    assert "SCRAM" not in tool(CONFIGS, *which, "--describe")
    refused: list[str] = []
    client = AdminClient({**user, "error_cb": lambda e: refused.append(e.str()), "log_level": 0})
    eventually(lambda: client.poll(0.1) is not None and bool(refused), PATIENCE_S)
    assert "Authentication failed" in refused[0]


@pytest.mark.parametrize("way", WAYS)
def test_kafka_delegation_tokens(tool: Tool, way: str) -> None:
    """Clients that have a name get tokens; others are told why not."""
    tokens, create = f"{TOOLS}.DelegationTokenCommand", ("--create", "--max-life-time-period", "-1")
    if way not in NAMED:
        shown = tool(tokens, *create, code=1)
        assert "Delegation Token requests are not allowed" in shown
        return
    owner = "User:alice" if way == "MUTUAL" else "User:admin"
    made = token_rows(tool(tokens, *create), owner)[-1]
    assert made in token_rows(tool(tokens, "--describe", "--owner-principal", owner), owner)
    tool(tokens, "--renew", "--renew-time-period", "-1", "--hmac", made[1])
    tool(tokens, "--expire", "--expiry-time-period", "-1", "--hmac", made[1])
    assert made not in token_rows(tool(tokens, "--describe", "--owner-principal", owner), owner)


def token_rows(text: str, owner: str) -> list[tuple[str, str]]:
    """Return the ids and HMACs in the table that the tool prints."""
    lines = [line.split() for line in text.splitlines()]
    return [(words[0], words[1]) for words in lines if owner in words[2:4]]
