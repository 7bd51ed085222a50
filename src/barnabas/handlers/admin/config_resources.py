"""The types of resources that have configs, with Kafka's codes, and the rights that they need.

Roles are a separate type (`role_configs.py`).
"""

from barnabas.handlers.authorization import (
    ALTER_CLUSTER,
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_GROUP,
    ALTER_CONFIGS_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_GROUP,
    DESCRIBE_CONFIGS_TOPIC,
    require,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16
GROUP = 32
ROLE = 100
"""Kafka has no roles. Its types are powers of two, so it will not use this number."""


def resource_type(number: int) -> str:
    """Return "topic" or "broker"; refuse a type that has no configs in Barnabas."""
    if number == TOPIC:
        return "topic"
    if number == BROKER:
        return "broker"
    raise ApiError(
        ErrorCode.INVALID_REQUEST, f"configs belong to topics (2) and brokers (4), not to {number}"
    )


def require_description(node: Node, context: RequestContext, kind: int, name: str) -> None:
    """Raise `ApiError` if the caller may not describe the configs of a resource."""
    if kind == TOPIC:
        require(node, context, DESCRIBE_CONFIGS_TOPIC, name)
    elif kind == GROUP:
        require(node, context, DESCRIBE_CONFIGS_GROUP, name)
    elif kind == ROLE:
        require(node, context, DESCRIBE_CLUSTER)
    else:
        require(node, context, DESCRIBE_CONFIGS_CLUSTER)


def require_alteration(node: Node, context: RequestContext, kind: int, name: str) -> None:
    """Raise `ApiError` if the caller may not alter the configs of a resource."""
    if kind == TOPIC:
        require(node, context, ALTER_CONFIGS_TOPIC, name)
    elif kind == GROUP:
        require(node, context, ALTER_CONFIGS_GROUP, name)
    elif kind == ROLE:
        require(node, context, ALTER_CLUSTER)
    else:
        require(node, context, ALTER_CONFIGS_CLUSTER)


def check_known_broker(node: Node, name: str) -> None:
    """Refuse the id of a broker that does not exist; an empty one means all brokers."""
    if name and name not in map(str, node.draft.brokers):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"there is no broker {name!r}; there are {sorted(node.draft.brokers)}",
        )


def check_broker(node: Node, name: str) -> None:
    """Refuse another broker's id; an empty one means all brokers."""
    if name not in ("", str(node.node_id)):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node.node_id}; ask {name!r} for its own configs",
        )
