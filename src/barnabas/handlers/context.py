"""Who asks, how, and when: what every handler is given beside the request itself."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class RequestContext:
    """One request's circumstances."""

    version: int
    client_id: str | None
    client_host: str
    now_ms: int
    peer: bool = False
    """Whether another broker asks, over the listener that clients do not reach."""
    throttle_ms: int = 0
    """For how long the connection is not read after the answer (KIP-219)."""
    overtaken: Callable[[], None] | None = None
    """Called when something else comes on the connection while the answer waits."""
    prefix_bytes: int = 0
    """Where the records of a Produce request begin, if the next one may look the same."""

    @property
    def client(self) -> str:
        """Who asks, as far as the broker can tell: what one client asks for waits in one line."""
        return f"{self.client_host} {self.client_id}"
