"""Interfaces between the parts of a broker: what one part needs from another, and no more."""

from typing import Any, Protocol

from barnabas.metadata.image import Image
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.protocol.message import Message


class MetadataView(Protocol):
    """The committed metadata, and which node is the active controller."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    @property
    def controller_id(self) -> NodeId | None:
        """The active controller, as far as this node knows."""


class BrokerRequests(Protocol):
    """Sends requests to other brokers."""

    def ask(
        self,
        node_id: NodeId,
        request: Message,
        *,
        lane: str = "control",
        timeout_ms: int = 5000,
    ) -> Pending[Any]:
        """Send a request; the answer is the decoded response, or fails with `PeerLostError`."""
