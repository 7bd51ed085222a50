"""CreateAcls, DescribeAcls, DeleteAcls, and roles as config resources."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.rights import ADMIN, SECURED, caller

TOPIC, CLUSTER, LITERAL, PREFIXED, ANY, MATCH = 2, 4, 3, 4, 1, 2
READ, ALL, ALLOW, DENY = 3, 2, 3, 2
ROLE, SET, DELETE, APPEND, SUBTRACT = 100, 0, 1, 2, 3
ANY_ACL: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
"""A filter that matches every ACL."""


def creation(name: str = "orders", **fields: Any) -> AclCreation:
    facts = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**{**facts, **fields})


def described(talk: Dialogue, **fields: Any) -> list[tuple[str, int, str]]:
    answer = talk.ask(DescribeAclsRequest(**{**ANY_ACL, **fields}))
    assert answer.error_code == 0, answer.error_message
    return [
        (each.resource_name, each.pattern_type, acl.principal)
        for each in answer.resources
        for acl in each.acls
    ]


def wanted(**fields: Any) -> DeleteAclsFilter:
    return DeleteAclsFilter(**{**ANY_ACL, "resource_type_filter": TOPIC, **fields})


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path, {**SECURED, "security.audit_file": "unused"})
    talk.caller = caller(ADMIN)
    return talk


def create(talk: Dialogue, *creations: AclCreation) -> list[int]:
    answer = talk.ask(CreateAclsRequest(creations=list(creations)))
    return [result.error_code for result in answer.results]


def test_what_is_created_is_described_and_deleted(talk: Dialogue) -> None:
    assert create(talk, creation(), creation("pay", resource_pattern_type=PREFIXED)) == [0, 0]
    assert described(talk) == [("orders", LITERAL, "User:alice"), ("pay", PREFIXED, "User:alice")]
    answer = talk.ask(DeleteAclsRequest(filters=[wanted(), wanted(resource_name_filter="none")]))
    first, second = answer.filter_results
    assert [acl.resource_name for acl in first.matching_acls] == ["orders", "pay"]
    assert (second.error_code, second.matching_acls) == (0, [])
    assert described(talk) == []


def test_what_exists_is_created_without_an_error_and_once(talk: Dialogue) -> None:
    assert create(talk, creation(), creation()) == [0, 0]
    assert create(talk, creation()) == [0]
    assert len(described(talk)) == 1


def test_they_survive_a_restart(talk: Dialogue) -> None:
    create(talk, creation())
    talk.restart()
    assert described(talk) == [("orders", LITERAL, "User:alice")]


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_name": ""},
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"resource_pattern_type": 0},
        {"operation": 0},
        {"operation": ANY},
        {"operation": 77},
        {"permission_type": ANY},
        {"permission_type": 0},
        {"principal": "alice"},
        {"host": ""},
        {"resource_type": CLUSTER, "resource_name": "orders"},
    ],
)
def test_an_invalid_acl_is_refused_by_itself(talk: Dialogue, fields: dict[str, Any]) -> None:
    assert create(talk, creation(**fields), creation("ok")) == [ErrorCode.INVALID_REQUEST, 0]
    assert described(talk) == [("ok", LITERAL, "User:alice")]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, {"orders", "ord", "*", "pay"}),
        ({"pattern_type_filter": LITERAL}, {"orders", "*", "pay"}),
        ({"pattern_type_filter": MATCH, "resource_name_filter": "orders"}, {"orders", "ord", "*"}),
        ({"resource_name_filter": "orders"}, {"orders"}),
        ({"resource_name_filter": "*", "pattern_type_filter": LITERAL}, {"*"}),
        ({"principal_filter": "User:bob"}, {"pay"}),
        ({"host_filter": "10.0.0.1"}, {"pay"}),
        ({"operation": ALL}, {"pay"}),
        ({"permission_type": DENY}, {"pay"}),
        ({"resource_type_filter": 3}, set()),
        ({"pattern_type_filter": PREFIXED, "resource_name_filter": "orders"}, set()),
    ],
)
def test_filters(talk: Dialogue, fields: dict[str, Any], found: set[str]) -> None:
    other = {"principal": "User:bob", "host": "10.0.0.1", "operation": ALL, "permission_type": DENY}
    prefix = creation("ord", resource_pattern_type=PREFIXED)
    create(talk, creation(), prefix, creation("*"), creation("pay", **other))
    assert {name for name, *_ in described(talk, **fields)} == found
    facts = {"resource_type_filter": ANY, **fields}
    (result,) = talk.ask(DeleteAclsRequest(filters=[wanted(**facts)])).filter_results
    assert {acl.resource_name for acl in result.matching_acls} == found


def test_an_invalid_filter(talk: Dialogue) -> None:
    create(talk, creation())
    filters = [wanted(operation=0), wanted()]
    refused, deleted = talk.ask(DeleteAclsRequest(filters=filters)).filter_results
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert len(deleted.matching_acls) == 1
    answer = talk.ask(DescribeAclsRequest(resource_type_filter=0, operation=1, permission_type=1))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_without_an_authorizer_security_is_disabled(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    assert create(talk, creation(), creation()) == [ErrorCode.SECURITY_DISABLED] * 2
    filters = [wanted()]
    (result,) = talk.ask(DeleteAclsRequest(filters=filters)).filter_results
    assert result.error_code == ErrorCode.SECURITY_DISABLED
    answer = talk.ask(DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1))
    assert answer.error_code == ErrorCode.SECURITY_DISABLED


def test_at_an_old_feature_level_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.node.node.LATEST_LEVEL", 1)
    talk = Dialogue(tmp_path, SECURED)
    talk.caller = caller(ADMIN)
    (result,) = talk.ask(CreateAclsRequest(creations=[creation()])).results
    assert result.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "barnabas cluster upgrade" in result.error_message


def test_changes_are_audited(talk: Dialogue) -> None:
    create(talk, creation())
    talk.ask(DeleteAclsRequest(filters=[wanted()]))
    created, deleted = talk.audited
    assert (created["change"], created["principal"]) == ("ACL created", "User:admin")
    assert created["acl"]["resource"] == "orders"
    assert (deleted["change"], deleted["api"]) == ("ACL deleted", "DeleteAcls")


# --- roles ---


def alter(talk: Dialogue, role: str, operation: int, members: str | None, **fields: Any) -> Any:
    change = incremental.AlterableConfig(
        name=fields.pop("name", "members"), config_operation=operation, value=members
    )
    resource = incremental.AlterConfigsResource(
        resource_type=ROLE, resource_name=role, configs=[change]
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], **fields)
    (result,) = talk.ask(request).responses
    return result


def roles(node: Node) -> dict[str, list[str]]:
    return node.image.security.roles


def test_members_come_and_go(talk: Dialogue) -> None:
    assert alter(talk, "readers", APPEND, "User:alice,User:bob").error_code == 0
    assert alter(talk, "readers", APPEND, "User:bob,User:carol").error_code == 0
    assert roles(talk.node) == {"readers": ["User:alice", "User:bob", "User:carol"]}
    alter(talk, "readers", SUBTRACT, "User:alice")
    assert roles(talk.node) == {"readers": ["User:bob", "User:carol"]}
    alter(talk, "readers", DELETE, None)
    assert roles(talk.node) == {}
    assert [line["change"] for line in talk.audited] == ["role altered"] * 4


def test_a_role_is_described_and_listed(talk: Dialogue) -> None:
    alter(talk, "readers", SET, "User:alice,User:bob")
    asked = DescribeConfigsResource(resource_type=ROLE, resource_name="readers")
    (result,) = talk.ask(DescribeConfigsRequest(resources=[asked])).results
    assert [(entry.name, entry.value) for entry in result.configs] == [
        ("members", "User:alice,User:bob")
    ]
    listed = talk.ask(ListConfigResourcesRequest(resource_types=[ROLE])).config_resources
    assert [each.resource_name for each in listed] == ["readers"]
    everything = talk.ask(ListConfigResourcesRequest()).config_resources
    assert ROLE not in {each.resource_type for each in everything}, "Kafka's clients do not know it"


def test_a_dry_run_changes_nothing(talk: Dialogue) -> None:
    assert alter(talk, "readers", SET, "User:alice", validate_only=True).error_code == 0
    assert roles(talk.node) == {}


@pytest.mark.parametrize(
    ("role", "members", "name"),
    [
        ("readers", "alice", "members"),
        ("readers", "Role:other", "members"),
        ("readers", "User:*", "members"),
        ("", "User:alice", "members"),
        ("a:b", "User:alice", "members"),
        ("readers", "User:alice", "other"),
    ],
)
def test_an_invalid_role_is_refused(talk: Dialogue, role: str, members: str, name: str) -> None:
    assert alter(talk, role, SET, members, name=name).error_code != 0
    assert roles(talk.node) == {}


def test_a_role_needs_the_rights_of_acls(talk: Dialogue) -> None:
    talk.caller = caller()
    refused = alter(talk, "readers", SET, "User:alice")
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    asked = DescribeConfigsResource(resource_type=ROLE, resource_name="readers")
    (result,) = talk.ask(DescribeConfigsRequest(resources=[asked])).results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
