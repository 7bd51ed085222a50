"""The circumstances of a request, which every handler receives beside the request itself."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.model.callers import Caller


@dataclass(slots=True)
class RequestContext:
    """One request's circumstances."""

    version: int
    client_id: str | None
    caller: Caller
    """The principal, the listener and the host. It has no shortcuts here: a property would cost
    each Fetch request a call."""
    now_ms: int
    throttle_ms: int = 0
    """How long the connection is not read after the response (KIP-219)."""
    overtaken: Callable[[], None] | None = None
    """Called when another request arrives on the connection while the response is pending."""
    prefix_bytes: int = 0
    """The length of the part that the next request probably repeats; see `shapes.py`. 0 where no
    fast path is known."""

    @property
    def client(self) -> str:
        """The key of a client's queue: long work of one client waits in one queue."""
        return f"{self.caller.host} {self.client_id}"
