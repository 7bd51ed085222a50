"""Kafka's number for the state of a broker."""

from barnabas.node.node import Node

STARTING, FENCED, RUNNING, LEAVING, STOPPING = 1, 2, 3, 6, 7


def broker_state(node: Node) -> int:
    """Return the number of the state that a broker is in."""
    membership = node.membership
    if membership.has_left:
        return STOPPING
    if membership.is_leaving:
        return LEAVING
    if not node.is_broker:
        return RUNNING if node.quorum.controller_id is not None else STARTING
    if membership.is_active:
        return RUNNING if node.local.serves or not node.is_alone else STARTING
    return FENCED if node.local.serves else STARTING
