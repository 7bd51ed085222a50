"""A client that sends frames exactly as given, valid or not, and reads the responses."""

import contextlib
import socket
from collections.abc import Sequence
from struct import Struct
from types import TracebackType
from typing import TypeVar

from barnabas.protocol.apis import APIS, KEYS
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.request_header import RequestHeader

LENGTH = Struct(">i")
PATIENCE_S = 30.0
API_VERSIONS = 18

M = TypeVar("M", bound=Message)


def frame_of(request: Message, version: int, correlation_id: int = 1) -> bytes:
    """Return a request with its header, without the length in front."""
    key = KEYS[type(request).__name__]
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="raw",
    )
    flexible = version >= APIS[key].flexible_from
    head = encoder(RequestHeader, 2 if flexible else 1)(header)
    return head + encoder(type(request), version)(request)


def framed(frame: bytes) -> bytes:
    """Return a frame with its length prefix."""
    return LENGTH.pack(len(frame)) + frame


class RawClient:
    """One connection to a broker."""

    def __init__(self, address: tuple[str, int], patience_s: float = PATIENCE_S) -> None:
        self.socket = socket.create_connection(address, patience_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, content: bytes) -> None:
        """Send bytes unchanged."""
        self.socket.sendall(content)

    def send_request(self, request: Message, version: int, correlation_id: int = 1) -> None:
        """Send a request with its header and length."""
        self.send(framed(frame_of(request, version, correlation_id)))

    def receive_frame(self) -> bytes:
        """Return the next response; raise `EOFError` if the connection was closed."""
        (size,) = LENGTH.unpack(self._receive(4))
        return self._receive(size)

    def receive(self, expected: type[M], version: int) -> M:
        """Return the next response as a message."""
        frame = self.receive_frame()
        facts = next(facts for facts in APIS.values() if facts.response == expected.__name__)
        flexible = version >= facts.flexible_from and facts.response != "ApiVersionsResponse"
        message, end = decoder(expected, version)(frame, 5 if flexible else 4)
        assert end == len(frame), f"{len(frame) - end} bytes are left of {expected.__name__}"
        return message

    def ask(self, request: Message, version: int, expected: type[M]) -> M:
        """Send a request and return its response."""
        self.send_request(request, version)
        return self.receive(expected, version)

    def was_closed(self) -> bool:
        """Read until the broker closes the connection; return False if it does not in time."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def reset(self) -> None:
        """Close immediately with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, Struct("ii").pack(1, 0))
        self.socket.close()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self.socket.close()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise EOFError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def pipelined(requests: Sequence[tuple[Message, int]]) -> bytes:
    """Return the bytes of several requests, with correlation ids from 0."""
    return b"".join(
        framed(frame_of(request, version, number))
        for number, (request, version) in enumerate(requests)
    )
