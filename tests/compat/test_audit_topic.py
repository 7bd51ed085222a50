"""The audit topic with real brokers: confluent-kafka reads what clients were denied."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.model.security_settings import SecuritySettings
from barnabas.testing.cluster_processes import ClusterProcesses, Config
from barnabas.testing.waiting import eventually
from tests.support.security.certificates import Certificates, local_and_secure
from tests.support.security.sasl_broker import SaslBroker, properties

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

TOPIC = "audit"
PATIENCE_S = 60.0
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED
Settings = dict[str, Any]


class Reader:
    """Reads all lines of the topic, from its beginning."""

    def __init__(self, settings: Settings) -> None:
        self._consumer = Consumer({**settings, "group.id": "auditor", "log_level": 0})
        self.lines: list[dict[str, Any]] = []

    def __enter__(self) -> "Reader":
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def wait_for(self, resource: str) -> dict[str, Any]:
        """Return the line about a resource, once it is there."""
        found = eventually(lambda: self._find(resource), PATIENCE_S)
        assert found is not None
        return found

    def _find(self, resource: str) -> dict[str, Any] | None:
        message = self._consumer.poll(0.2)
        if message is not None and message.error() is None:
            self.lines.append(json.loads(message.value() or b""))
        return next((line for line in self.lines if line.get("resource") == resource), None)


def refused(settings: Settings, topic: str) -> int:
    """Produce one record; return the code of the refusal."""
    told: list[KafkaError | None] = []
    producer = Producer({**settings, "log_level": 0})
    producer.produce(topic, b"value", on_delivery=lambda error, _: told.append(error))
    producer.flush(PATIENCE_S)
    assert told
    assert told[0] is not None
    return int(told[0].code())


@pytest.fixture
def broker() -> Iterator[SaslBroker]:
    security = SecuritySettings(authorizer="acl", super_users=("User:admin",), audit_topic=TOPIC)
    with SaslBroker(security=security) as started:
        yield started


def test_one_broker_writes_what_it_denied(broker: SaslBroker) -> None:
    settings = properties(broker.bootstrap)
    admin = AdminClient(settings)

    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    eve = UserScramCredentialUpsertion("eve", info, b"the password of eve")
    admin.alter_user_scram_credentials([eve])["eve"].result(PATIENCE_S)
    of_eve = properties(broker.bootstrap, user="eve", password="the password of eve")
    assert refused(of_eve, "orders") == DENIED
    with Reader(settings) as reader:
        line = reader.wait_for("orders")
        assert (line["principal"], line["decision"]) == ("User:eve", "denied")
        assert refused(of_eve, TOPIC) == DENIED
        reader.wait_for(TOPIC)
        assert "the password of eve" not in json.dumps(reader.lines)
    described = admin.describe_configs([ConfigResource(ResourceType.TOPIC, TOPIC)])
    (configs,) = [future.result(PATIENCE_S) for future in described.values()]
    assert configs["retention.ms"].value == str(30 * 24 * 3600 * 1000)


def test_a_deleted_topic_comes_back(broker: SaslBroker) -> None:
    settings = properties(broker.bootstrap)
    admin = AdminClient(settings)

    def change(role: str) -> None:
        """Make a change that the broker writes about."""
        from confluent_kafka.admin import (
            ResourceType,
        )

        binding = AclBinding(
            ResourceType.TOPIC,
            role,
            ResourcePatternType.LITERAL,
            "User:eve",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        (made,) = admin.create_acls([binding]).values()
        made.result(PATIENCE_S)

    def has_topic() -> bool:
        return TOPIC in admin.list_topics(timeout=PATIENCE_S).topics

    change("first")
    eventually(has_topic, PATIENCE_S)
    admin.delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
    change("second")
    eventually(has_topic, PATIENCE_S)


class Cluster:
    """Three brokers; alice may do nothing, and clients without TLS may do everything."""

    def __init__(self, folder: Path) -> None:
        certificates = Certificates(folder / "certificates")
        files, alice = certificates.broker(), certificates.client("alice")
        config = folder / "barnabas.yaml"
        config.write_text(
            f"{local_and_secure(files, certificates.authority)}"
            f"security:\n  authorizer: acl\n  audit_topic: {TOPIC}\n"
            '  super_users: ["User:ANONYMOUS"]\n'
        )
        self.brokers = ClusterProcesses(folder / "nodes", config=Config(config, "LOCAL"))
        self._alice = {
            "security.protocol": "SSL",
            "ssl.ca.location": certificates.authority,
            "ssl.certificate.location": alice.certificate,
            "ssl.key.location": alice.key,
        }

    def alice_at(self, number: int) -> Settings:
        """Return the settings of alice at one broker."""
        return {"bootstrap.servers": self.brokers.nodes[number].listeners["SECURE"], **self._alice}

    def deny_at(self, reader: Reader, number: int, phase: str) -> None:
        """Have alice be denied until one broker has written a line about it.

        librdkafka asks any broker that it knows, so a few clients may be needed.
        """
        attempts = count()

        def has_line() -> bool:
            topic = f"{phase}-{number}-{next(attempts)}"
            assert refused(self.alice_at(number), topic) == DENIED
            return bool(reader.wait_for(topic)["broker"] == number)

        eventually(has_line, PATIENCE_S)


def test_lines_of_three_brokers_go_on_when_the_leader_is_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with cluster.brokers as brokers, Reader({"bootstrap.servers": brokers.bootstrap}) as reader:
        for number in (1, 2, 3):
            cluster.deny_at(reader, number, "before")
        leader = brokers.leader_of(TOPIC, 0)
        assert len(brokers.view((TOPIC,)).partitions[TOPIC, 0].replicas) == 3
        before = len(reader.lines)
        brokers.nodes[leader].kill()
        for number in sorted({1, 2, 3} - {leader}):
            cluster.deny_at(reader, number, "after")
        assert brokers.leader_of(TOPIC, 0) != leader
        seen = [line.get("resource", "") for line in reader.lines]
        assert all(each.startswith("before-") for each in seen[:before])
        assert not [each for each in seen if each == TOPIC], "writing to the topic made lines"
