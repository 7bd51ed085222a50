"""Who sends a request, and over which listener it arrives.

A connection has one `Caller`. It is made when the connection is accepted, and replaced when the
client authenticates. Handlers find it in their `RequestContext`. A request that one broker forwards
to another keeps the caller of the client that sent it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated identity, as Kafka's `KafkaPrincipal`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""A client that did not authenticate."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One of the addresses that a broker accepts connections on."""

    name: str
    is_peer: bool = False
    """Whether it is for other brokers: they may call APIs that clients may not."""


CLIENT_LISTENER = Listener("PLAINTEXT")
PEER_LISTENER = Listener("PEER", is_peer=True)


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    principal: Principal
    listener: Listener
    host: str
    """The address that the client connects from, as text."""


ITSELF = Caller(ANONYMOUS, PEER_LISTENER, "")
"""A broker that answers its own request, without a connection."""


def unauthenticated(host: str, *, peer: bool = False) -> Caller:
    """Return the caller of a connection that was just accepted."""
    return Caller(ANONYMOUS, PEER_LISTENER if peer else CLIENT_LISTENER, host)
