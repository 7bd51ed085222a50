"""What a caller may do, by example; `tests/property/test_authorizer.py` compares with a model."""

import pytest

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded, AclRemoved, RoleChanged
from barnabas.model.callers import CLIENT_LISTENER, ITSELF, Caller, Principal
from barnabas.model.permissions import Operation, PatternType, PermissionType, ResourceType, right
from barnabas.model.security_settings import SecuritySettings
from barnabas.security.authorizer import Authorizer, Why

READ = right(Operation.READ, ResourceType.TOPIC)
WRITE = right(Operation.WRITE, ResourceType.TOPIC)
DESCRIBE = right(Operation.DESCRIBE, ResourceType.TOPIC)


class Rights:
    """An authorizer, and the image with its ACLs."""

    def __init__(self, **settings: object) -> None:
        self.authorizer = Authorizer(SecuritySettings(**settings))  # type: ignore[arg-type]
        self.image = SecurityImage()

    def add(
        self,
        operation: Operation = Operation.READ,
        name: str = "orders",
        *,
        principal: str = "User:alice",
        host: str = "*",
        prefixed: bool = False,
        deny: bool = False,
    ) -> AclAdded:
        record = AclAdded(
            acl_id=str(len(self.image.acls)),
            resource_type=ResourceType.TOPIC,
            pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
            resource_name=name,
            principal=principal,
            host=host,
            operation=operation,
            permission_type=PermissionType.DENY if deny else PermissionType.ALLOW,
        )
        self.image.replay(record)
        self.authorizer.changed([record], self.image)
        return record

    def remove(self, acl: AclAdded) -> None:
        record = AclRemoved(acl_id=acl.acl_id)
        self.image.replay(record)
        self.authorizer.changed([record], self.image)

    def role(self, name: str, *members: str) -> None:
        record = RoleChanged(role=name, members=list(members))
        self.image.replay(record)
        self.authorizer.changed([record], self.image)


def who(name: str = "alice", host: str = "10.0.0.1") -> Caller:
    return Caller(Principal("User", name), CLIENT_LISTENER, host)


def test_without_acls_only_super_users_may_do_anything() -> None:
    rights = Rights(super_users=("User:admin",))
    assert rights.authorizer.allows(who("admin"), READ, "orders")
    assert not rights.authorizer.allows(who(), READ, "orders")
    assert rights.authorizer.explain(who(), READ, "orders").why is Why.NO_MATCHING_ACL


def test_a_super_user_is_not_denied_by_an_acl() -> None:
    rights = Rights(super_users=("User:admin",))
    rights.add(principal="User:*", deny=True)
    assert rights.authorizer.explain(who("admin"), READ, "orders").why is Why.SUPER_USER


def test_a_role_is_no_super_user() -> None:
    rights = Rights(super_users=("Role:admins",))
    rights.role("admins", "User:alice")
    assert not rights.authorizer.allows(who(), READ, "orders")


def test_a_broker_may_do_everything() -> None:
    rights = Rights()
    rights.add(principal="User:*", deny=True)
    assert rights.authorizer.explain(ITSELF, READ, "orders").why is Why.PEER
    assert rights.authorizer.allows(ITSELF, READ, "orders")


def test_the_same_principal_on_a_client_listener_is_no_broker() -> None:
    rights = Rights()
    client = Caller(ITSELF.principal, CLIENT_LISTENER, ITSELF.host)
    assert rights.authorizer.allows(ITSELF, READ, "orders")
    assert not rights.authorizer.allows(client, READ, "orders")


def test_a_decision_names_the_acl() -> None:
    rights = Rights()
    allow = rights.add()
    assert rights.authorizer.explain(who(), READ, "orders").acl == allow
    deny = rights.add(name="ord", prefixed=True, deny=True)
    assert rights.authorizer.explain(who(), READ, "orders").acl == deny


def test_a_remembered_decision_does_not_outlive_its_acl() -> None:
    rights, alice = Rights(), who()
    acl = rights.add()
    before = rights.authorizer.version
    assert rights.authorizer.allows(alice, READ, "orders")
    rights.remove(acl)
    assert not rights.authorizer.allows(alice, READ, "orders")
    assert rights.authorizer.version > before


def test_a_member_loses_what_only_its_role_had() -> None:
    rights, alice = Rights(), who()
    rights.add(principal="Role:readers")
    assert not rights.authorizer.allows(alice, READ, "orders")
    rights.role("readers", "User:alice")
    assert rights.authorizer.allows(alice, READ, "orders")
    assert not rights.authorizer.allows(who("bob"), READ, "orders")
    rights.role("readers")
    assert not rights.authorizer.allows(alice, READ, "orders")


def test_a_denied_role_denies_its_members() -> None:
    rights = Rights()
    rights.add()
    rights.role("contractors", "User:alice")
    rights.add(principal="Role:contractors", deny=True)
    assert not rights.authorizer.allows(who(), READ, "orders")


@pytest.mark.parametrize(
    ("acl_host", "host", "allowed"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("2001:db8:0:0:0:0:0:9", "2001:db8::9", True),
        ("fe80::1", "fe80::1%eth0", True),
        ("*", "anything", True),
    ],
)
def test_hosts(acl_host: str, host: str, allowed: bool) -> None:
    rights = Rights()
    rights.add(host=acl_host)
    assert rights.authorizer.allows(who(host=host), READ, "orders") == allowed


def test_a_deny_for_one_host_only() -> None:
    rights = Rights()
    rights.add()
    rights.add(host="10.0.0.1", deny=True)
    assert not rights.authorizer.allows(who(host="10.0.0.1"), READ, "orders")
    assert rights.authorizer.allows(who(host="10.0.0.2"), READ, "orders")


def test_a_prefixed_star_is_a_plain_star() -> None:
    rights = Rights()
    rights.add(name="*", prefixed=True)
    assert not rights.authorizer.allows(who(), READ, "orders")
    assert rights.authorizer.allows(who(), READ, "*orders")


def test_an_open_resource_is_closed_by_an_acl_of_anybody() -> None:
    rights = Rights(allow_everyone_if_no_acl=True)
    assert rights.authorizer.explain(who(), READ, "orders").why is Why.OPEN_RESOURCE
    rights.add(principal="User:bob")
    assert not rights.authorizer.allows(who(), READ, "orders")
    assert rights.authorizer.allows(who(), READ, "payments")


def test_a_deny_implies_nothing() -> None:
    rights = Rights()
    rights.add(Operation.DESCRIBE)
    rights.add(Operation.READ, deny=True)
    assert rights.authorizer.allows(who(), DESCRIBE, "orders")


def test_only_ten_thousands_of_decisions_are_remembered() -> None:
    rights, alice = Rights(), who()
    rights.add(name="a", prefixed=True)
    for number in range(100_010):
        rights.authorizer.allows(alice, READ, f"a{number}")
    assert len(alice.remembered.decisions) < 100_000
    long_name = "a" * 300
    assert rights.authorizer.allows(alice, READ, long_name)
    assert (READ.code, long_name) not in alice.remembered.decisions


def test_the_bits_of_operations() -> None:
    rights = Rights()
    rights.add(Operation.WRITE)
    bits = rights.authorizer.operations(who(), ResourceType.TOPIC, "orders")
    assert bits == 1 << Operation.WRITE | 1 << Operation.DESCRIBE


def test_writing_to_any_topic() -> None:
    rights = Rights()
    assert not rights.authorizer.allows_on_any(who(), WRITE)
    rights.add(Operation.WRITE, "orders-eu")
    assert rights.authorizer.allows_on_any(who(), WRITE)
    rights.add(Operation.WRITE, "orders", prefixed=True, deny=True)
    assert not rights.authorizer.allows_on_any(who(), WRITE)
    rights.add(Operation.WRITE, "p", prefixed=True)
    assert rights.authorizer.allows_on_any(who(), WRITE)
    rights.add(Operation.WRITE, "*", deny=True)
    assert not rights.authorizer.allows_on_any(who(), WRITE)
