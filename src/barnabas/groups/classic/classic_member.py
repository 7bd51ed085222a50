"""A member of a classic group."""

from collections.abc import Container
from dataclasses import dataclass

Protocols = tuple[tuple[str, bytes], ...]
"""The ways to share out work that a member knows, best first, each with what the leader needs
to know of the member for it."""


@dataclass(slots=True)
class Member:
    """One member; who it is, what it can do, and how long it may be silent."""

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
    """The last generation of which it was handed its assignment."""

    is_new: bool = False
    """Whether it waits for its first generation: it cannot send heartbeats yet."""

    deadline_ms: int = 0
    """When it is taken for dead unless it is heard of."""

    alarm_ms: int | None = None
    """When the timer of its session rings, if one is set; see `sessions`."""

    @property
    def protocol_names(self) -> set[str]:
        """The names of the protocols that it knows."""
        return {name for name, _ in self.protocols}

    def metadata(self, protocol: str | None) -> bytes:
        """Return what it says of itself for a protocol; nothing for one that it does not know."""
        return next((content for name, content in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """Return the protocol that it likes best of some, one of which it must know."""
        return next(name for name, _ in self.protocols if name in candidates)
