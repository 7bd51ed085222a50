"""A connection to one broker, for one request at a time.

A link asks its broker for ApiVersions first and then speaks the highest version of each API
that both sides know. Each failure is a `LinkError` whose message names the broker and the API.
With a `LinkSecurity` the connection is encrypted, or its client authenticates, or both. If the
broker limits sessions, the link authenticates again before the end (KIP-368).
"""

import contextlib
import socket
import time
from collections.abc import Iterator
from struct import Struct
from typing import TypeVar

from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.version import __version__
from barnabas.protocol.apis import APIS, KEYS, ApiFacts
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.wire_failures import DemandError, LinkError, UnservedError

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 30.0
API_VERSIONS = 18
ANSWER_BYTES_MAX = 1 << 28
RENEWED_AFTER = 0.85
"""The part of a session after which the link authenticates again."""
TLS_RECORD = b"\x15\x03\x03"
"""The beginning of a TLS server's alert to a client that does not speak TLS."""

LENGTH = Struct(">i")
_FIRST_CODE = Struct(">h")

M = TypeVar("M", bound=Message)


class Link:
    """One connection, and the versions that its broker serves."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "barnabas",
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        security: LinkSecurity | None = None,
    ) -> None:
        self._client_id = client_id
        self._answer_timeout_s = answer_timeout_s
        self._address = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        self._socket.settimeout(answer_timeout_s)
        self._correlation_id = 0
        self._login = None if security is None else security.login
        self._expires_s: float | None = None
        """When to authenticate again."""
        self._served: dict[int, tuple[int, int]] = {}
        try:
            if security is not None:
                self._socket = security.secure(self._socket, host, self._address)
            self._served = self._ask_versions()
            self._log_in()
        except LinkError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the socket's number, to wait for answers of several links with `select`."""
        return self._socket.fileno()

    def version(self, request: type[Message]) -> int:
        """Return the highest version of an API that both sides know."""
        key = KEYS[request.__name__]
        facts = APIS[key]
        low, high = self._served.get(key, (0, -1))
        version = min(facts.high, high)
        if version < max(facts.low, low):
            raise UnservedError(
                f"The broker at {self._address} does not serve {facts.name} in a version known "
                f"here ({facts.low} to {facts.high}); upgrade the broker"
            )
        return version

    def ask(self, request: Message, expected: type[M]) -> M:
        """Send a request and return its answer."""
        self._stay_logged_in()
        return self._ask(request, expected)

    def _ask(self, request: Message, expected: type[M]) -> M:
        version = self.version(type(request))
        facts = APIS[KEYS[type(request).__name__]]
        frame = self._exchange(request, facts, version)
        with self._blamed(facts):
            return decode_exact(expected, version, frame, 5 if is_flexible(facts, version) else 4)

    def _stay_logged_in(self) -> None:
        """Authenticate again if the session expires soon; no answer may be outstanding."""
        if self._expires_s is not None and time.monotonic() >= self._expires_s:
            self._log_in()

    def _log_in(self) -> None:
        if self._login is None:
            return
        lifetime_ms = self._login.log_in(
            self._address,
            lambda request: self._ask(request, SaslHandshakeResponse),
            lambda request: self._ask(request, SaslAuthenticateResponse),
        )
        renew_s = lifetime_ms / 1000 * RENEWED_AFTER
        self._expires_s = time.monotonic() + renew_s if lifetime_ms else None

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(
            client_software_name=self._client_id, client_software_version=__version__
        )
        facts, version = APIS[API_VERSIONS], APIS[API_VERSIONS].high
        frame = self._exchange(request, facts, version)
        with self._blamed(facts):
            # A broker older than the request answers with this code, in version 0 (KIP-511).
            if frame[4:6] == _FIRST_CODE.pack(ErrorCode.UNSUPPORTED_VERSION):
                version = 0
                frame = self._exchange(request, facts, version)
            answer = decode_exact(ApiVersionsResponse, version, frame, 4)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def _head(self, facts: ApiFacts, version: int) -> bytes:
        """Return the header of the next request."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=KEYS[facts.request],
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        return encoder(RequestHeader, 2 if version >= facts.flexible_from else 1)(header)

    def _exchange(self, request: Message, facts: ApiFacts, version: int) -> bytes:
        body = self._head(facts, version) + encoder(type(request), version)(request)
        with self._blamed(facts):
            self._socket.sendall(LENGTH.pack(len(body)) + body)
            head = self._receive(4)
            if head[:3] == TLS_RECORD:
                raise DemandError(
                    f"{self._address} speaks TLS; set security.protocol to SSL or SASL_SSL"
                )
            (size,) = LENGTH.unpack(head)
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise WireError(f"invalid response length {size}")
            frame = self._receive(size)
            if frame[:4] != LENGTH.pack(self._correlation_id):
                raise WireError("a response with the wrong correlation id")
        return frame

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    @contextlib.contextmanager
    def _blamed(self, facts: ApiFacts) -> Iterator[None]:
        """Turn errors into a `LinkError` that names the broker and the API."""
        try:
            yield
        except TimeoutError as error:
            raise LinkError(
                f"{self._address} did not answer {facts.name} within "
                f"{self._answer_timeout_s:.0f} s; look at its log, or try again"
            ) from error
        except OSError as error:
            if self._login is None and self._served:
                raise DemandError(
                    f"{self._address} closed the connection on {facts.name}; if its listener "
                    "demands a login, set security.protocol and sasl.mechanism (with --config FILE "
                    "or -X), else look at the broker's log"
                ) from error
            raise LinkError(
                f"{self._address} closed the connection on {facts.name}; check security.protocol "
                "and the port, and look at the broker's log"
            ) from error
        except WireError as error:
            raise LinkError(
                f"{self._address} did not answer {facts.name} as a Kafka broker ({error}); "
                "check the port"
            ) from error


def is_flexible(facts: ApiFacts, version: int) -> bool:
    """Tell whether an answer has a tagged section in its header."""
    return version >= facts.flexible_from and KEYS[facts.request] != API_VERSIONS
