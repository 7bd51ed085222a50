"""The circumstances of a request, which every handler receives beside the request itself."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.model.callers import Caller
from barnabas.security.client_quotas import ClientQuota


@dataclass(slots=True)
class RequestContext:
    """One request's circumstances."""

    version: int
    client_id: str | None
    caller: Caller
    """The principal, the listener and the host. Handlers read its attributes directly: properties
    of this class would cost each Fetch request a call."""
    now_ms: int
    quota: ClientQuota | None = None
    """The quota of the client; None for other brokers, and if there are no quotas."""
    throttle_ms: int = 0
    """How long the connection is not read after the response (KIP-219)."""
    overtaken: Callable[[], None] | None = None
    """Called when another request arrives on the connection while the response is pending."""
    api_key: int = -1
    was_forwarded: bool = False
    """Whether another broker forwarded it for its client."""
    was_denied: bool = False
    """Whether an authorizer denied any part of the request."""
    error_code: int = 0
    """The first error in the response, where requests are counted."""
    partition_count: int = 0
    """How many partitions a Produce or Fetch request is about."""
    asked_wait_ms: int = 0
    """How long the request wants its response to wait at most."""
    software: tuple[str, str] | None = None
    """The name and the version of the client's software, where the request says it."""
    prefix_bytes: int = 0
    """The length of the part that the next request probably repeats; see `shapes.py`. 0 if the
    request has no fast path."""

    @property
    def client(self) -> str:
        """The key of a client's queue: long work of one client waits in one queue."""
        return f"{self.caller.host} {self.client_id}"
