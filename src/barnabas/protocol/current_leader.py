"""Who leads now, said beside an error (KIP-951): clients move on without asking for metadata.

Produce and Fetch name the leader and its epoch in a tag of each partition, and in a tag of the
whole answer where those leaders listen.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from barnabas.protocol.primitives import uvarint

_LEADER = Struct(">iib")
_INT = Struct(">i")


class Leader(NamedTuple):
    """A leader by its number, and since which epoch it leads."""

    node_id: int
    epoch: int


class Endpoint(NamedTuple):
    """Where a broker listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def leader_tag(tag: int, leader: Leader) -> bytes:
    """Return the tagged field that names a leader."""
    return uvarint(tag) + uvarint(_LEADER.size) + _LEADER.pack(*leader, 0)


def endpoints_tag(tag: int, endpoints: Iterable[Endpoint]) -> bytes:
    """Return the tagged field that says where leaders listen."""
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
