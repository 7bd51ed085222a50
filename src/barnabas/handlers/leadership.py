"""The current leader, sent with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951)."""

from collections.abc import Iterable

from barnabas.handlers.client_endpoints import endpoint_on
from barnabas.model.callers import Listener
from barnabas.model.errors import ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.current_leader import Endpoint, Leader

MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def leader_instead(node: Node, key: str | bytes, number: int, code: ErrorCode) -> Leader | None:
    """Return the leader of a partition, if an error says that this broker is not the leader."""
    if code not in MOVED:
        return None
    image = node.image
    topic = image.topics.get(key) if isinstance(key, str) else image.topic_by_id(key)
    if topic is None or not 0 <= number < len(topic.partitions):
        return None
    placed = node.replicas.newest(topic)[number]
    return Leader(placed.leader, placed.leader_epoch)


def endpoints_of(
    node: Node, leaders: Iterable[Leader | None], listener: Listener
) -> list[Endpoint]:
    """Return the addresses of leaders on a client's listener, as far as they are known."""
    found = []
    for number in dict.fromkeys(leader.node_id for leader in leaders if leader is not None):
        broker = node.image.brokers.get(number)
        endpoint = None if broker is None else endpoint_on(node, broker, listener)
        if broker is not None and endpoint is not None:
            found.append(Endpoint(broker.node_id, *endpoint, broker.rack))
    return found
