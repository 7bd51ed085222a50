"""Clients that speak another protocol to a Kafka listener: which one, and what they are sent.

Newcomers point a browser or curl at the broker's port, and operators enable TLS on one side only.
A Kafka frame begins with its length; the first bytes of these protocols are no acceptable length.
"""

from typing import NamedTuple

from barnabas.model.errors import WireError

HTTP_METHODS = (
    *(b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC"),
    b"PRI ",  # HTTP/2
)
"""The first four bytes of a request by method."""
TLS_HANDSHAKE = b"\x16\x03"
"""A record of the type handshake, and the major version of SSL 3.0 and every TLS."""
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""A record with the fatal alert `handshake_failure`."""

HTTP_REQUEST = "HTTP request on a Kafka listener"
TLS_CLIENT_HELLO = "TLS handshake on a plaintext listener"


class ForeignProtocol(NamedTuple):
    """What a client that speaks another protocol gets."""

    event: str
    """For the log."""
    reply: bytes
    """The last bytes that the client is sent."""


class ForeignProtocolError(WireError):
    """A connection's first bytes belong to another protocol."""

    def __init__(self, found: ForeignProtocol) -> None:
        super().__init__(found.event)
        self.found = found


def recognise(first: bytes, bootstrap: tuple[str, int]) -> ForeignProtocol | None:
    """Return the protocol that a connection's first four bytes belong to; None for no known one.

    `bootstrap` is where Kafka clients connect to.
    """
    if first in HTTP_METHODS:
        return ForeignProtocol(HTTP_REQUEST, _http_answer(bootstrap, is_head=first == b"HEAD"))
    if first.startswith(TLS_HANDSHAKE):
        return ForeignProtocol(TLS_CLIENT_HELLO, TLS_ALERT)
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
