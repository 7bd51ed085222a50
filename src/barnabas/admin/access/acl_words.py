"""Parses and formats ACLs as users write them: `topic:orders`, `read`, `User:alice`."""

from barnabas.admin.admin_errors import AdminError
from barnabas.metadata.security_records import AclAdded
from barnabas.model.permissions import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)

RESOURCE_WORDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "txn": ResourceType.TRANSACTIONAL_ID,
    "token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
WORDS_OF_RESOURCES = {kind: word for word, kind in RESOURCE_WORDS.items()}
OPERATION_WORDS = {
    operation.name.lower().replace("_", "-"): operation
    for operation in Operation
    if operation > Operation.ANY
}


def parse_resource(text: str) -> tuple[ResourceType, str]:
    """Read TYPE:NAME; the cluster has no name."""
    word, colon, name = text.partition(":")
    kind = RESOURCE_WORDS.get(word.lower())
    if kind is ResourceType.CLUSTER and name in ("", CLUSTER_NAME):
        return kind, CLUSTER_NAME
    if kind is None or not colon or not name:
        known = ", ".join(word for word in RESOURCE_WORDS if word != "cluster")
        raise AdminError(
            f"{text!r} is not a resource; write TYPE:NAME with one of {known}, or cluster"
        )
    return kind, name


def parse_operation(text: str) -> Operation:
    """Read the name of an operation."""
    found = OPERATION_WORDS.get(text.lower().replace("_", "-"))
    if found is None:
        known = ", ".join(OPERATION_WORDS)
        raise AdminError(f"{text!r} is not an operation; use one of {known}")
    return found


def parse_principal(text: str) -> str:
    """Check that a principal has a type."""
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise AdminError(f"{text!r} is not a principal; write User:{text or 'alice'} or Role:NAME")
    return text


def shown_resource(acl: AclAdded) -> str:
    """Return the resources of an ACL as text."""
    if acl.resource_type == ResourceType.CLUSTER:
        return "cluster"
    word = WORDS_OF_RESOURCES.get(ResourceType(acl.resource_type), str(acl.resource_type))
    named = f"{word}:{acl.resource_name}"
    return f"{named} (prefix)" if acl.pattern_type == PatternType.PREFIXED else named


def shown_operation(acl: AclAdded) -> str:
    """Return the operation of an ACL as text."""
    return Operation(acl.operation).name.lower().replace("_", "-")


def shown_permission(acl: AclAdded) -> str:
    """Return whether an ACL allows or denies."""
    return "deny" if acl.permission_type == PermissionType.DENY else "allow"


def sentence(acl: AclAdded) -> str:
    """Return an ACL as a sentence."""
    host = "" if acl.host == "*" else f" from {acl.host}"
    verb = "may not" if acl.permission_type == PermissionType.DENY else "may"
    return f"{acl.principal} {verb} {shown_operation(acl)} {shown_resource(acl)}{host}"


def as_json(acl: AclAdded) -> dict[str, str]:
    """Return an ACL as a JSON object."""
    prefixed = acl.pattern_type == PatternType.PREFIXED
    return {
        "principal": acl.principal,
        "permission": shown_permission(acl),
        "operation": shown_operation(acl),
        "resource_type": WORDS_OF_RESOURCES.get(ResourceType(acl.resource_type), "unknown"),
        "resource": acl.resource_name,
        "pattern": "prefix" if prefixed else "literal",
        "host": acl.host,
    }
