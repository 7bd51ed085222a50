"""ACLs with stock clients over real sockets: confluent-kafka's AdminClient, producer, consumer.

Each connection's principal is the client id that its first request names: a listener of the tests
authenticates so, without SASL.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from barnabas.model.callers import Principal
from barnabas.protocol.headers import parse_request_header
from barnabas.server.kafka_session import KafkaSession
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import Jvm, tools

pytestmark = pytest.mark.compat

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"

PATIENCE_S = 20
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Path]]:
    """A broker with an authorizer, and its audit log."""
    audit = tmp_path_factory.mktemp("audit") / "audit.log"
    settings = {
        "security.authorizer": "acl",
        "security.super_users": ["User:admin", "User:barnabas-cli"],
        "security.audit_file": str(audit),
        "groups.initial_rebalance_delay": "0s",
    }
    handle = KafkaSession.handle

    def authenticated(session: KafkaSession, frame: memoryview) -> None:
        if session.caller.principal.name == "ANONYMOUS":
            name = parse_request_header(frame).client_id or "nobody"
            name = "admin" if name.startswith("adminclient") else name  # Kafka's tools
            session.authenticate(Principal("User", name))
        handle(session, frame)

    patch = pytest.MonkeyPatch()
    patch.setattr(KafkaSession, "handle", authenticated)
    with Broker(settings=settings) as broker:
        yield broker, audit
    patch.undo()


@pytest.fixture
def bootstrap(secured: tuple[Broker, Path]) -> str:
    return secured[0].bootstrap


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return admin_of(bootstrap, "admin")


def admin_of(bootstrap: str, name: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "client.id": name})


def binding(topic: str, name: str, operation: AclOperation, **fields: Any) -> AclBinding:
    facts = {
        "restype": ResourceType.TOPIC,
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "host": "*",
        "permission_type": AclPermissionType.ALLOW,
        **fields,
    }
    return AclBinding(
        facts["restype"],
        topic,
        facts["resource_pattern_type"],
        f"User:{name}",
        facts["host"],
        operation,
        facts["permission_type"],
    )


def allow(admin: AdminClient, *bindings: AclBinding) -> None:
    for future in admin.create_acls(list(bindings)).values():
        future.result(PATIENCE_S)


def make(admin: AdminClient, topic: str) -> None:
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(PATIENCE_S)


def produce(bootstrap: str, name: str, topic: str) -> KafkaError | None:
    """Produce one record; return why it was refused."""
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0})
    producer.produce(topic, b"value", on_delivery=lambda error, _: told.append(error))
    producer.flush(PATIENCE_S)
    return told[0]


def consume(bootstrap: str, name: str, topic: str, group: str) -> Message:
    """Return the first record, or the first error."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline_s:
            message = consumer.poll(1)
            if message is not None:
                return message
        raise AssertionError("nothing was consumed")
    finally:
        consumer.close()


def test_acls_are_created_described_and_deleted(admin: AdminClient) -> None:
    made = binding("described", "carol", AclOperation.READ)
    allow(admin, made, binding("described", "carol", AclOperation.WRITE))
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        "described",
        ResourcePatternType.ANY,
        "User:carol",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert len(admin.describe_acls(wanted).result(PATIENCE_S)) == 2
    (deleted,) = admin.delete_acls([wanted]).values()
    assert made in deleted.result(PATIENCE_S)
    assert admin.describe_acls(wanted).result(PATIENCE_S) == []


def test_only_who_may_alter_the_cluster_creates_acls(bootstrap: str) -> None:
    mine = binding("mine", "mallory", AclOperation.ALL)
    mallory = admin_of(bootstrap, "mallory")
    (future,) = mallory.create_acls([mine]).values()
    with pytest.raises(KafkaException) as refused:
        future.result(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_producing_is_denied_and_allowed(bootstrap: str, admin: AdminClient) -> None:
    make(admin, "produced")
    denied = produce(bootstrap, "alice", "produced")
    assert denied is not None
    assert denied.code() == DENIED
    allow(admin, binding("produced", "alice", AclOperation.WRITE))
    assert produce(bootstrap, "alice", "produced") is None
    assert produce(bootstrap, "bob", "produced") is not None


def test_consuming_needs_the_topic_and_the_group(bootstrap: str, admin: AdminClient) -> None:
    make(admin, "consumed")
    assert produce(bootstrap, "admin", "consumed") is None
    read = binding("consumed", "alice", AclOperation.READ)
    allow(admin, read)
    error = consume(bootstrap, "alice", "consumed", "readers").error()
    assert error is not None
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    group = {"restype": ResourceType.GROUP, "resource_pattern_type": ResourcePatternType.PREFIXED}
    allow(admin, binding("read", "alice", AclOperation.READ, **group))
    message = consume(bootstrap, "alice", "consumed", "readers")
    assert message.error() is None
    assert message.value() == b"value"
    deny = binding("consumed", "alice", AclOperation.READ, permission_type=AclPermissionType.DENY)
    allow(admin, deny)
    refused = consume(bootstrap, "alice", "consumed", "readers-2").error()
    assert refused is not None
    assert refused.code() == DENIED


def test_a_list_of_topics_has_those_that_may_be_described(
    bootstrap: str, admin: AdminClient
) -> None:
    for topic in ("visible", "invisible"):
        make(admin, topic)
    allow(admin, binding("visible", "dora", AclOperation.DESCRIBE))
    dora = admin_of(bootstrap, "dora")
    topics = dora.list_topics(timeout=PATIENCE_S).topics
    assert "visible" in topics
    assert "invisible" not in topics


def test_denials_are_in_the_audit_log(bootstrap: str, secured: tuple[Broker, Path]) -> None:
    produce(bootstrap, "eve", "produced")

    def principals() -> set[str]:
        lines = secured[1].read_text().splitlines() if secured[1].exists() else []
        return {json.loads(line).get("principal") for line in lines}

    eventually(lambda: "User:eve" in principals())


# --- Apache Kafka's tool ---


@pytest.fixture(scope="module")
def jvm(secured: tuple[Broker, Path], jars: str) -> Iterator[Jvm]:
    with tools(RUN_TOOLS, jars, secured[0].bootstrap) as running:
        yield running


def test_kafka_acls(jvm: Jvm) -> None:
    tool = "org.apache.kafka.tools.AclCommand"
    who = ("--allow-principal", "User:grace", "--producer", "--topic", "tooled")
    added = jvm.run(tool, "--add", *who, "--transactional-id", "tooled-id")
    assert "Adding ACLs for resource" in added.output, added.output
    listed = jvm.run(tool, "--list", "--topic", "tooled").output
    assert "principal=User:grace, host=*, operation=WRITE, permissionType=ALLOW" in listed
    prefix = ("--deny-principal", "User:*", "--deny-host", "10.0.0.9", "--operation", "Read")
    name = ("--topic", "tool", "--resource-pattern-type")
    jvm.run(tool, "--add", *prefix, *name, "prefixed")
    matching = jvm.run(tool, "--list", "--topic", "tooled", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in matching.output
    jvm.run(tool, "--remove", "--force", *name[:2], *name[2:], "prefixed")
    jvm.run(tool, "--remove", "--force", "--topic", "tooled")
    gone = jvm.run(tool, "--list", "--topic", "tooled", "--resource-pattern-type", "match")
    assert "grace" not in gone.output
    assert "PREFIXED" not in gone.output


# --- the command line ---


def run(bootstrap: str, *words: str, code: int = 0) -> Any:
    """Run a command; return what it printed as JSON."""
    command = [sys.executable, "-m", "barnabas.cli", *words, "--json", "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_the_command_line(bootstrap: str) -> None:
    allowed = run(bootstrap, "acl", "add", "Role:auditors", "read", "topic:ledger", "--prefix")
    assert allowed["added"][0]["pattern"] == "prefix"
    question = ("User:frank", "read", "topic:ledger-2026")
    assert run(bootstrap, "acl", "test", *question, code=1)["allowed"] is False
    run(bootstrap, "role", "add", "auditors", "User:frank", "--dry-run")
    assert run(bootstrap, "role", "list") == {}
    run(bootstrap, "role", "add", "auditors", "User:frank")
    assert run(bootstrap, "role", "list") == {"auditors": ["User:frank"]}
    assert run(bootstrap, "acl", "test", *question)["allowed"] is True
    why = run(bootstrap, "acl", "why", *question)
    assert why["acl"]["principal"] == "Role:auditors"
    who = run(bootstrap, "acl", "who", "read", "topic:ledger-2026")
    assert {line["principal"] for line in who} == {
        "User:admin",
        "User:barnabas-cli",
        "User:frank",
    }
    listed = run(bootstrap, "acl", "list", "--resource", "topic:ledger-2026", "--match")
    assert [acl["principal"] for acl in listed] == ["Role:auditors"]
    gone = run(bootstrap, "acl", "remove", "--principal", "Role:auditors", "--yes")
    assert len(gone["removed"]) == 1
    assert run(bootstrap, "role", "remove", "auditors")["removed"] == ["User:frank"]
    assert run(bootstrap, "role", "list") == {}
