"""Tests a watcher that logs in, as an admin and as a user with few rights."""

from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.admin.health import Verdict
from barnabas.model.security_settings import SecuritySettings
from barnabas.monitor.states import ClusterState
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.waiting import eventually
from barnabas.wire.wire_failures import LinkError
from tests.support.security.sasl_broker import SaslBroker, properties

pytestmark = pytest.mark.compat

PATIENCE_S = 60.0
USER, PASSWORD = "watcher", "a password"
SCRAM = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    security = SecuritySettings(authorizer="acl", super_users=("User:admin",))
    with SaslBroker(security=security) as running:
        admin = AdminClient(properties(running.bootstrap))
        topics = [NewTopic(name, 2, 1) for name in ("orders", "secrets")]
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE_S)
        fill(admin, running.bootstrap)
        for changed in admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(USER, SCRAM, PASSWORD.encode())]
        ).values():
            changed.result(PATIENCE_S)
        for allowed in admin.create_acls(
            [describe(ResourceType.TOPIC, "orders"), describe(ResourceType.GROUP, "billing")]
        ).values():
            allowed.result(PATIENCE_S)
        yield running


def fill(admin: AdminClient, bootstrap: str) -> None:
    producer = Producer(properties(bootstrap))
    producer.produce("orders", b"v", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    for group in ("billing", "hidden"):
        request = [ConsumerGroupTopicPartitions(group, [TopicPartition("orders", 0, 0)])]
        admin.alter_consumer_group_offsets(request, request_timeout=60)[group].result()


def describe(kind: ResourceType, name: str) -> AclBinding:
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    principal, operation = f"User:{USER}", AclOperation.DESCRIBE
    return AclBinding(kind, name, literal, principal, "*", operation, allow)


def seen_by(broker: SaslBroker, **login: str) -> ClusterState:
    """Return what a user sees, once that includes the group."""
    settings = WatchSettings(properties=properties(broker.bootstrap, **login), interval_s=0.2)
    with Watcher(settings) as watcher:
        state = eventually(
            lambda: (found := watcher.state) and "billing" in found.groups and found, PATIENCE_S
        )
    assert isinstance(state, ClusterState)
    return state


def test_an_admin_sees_everything(broker: SaslBroker) -> None:
    state = seen_by(broker)
    assert state.health.verdict is Verdict.HEALTHY
    assert {"orders", "secrets"} <= state.topics.keys()
    assert {"billing", "hidden"} <= state.groups.keys()
    assert state.groups["billing"].lag_s is not None
    assert list(state.disks) == [1]
    assert state.troubles == ()


def test_a_user_with_few_rights_sees_what_it_may_and_is_told_the_rest(broker: SaslBroker) -> None:
    state = seen_by(broker, user=USER, password=PASSWORD)
    assert state.topics.keys() == {"orders"}
    assert state.groups.keys() == {"billing"}
    assert state.groups["billing"].lag == 1
    assert state.topics["orders"].size_bytes is None
    assert not any("no controller" in each for each in state.health.reasons)
    assert any("CLUSTER_AUTHORIZATION_FAILED" in each for each in state.troubles)


def test_a_wrong_password_is_said_and_not_shown(broker: SaslBroker) -> None:
    given = properties(broker.bootstrap, password="wrong-password")
    settings = WatchSettings(properties=given, interval_s=600)
    with Watcher(settings) as watcher, pytest.raises(LinkError) as refused:
        watcher.wait(PATIENCE_S)
    assert "admin" in str(refused.value)
    assert "wrong-password" not in str(refused.value)
