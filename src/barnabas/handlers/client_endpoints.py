"""The addresses of brokers that a client gets: only those of the listener that it connected to.

A client that connected over one network or protocol must not be sent to another. A broker without
the client's listener is omitted, and partitions that it leads have no leader for this client.
"""

from typing import NamedTuple

from barnabas.metadata.image import BrokerImage
from barnabas.model.callers import Listener
from barnabas.node.node import Node

Endpoint = tuple[str, int]


class Reach(NamedTuple):
    """The brokers that the clients of a listener can connect to, and the others."""

    living: set[int]
    """The brokers that are up and have this listener."""
    lacking: set[int]
    """The brokers that are up and have no listener of this name."""


def endpoint_on(node: Node, broker: BrokerImage, listener: Listener) -> Endpoint | None:
    """Return a broker's address on a listener; None if it has no listener of this name."""
    if listener.is_peer:
        return broker.host, broker.port
    if broker.node_id == node.node_id and node.endpoints:
        return node.endpoints.get(listener.name)  # metadata of level 1 names only one
    return broker.endpoint(listener.name)


def own_endpoint(node: Node, listener: Listener) -> Endpoint | None:
    """Return this broker's own address on a listener, which it knows without metadata."""
    return node.endpoints.get(listener.name) if node.endpoints else node.advertised


def reach_on(node: Node, listener: Listener) -> Reach:
    """Return the brokers that a client of this listener can connect to, and those it cannot."""
    reach = Reach(set(), set())
    for broker in node.brokers:
        has_it = endpoint_on(node, broker, listener) is not None
        (reach.living if has_it else reach.lacking).add(broker.node_id)
    return reach
