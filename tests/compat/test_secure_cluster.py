"""Tests `barnabas cluster up --secure` with stock clients: TLS, SCRAM, ACLs, three processes.

Clients get nothing but what the command prints and writes.
"""

import asyncio
import shutil
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.test_cluster import Cluster, barnabas
from tests.support.loads.kafka_tools import tools

kafka = pytest.importorskip("kafka")

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
RECORDS = [f"record {number}".encode() for number in range(200)]
RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"
WAIT_S = 60.0
TLS_ALERT = b"\x15\x03"


class SecureCluster(Cluster):
    """A cluster with security, and commands that connect as its admin."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "--secure")
        self.client: dict[str, str] = self.said["client"]
        self.client_file = folder / "security" / "client.properties"

    def run(self, *words: str, stdin: bytes = b"", code: int = 0) -> bytes:
        return super().run(*words, "--client-config", str(self.client_file), stdin=stdin, code=code)

    def properties(self, **others: str) -> dict[str, Any]:
        """Return librdkafka's properties of the admin, or with other names and passwords."""
        changed = {name.replace("_", "."): value for name, value in others.items()}
        return {"bootstrap.servers": self.bootstrap, **self.client, **changed}

    def new_user(self, folder: Path, name: str) -> dict[str, Any]:
        """Create a user; return its properties."""
        password = folder / f"{name}.password"
        password.write_text(f"the password of {name}\n")
        self.run("user", "create", name, "--password-file", str(password))
        return self.properties(sasl_username=name, sasl_password=password.read_text().rstrip("\n"))

    @property
    def python(self) -> dict[str, Any]:
        """The arguments of kafka-python and aiokafka."""
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": self.client["sasl.mechanism"],
            "sasl_plain_username": self.client["sasl.username"],
            "sasl_plain_password": self.client["sasl.password"],
            "ssl_context": ssl.create_default_context(cafile=self.client["ssl.ca.location"]),
        }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    pytest.importorskip("cryptography", reason="needs pip install 'barnabas[cert]'")
    with SecureCluster(tmp_path_factory.mktemp("secure") / "cluster") as started:
        yield started


def send(properties: dict[str, Any], topic: str, records: list[bytes]) -> None:
    """Produce with confluent-kafka; raise the first error."""
    errors: list[KafkaError] = []
    producer = confluent_kafka.Producer({**properties, "delivery.timeout.ms": 30_000})
    for record in records:
        producer.produce(topic, record, on_delivery=lambda e, _: errors.append(e) if e else None)
    assert producer.flush(WAIT_S) == 0
    if errors:
        raise KafkaException(errors[0])


def read(properties: dict[str, Any], topic: str, count: int, group: str) -> list[bytes]:
    """Consume with confluent-kafka in a group; raise the first error."""
    consumer = confluent_kafka.Consumer(
        {**properties, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < count:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{len(found)} of {count} records"
            if message.error() is not None:
                raise KafkaException(message.error())
            found.append(message.value() or b"")
    finally:
        consumer.close()
    return sorted(found)


def create(cluster: SecureCluster, topic: str) -> None:
    admin = AdminClient(cluster.properties())
    for done in admin.create_topics([NewTopic(topic, 3, 3)]).values():
        done.result(WAIT_S)


def test_the_line_has_what_a_client_needs(cluster: SecureCluster) -> None:
    """Programs take the map `client` as it is."""
    assert set(cluster.said) == {"bootstrap", "brokers", "client"}
    places = [each["listen"] for each in cluster.said["brokers"]]
    assert cluster.bootstrap == ",".join(places)
    password, authority = cluster.client["sasl.password"], cluster.client["ssl.ca.location"]
    assert cluster.client == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": password,
        "ssl.ca.location": authority,
    }
    assert len(password) >= 24
    assert Path(authority).is_absolute()
    assert "BEGIN CERTIFICATE" in Path(authority).read_text()


def test_kafkas_tools_as_the_admin(cluster: SecureCluster, jars: str) -> None:
    """They take the file for Java's clients; it trusts the authority, and checks names."""
    config = ("--command-config", str(cluster.client_file.with_name("java.properties")))
    with tools(RUN_TOOLS, jars, cluster.bootstrap) as jvm:
        create_topic = ("--create", "--topic", "java", "--replication-factor", "3")
        made = jvm.run(f"{TOOLS}.TopicCommand", *config, *create_topic)
        assert made.code == 0, made.output
        text = "".join(f"{record.decode()}\n" for record in RECORDS)
        sent = jvm.run(f"{TOOLS}.ConsoleProducer", *config, "--topic", "java", text=text)
        assert sent.code == 0, sent.output
    assert read(cluster.properties(), "java", len(RECORDS), "java") == sorted(RECORDS)


def test_confluent_kafka_as_the_admin(cluster: SecureCluster) -> None:
    create(cluster, "confluent")
    send({**cluster.properties(), "enable.idempotence": True}, "confluent", RECORDS)
    assert read(cluster.properties(), "confluent", len(RECORDS), "confluent") == sorted(RECORDS)


def test_kafka_python_as_the_admin(cluster: SecureCluster) -> None:
    create(cluster, "kafka-python")
    producer = kafka.KafkaProducer(**cluster.python, acks="all")
    for record in RECORDS:
        producer.send("kafka-python", record)
    producer.flush(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kafka-python", **cluster.python, auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    found = sorted(next(consumer).value for _ in RECORDS)
    consumer.close()
    assert found == sorted(RECORDS)


def test_aiokafka_as_the_admin(cluster: SecureCluster) -> None:
    create(cluster, "aiokafka")

    async def talk() -> list[bytes]:
        async with AIOKafkaProducer(**cluster.python, acks="all") as producer:
            for record in RECORDS:
                await producer.send("aiokafka", record)
        async with AIOKafkaConsumer(
            "aiokafka", **cluster.python, auto_offset_reset="earliest"
        ) as consumer:
            return [(await asyncio.wait_for(consumer.getone(), WAIT_S)).value for _ in RECORDS]

    assert sorted(asyncio.run(talk())) == sorted(RECORDS)


def test_kcat_as_the_admin(cluster: SecureCluster) -> None:
    """Debian's kcat has a librdkafka whose SCRAM doubles the client's nonce."""
    program = shutil.which("kcat")
    if program is None:
        pytest.skip("kcat is not installed (Debian package kcat)")
    create(cluster, "kcat")
    base = [program, "-F", str(cluster.client_file), "-b", cluster.bootstrap, "-t", "kcat"]
    subprocess.run([*base, "-P"], input=b"\n".join(RECORDS), check=True, timeout=WAIT_S)
    shown = subprocess.run(
        [*base, "-C", "-e", "-q"], capture_output=True, check=True, timeout=WAIT_S
    )
    assert sorted(shown.stdout.splitlines()) == sorted(RECORDS)


def test_the_command_line_as_the_admin(cluster: SecureCluster) -> None:
    cluster.run("topic", "create", "typed", "--partitions", "2")
    assert cluster.send("typed", 10) == cluster.read("typed")
    assert b"healthy" in cluster.run("cluster", "status")


def test_a_user_may_do_what_an_acl_allows(cluster: SecureCluster, tmp_path: Path) -> None:
    create(cluster, "orders")
    alice = cluster.new_user(tmp_path, "alice")
    with pytest.raises(KafkaException) as denied:
        send(alice, "orders", [b"denied"])
    assert denied.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    cluster.run("acl", "add", "User:alice", "write,describe", "topic:orders")
    send(alice, "orders", RECORDS)
    with pytest.raises(KafkaException) as denied:
        read(alice, "orders", 1, "alice-group")
    assert denied.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    cluster.run("acl", "add", "User:alice", "read", "group:alice-", "--prefix")
    cluster.run("acl", "add", "User:alice", "read", "topic:orders")
    assert read(alice, "orders", len(RECORDS), "alice-group") == sorted(RECORDS)
    shown = cluster.run("acl", "why", "User:alice", "delete", "topic:orders")
    assert b"no ACL allows it" in shown


def test_a_user_with_another_password_is_refused(cluster: SecureCluster) -> None:
    admin = AdminClient(cluster.properties(sasl_password="wrong"))
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5.0)
    logs = "".join(log.read_text() for log in cluster.folder.glob("*.log"))
    assert "no such user, or another password" in logs
    assert "wrong" not in logs


def test_there_is_no_plaintext_listener(cluster: SecureCluster) -> None:
    for each in cluster.said["brokers"]:
        host, port = each["listen"].split(":")
        with socket.create_connection((host, int(port)), WAIT_S) as plain:
            plain.sendall(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
            try:
                answer = plain.recv(100)
            except ConnectionResetError:
                answer = b""
        assert answer == b"" or answer.startswith(TLS_ALERT)
    refused = barnabas("topic", "list", "--bootstrap", cluster.bootstrap, code=1)
    assert refused == b""


def test_secrets_are_private(cluster: SecureCluster) -> None:
    folder = cluster.client_file.parent
    secret = [*folder.glob("*.key"), *folder.glob("*.properties"), folder / "admin.password"]
    assert len(secret) == 7
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}
    password = cluster.client["sasl.password"]
    assert not [log for log in cluster.folder.glob("*.log") if password in log.read_text()]


def test_a_second_start_is_secure_with_the_same_password(cluster: SecureCluster) -> None:
    create(cluster, "kept")
    send(cluster.properties(), "kept", RECORDS)
    before = cluster.client
    assert cluster.stop()[0] == 0
    Cluster.__init__(cluster, cluster.folder)  # without --secure: the directory says so
    assert cluster.said["client"] == before
    assert read(cluster.properties(), "kept", len(RECORDS), "kept") == sorted(RECORDS)
