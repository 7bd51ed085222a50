"""Makes what a client without credentials may send to a listener: garbage for `fuzz_login.py`.

An input is the bytes of one connection, in parts that arrive one after the other. It is random
bytes, a length that no frame has, or a dialogue of a login in some order, with bytes changed, cut
anywhere. Towards a TLS listener such bytes come instead of the handshake, amid it, or after it.
"""

import base64
import json
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.testing.raw_client import frame_of, framed

RECEIVE_BYTES_MAX = 512 * 1024
"""What a listener with SASL takes before the login (`sasl_receive_bytes_max`)."""
SIZES = (
    *(-(2**31), -1, 0, 1, 7, 8, RECEIVE_BYTES_MAX - 1, RECEIVE_BYTES_MAX, RECEIVE_BYTES_MAX + 1),
    *(2**20, 100 * 2**20, 2**31 - 1, 0x16030100),
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "", "x" * 300)
TOKENS = (
    b"",
    b"n,,n=admin,r=nonce",
    b"n,,n=nobody,r=nonce",
    b"y,a=other,n=admin,r=nonce,tokenauth=true",
    b"c=biws,r=nonce,p=cHJvb2Y=",
    b"\0nobody\0wrong",
    b"other\0admin\0wrong",
    b"n,,\x01auth=Bearer a.b.c\x01\x01",
    b"\x01",
)
OTHER_REQUESTS: tuple[tuple[Message, int], ...] = (
    (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    (ApiVersionsRequest(), 0),
    (MetadataRequest(topics=None), 12),
    (ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]), 9),
)
CLIENT_HELLOS = 8


class Input(NamedTuple):
    """The bytes of one connection; the client waits a while between the parts."""

    parts: list[bytes]
    is_plain: bool
    """Whether it goes to a listener without TLS."""
    handshakes: bool = False
    """Whether the client completes a handshake first."""
    is_encrypted: bool = False
    """Whether the parts go out as TLS records after it."""


class Garbage:
    """Makes inputs from a seed. The same seed makes the same ones, apart from ClientHellos."""

    def __init__(self, seed: int, *, tls_share: float, handshake_share: float) -> None:
        self._rng = Random(seed)
        self._tls_share = tls_share
        self._handshake_share = handshake_share
        self._hellos = list(client_hellos())
        self._kinds: tuple[Callable[[], bytes], ...] = (
            self._random_bytes,
            self._odd_length,
            self._login,
            self._login,
            self._raw_tokens,
            self._bearer,
            self._disorder,
        )

    def inputs(self, count: int) -> Iterator[Input]:
        """Return so many inputs."""
        rng = self._rng
        for _ in range(count):
            draw = rng.random()
            if draw < self._handshake_share:
                content = self._spoiled(rng.choice(self._kinds)())
                yield Input(self._parts(content), False, True, rng.random() < 0.8)
            elif draw < self._handshake_share + self._tls_share:
                yield Input(self._parts(self._broken_handshake()), False)
            else:
                yield Input(self._parts(self._spoiled(rng.choice(self._kinds)())), True)

    # --- the kinds ---

    def _random_bytes(self) -> bytes:
        return self._rng.randbytes(self._rng.randrange(1, 200))

    def _odd_length(self) -> bytes:
        """A length that is wrong, and some of what it promises."""
        rng = self._rng
        size = rng.choice(SIZES) if rng.random() < 0.5 else rng.randrange(-(2**31), 2**31)
        following = 70_000 if rng.random() < 0.02 else 50
        return struct.pack(">i", size) + rng.randbytes(rng.randrange(following))

    def _login(self) -> bytes:
        """Frames of a login, in the right order at first."""
        rng = self._rng
        mechanism = rng.choice(MECHANISMS)
        messages: list[tuple[Message, int]] = []
        if rng.random() < 0.5:
            messages.append(rng.choice(OTHER_REQUESTS[:2]))
        messages.append((SaslHandshakeRequest(mechanism=mechanism), 1))
        messages += [self._proof(self._token()) for _ in range(rng.randrange(3))]
        return _framed(messages)

    def _raw_tokens(self) -> bytes:
        """SaslHandshake version 0: tokens follow without Kafka's headers."""
        rng = self._rng
        content = _framed([(SaslHandshakeRequest(mechanism=rng.choice(MECHANISMS)), 0)])
        for _ in range(rng.randrange(1, 4)):
            content += framed(self._token())
        return content

    def _bearer(self) -> bytes:
        """OAUTHBEARER with tokens that no issuer has signed."""
        rng = self._rng
        hello = (SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        said = b"n,,\x01auth=Bearer " + self._web_token() + b"\x01\x01"
        if rng.random() < 0.2:
            said = said.replace(b"\x01", rng.randbytes(1))
        after = [self._proof(b"\x01")] if rng.random() < 0.5 else []
        return _framed([hello, self._proof(said), *after])

    def _disorder(self) -> bytes:
        """Any requests in any order: a proof before the handshake, two handshakes, other APIs."""
        rng = self._rng
        messages: list[tuple[Message, int]] = []
        for _ in range(rng.randrange(1, 5)):
            draw = rng.random()
            if draw < 0.4:
                messages.append(rng.choice(OTHER_REQUESTS))
            elif draw < 0.7:
                messages.append(self._proof(self._token()))
            else:
                handshake = SaslHandshakeRequest(mechanism=rng.choice(MECHANISMS))
                messages.append((handshake, rng.randrange(2)))
        return _framed(messages)

    def _broken_handshake(self) -> bytes:
        """Bytes instead of a ClientHello, or one that is cut, changed, or followed by garbage."""
        rng = self._rng
        if rng.random() < 0.3:
            return rng.choice(self._kinds)()
        content = self._spoiled(rng.choice(self._hellos))
        return content + (rng.randbytes(rng.randrange(300)) if rng.random() < 0.5 else b"")

    # --- their parts ---

    def _token(self) -> bytes:
        rng = self._rng
        token = rng.choice(TOKENS)
        if rng.random() < 0.3:
            return self._changed(token)
        return token if rng.random() < 0.9 else rng.randbytes(rng.randrange(3000))

    def _proof(self, token: bytes) -> tuple[Message, int]:
        return SaslAuthenticateRequest(auth_bytes=token), self._rng.randrange(3)

    def _web_token(self) -> bytes:
        rng = self._rng
        head = {"alg": rng.choice(("none", "HS256", "RS256", "ES256", "", 5)), "kid": "key"}
        claims: dict[str, Any] = {
            "sub": "admin",
            "exp": rng.choice((2**31, 0, -1, 1e400, "x", None)),
            "aud": [],
        }
        segments = [json.dumps(each).encode() for each in (head, claims)]
        segments.append(rng.randbytes(rng.choice((0, 32, 256))))
        coded = [base64.urlsafe_b64encode(each).rstrip(b"=") for each in segments]
        token = b".".join(coded[: rng.randrange(1, 4)])
        return self._changed(token) if rng.random() < 0.5 else token

    def _changed(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for _ in range(self._rng.randrange(1, 4) if changed else 0):
            changed[self._rng.randrange(len(changed))] = self._rng.randrange(256)
        return bytes(changed)

    def _spoiled(self, content: bytes) -> bytes:
        """Return it with bytes changed, cut anywhere, or as it is."""
        draw = self._rng.random()
        if draw < 0.4:
            content = self._changed(content)
        if 0.3 < draw < 0.6:
            content = content[: self._rng.randrange(1, len(content) + 1)]
        return content

    def _parts(self, content: bytes) -> list[bytes]:
        if self._rng.random() < 0.7:
            return [content]
        at = self._rng.randrange(len(content) + 1)
        return [part for part in (content[:at], content[at:]) if part]


def _framed(messages: list[tuple[Message, int]]) -> bytes:
    return b"".join(framed(frame_of(message, version)) for message, version in messages)


def client_hellos() -> Iterator[bytes]:
    """Return the first messages of clients with different versions of TLS."""
    for number in range(CLIENT_HELLOS):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if number % 4 == 3:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        outgoing = ssl.MemoryBIO()
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        yield outgoing.read()
