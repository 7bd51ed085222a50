"""The questions that handlers ask about a caller's rights.

    if is_denied(node, context, READ_GROUP, request.group_id):
        return refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)

A handler asks before it looks whether a resource exists: a caller that may not describe a topic
must not learn whether it exists. Without an authorizer everything is allowed, and a question costs
the read of `node.authorizer`.

`is_denied` and the functions that use it write denials to the audit log. `is_hidden` does not: it
omits items from a list of everything, which Kafka does not log either.
"""

from collections.abc import Iterable, Mapping

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.permissions import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    Operation,
    ResourceType,
    Right,
    right,
)
from barnabas.node.node import Node
from barnabas.protocol.apis import APIS

READ_TOPIC = right(Operation.READ, ResourceType.TOPIC)
WRITE_TOPIC = right(Operation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC = right(Operation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC = right(Operation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC = right(Operation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC = right(Operation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_CONFIGS_TOPIC = right(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_CONFIGS_TOPIC = right(Operation.ALTER_CONFIGS, ResourceType.TOPIC)

READ_GROUP = right(Operation.READ, ResourceType.GROUP)
DELETE_GROUP = right(Operation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP = right(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_CONFIGS_GROUP = right(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_CONFIGS_GROUP = right(Operation.ALTER_CONFIGS, ResourceType.GROUP)

WRITE_TRANSACTIONAL_ID = right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID = right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)

CREATE_CLUSTER = right(Operation.CREATE, ResourceType.CLUSTER)
DELETE_CLUSTER = right(Operation.DELETE, ResourceType.CLUSTER)
ALTER_CLUSTER = right(Operation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER = right(Operation.DESCRIBE, ResourceType.CLUSTER)
CLUSTER_ACTION = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CONFIGS_CLUSTER = right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CONFIGS_CLUSTER = right(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
IDEMPOTENT_WRITE_CLUSTER = right(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)

CREATE_TOKENS_USER = right(Operation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKENS_USER = right(Operation.DESCRIBE_TOKENS, ResourceType.USER)
DESCRIBE_TOKEN = right(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)

FAILURES = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
NO_NAMES: frozenset[str] = frozenset()
EVERYTHING = {
    resource: sum(1 << operation for operation in operations)
    for resource, operations in SUPPORTED_OPERATIONS.items()
}
"""The operations on each type of resource, as the bits of `authorized_operations`."""


def is_denied(node: Node, context: RequestContext, wanted: Right, name: str = CLUSTER_NAME) -> bool:
    """Tell whether the caller may not do something; write that to the audit log."""
    authorizer = node.authorizer
    if authorizer is None or authorizer.allows(context.caller, wanted, name):
        return False
    note_denial(node, context, wanted, name)
    return True


def is_hidden(node: Node, context: RequestContext, wanted: Right, name: str = CLUSTER_NAME) -> bool:
    """Tell whether something is omitted because the caller may not do this to it."""
    authorizer = node.authorizer
    return authorizer is not None and not authorizer.allows(context.caller, wanted, name)


def require(node: Node, context: RequestContext, wanted: Right, name: str = CLUSTER_NAME) -> None:
    """Raise `ApiError` if the caller may not do something."""
    if is_denied(node, context, wanted, name):
        raise ApiError(FAILURES[wanted.resource])


def denied_among(
    node: Node, context: RequestContext, wanted: Right, names: Iterable[str]
) -> frozenset[str]:
    """Return the names to which the caller may not do something."""
    if node.authorizer is None:
        return NO_NAMES
    return frozenset(
        name for name in dict.fromkeys(names) if is_denied(node, context, wanted, name)
    )


def topic_name(node: Node, key: str | bytes) -> str | None:
    """Return the name of a topic that a request names, perhaps by its id; None for no topic."""
    if isinstance(key, str):
        return key
    topic = node.image.topic_by_id(key)
    return None if topic is None else topic.name


def note_denial(node: Node, context: RequestContext, wanted: Right, name: str) -> None:
    """Write a denial to the audit log, and keep the fast path from learning the request."""
    context.was_denied = True
    if node.access.audit is not None and node.authorizer is not None:
        verdict = node.authorizer.explain(context.caller, wanted, name)
        api = _api_name(context)
        node.access.audit.denied(node.timers.wall_ms, context.caller, api, wanted, name, verdict)


def note_change(
    node: Node, context: RequestContext, what: str, facts: Mapping[str, object]
) -> None:
    """Write to the audit log that the caller changed security metadata."""
    if node.access.audit is not None:
        api = _api_name(context)
        node.access.audit.changed(node.timers.wall_ms, context.caller, api, what, facts)


def operations(
    node: Node, context: RequestContext, resource: ResourceType, name: str = CLUSTER_NAME
) -> int:
    """Return what the caller may do to a resource, as the bits of `authorized_operations`."""
    if node.authorizer is None:
        return EVERYTHING[resource]
    return node.authorizer.operations(context.caller, resource, name)


def _api_name(context: RequestContext) -> str:
    facts = APIS.get(context.api_key)
    return str(context.api_key) if facts is None else facts.name
