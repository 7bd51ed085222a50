"""A member of a classic group."""

from collections.abc import Container
from dataclasses import dataclass

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols (assignors) that a member knows, best first, each with the metadata for the
leader."""


@dataclass(slots=True)
class Member:
    """One member: its identity, its protocols and its timeouts."""

    member_id: str
    instance_id: str | None
    """The name that a static member keeps when it comes back (KIP-345)."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""

    assigned_in: int = -1
    """The last generation of which it got its assignment."""

    is_new: bool = False
    """Whether it waits for its first generation: it cannot send heartbeats yet."""

    deadline_ms: int = 0
    """When its session expires unless it sends a request."""

    alarm_ms: int | None = None
    """When the timer of its session fires, if one is set; see `classic_sessions`."""

    @property
    def protocol_names(self) -> set[str]:
        """The names of the protocols that it knows."""
        return {name for name, _ in self.protocols}

    def metadata(self, protocol: str | None) -> bytes:
        """Return its metadata for a protocol; empty for one that it does not know."""
        return next((content for name, content in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """Return the protocol that it prefers among some, one of which it must know."""
        return next(name for name, _ in self.protocols if name in candidates)
