"""Encodes the current leader in an error response (KIP-951), so that clients need no metadata.

Produce and Fetch responses name the leader and its epoch in a tagged field of each partition, and
the endpoints of these leaders in a tagged field of the response.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from barnabas.protocol.primitives import uvarint

_LEADER = Struct(">iib")
_INT = Struct(">i")


class Leader(NamedTuple):
    """The leader of a partition and its leader epoch."""

    node_id: int
    epoch: int


class Endpoint(NamedTuple):
    """The address of a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def leader_tag(tag: int, leader: Leader) -> bytes:
    """Return the tagged field that names a leader."""
    return uvarint(tag) + uvarint(_LEADER.size) + _LEADER.pack(*leader, 0)


def endpoints_tag(tag: int, endpoints: Iterable[Endpoint]) -> bytes:
    """Return the tagged field with the endpoints of leaders."""
    listed = [_endpoint(endpoint) for endpoint in endpoints]
    content = uvarint(len(listed) + 1) + b"".join(listed)
    return uvarint(tag) + uvarint(len(content)) + content


def _endpoint(endpoint: Endpoint) -> bytes:
    host = endpoint.host.encode()
    rack = b"\0"
    if endpoint.rack is not None:
        name = endpoint.rack.encode()
        rack = uvarint(len(name) + 1) + name
    head = _INT.pack(endpoint.node_id) + uvarint(len(host) + 1) + host
    return head + _INT.pack(endpoint.port) + rack + b"\0"
