"""The caller of a request: the principal that sends it, and the listener on which it arrives.

A connection has one `Caller`. It is made when the connection is accepted, and replaced when the
client authenticates. Handlers find it in their `RequestContext`. A request that one broker forwards
to another keeps the caller of the client that sent it.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from barnabas.model.security_settings import SecurityProtocol


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated identity, as Kafka's `KafkaPrincipal`."""

    kind: str
    name: str
    is_by_token: bool = field(default=False, compare=False)
    """Whether it authenticated with a delegation token; such a client cannot manage tokens."""

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
    protocol: SecurityProtocol = "PLAINTEXT"
    """How clients connect to it."""

    @property
    def has_sasl(self) -> bool:
        """Whether its clients authenticate with SASL."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


CLIENT_LISTENER = Listener("PLAINTEXT")
PEER_LISTENER = Listener("PEER", is_peer=True)
OPERATOR_LISTENER = Listener("HTTP")
"""Serves metrics and health over HTTP; it takes no requests of Kafka's protocol."""


class Remembered:
    """What is remembered about a caller: the authorizer's last decisions, and its software."""

    __slots__ = ("decisions", "on_closed", "owner", "software")

    def __init__(self) -> None:
        self.owner: object = None
        """The authorizer that the decisions are of."""
        self.decisions: dict[tuple[int, str], bool] = {}
        self.software = ("", "")
        """The name and the version of the client's software, as ApiVersions said."""
        self.on_closed: dict[Hashable, Callable[[], None]] = {}
        """What to call when the connection closes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    principal: Principal
    listener: Listener
    host: str
    """The address that the client connects from, as text."""
    remembered: Remembered = field(default_factory=Remembered, compare=False, repr=False)
    """Kept here, so that the decisions of a connection are found without a lookup."""


ITSELF = Caller(ANONYMOUS, PEER_LISTENER, "")
"""A broker that answers its own request, without a connection."""


def unauthenticated(host: str, listener: Listener = CLIENT_LISTENER) -> Caller:
    """Return the caller of a connection that was just accepted."""
    return Caller(ANONYMOUS, listener, host)
