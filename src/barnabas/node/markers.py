"""Markers: the control records that end a transaction in each partition it wrote to."""

from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.pending import Pending

if TYPE_CHECKING:
    from barnabas.node.node import Node


class Marker(NamedTuple):
    """How a producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """2 where the epoch was raised for this end (KIP-890)."""


def write_marker(
    node: "Node", topic: str, partition: int, marker: Marker, now_ms: int
) -> Pending[bool]:
    """Append a marker; answer once it is safe. Raises `ApiError` where it is refused."""
    raise NotImplementedError
