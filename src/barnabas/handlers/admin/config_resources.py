"""The types of resources that have configs, with Kafka's codes."""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node

TOPIC = 2
BROKER = 4


def resource_type(number: int) -> str:
    """Return "topic" or "broker"; refuse what has no configs here."""
    if number == TOPIC:
        return "topic"
    if number == BROKER:
        return "broker"
    raise ApiError(
        ErrorCode.INVALID_REQUEST, f"configs belong to topics (2) and brokers (4), not to {number}"
    )


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
