"""The current leader, sent with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951)."""

from collections.abc import Iterable

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


def endpoints_of(node: Node, leaders: Iterable[Leader | None]) -> list[Endpoint]:
    """Return the addresses of leaders, as far as they are known."""
    numbers = dict.fromkeys(leader.node_id for leader in leaders if leader is not None)
    brokers = [node.image.brokers.get(number) for number in numbers]
    return [
        Endpoint(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in brokers
        if broker is not None
    ]
