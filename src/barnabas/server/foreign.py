"""Recognises clients that speak another protocol to a Kafka listener, and answers them.

New users point a browser or curl at the broker's port, and operators enable TLS on one side only.
A Kafka frame begins with its length; the first bytes of these protocols are not a valid length.
"""

from typing import NamedTuple

from barnabas.model.callers import Listener
from barnabas.model.errors import WireError

HTTP_METHODS = (
    *(b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC"),
    b"PRI ",  # HTTP/2
)
"""The first four bytes of a request by method."""
TLS_HANDSHAKE = b"\x16\x03"
"""A record of type handshake, and the major version of SSL 3.0 and of every TLS version."""
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""A record with the fatal alert `handshake_failure`."""

HTTP_REQUEST = "HTTP request on a Kafka listener"
TLS_CLIENT_HELLO = (
    "TLS handshake on a plaintext listener; set security.protocol to {protocol} in the client, or "
    "connect to a listener with TLS"
)
TLS_BROKER_HELLO = (
    "TLS handshake on the listener for brokers, which has no TLS; set cluster.tls_certificate on "
    "all brokers or on none"
)


class ForeignProtocol(NamedTuple):
    """The answer to a client that speaks another protocol, and its log event."""

    event: str
    """The log event."""
    reply: bytes
    """The last bytes that the client is sent."""


class ForeignProtocolError(WireError):
    """A connection's first bytes belong to another protocol."""

    def __init__(self, found: ForeignProtocol) -> None:
        super().__init__(found.event)
        self.found = found


def recognise(
    first: bytes, bootstrap: tuple[str, int], listener: Listener
) -> ForeignProtocol | None:
    """Return the protocol that a connection's first four bytes belong to; None if it is unknown.

    `bootstrap` is the address that Kafka clients connect to.
    """
    if first in HTTP_METHODS:
        return ForeignProtocol(HTTP_REQUEST, _http_answer(bootstrap, is_head=first == b"HEAD"))
    if first.startswith(TLS_HANDSHAKE):
        event = TLS_CLIENT_HELLO.format(protocol=listener.protocol)
        return ForeignProtocol(TLS_BROKER_HELLO if listener.is_peer else event, TLS_ALERT)
    return None


def _http_answer(bootstrap: tuple[str, int], *, is_head: bool) -> bytes:
    host, port = bootstrap
    shown = f"[{host}]" if ":" in host else host
    body = (
        "This is a Kafka listener of Barnabas; it does not serve HTTP. "
        f"Connect a Kafka client, for example: barnabas topic list --bootstrap {shown}:{port}\n"
    ).encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n"
        "\r\n"
    ).encode()
    return head if is_head else head + body
