"""A connection on which the next request goes out before the last answer is read.

A broker answers the requests of one connection in order. Whoever reads much sends the next request
as soon as it knows what to ask for, and works on the last answer while the broker makes the next.

Answers are views of one buffer that is used again: an answer is valid until the next `receive`.
"""

from collections import deque
from typing import NamedTuple, TypeVar

from barnabas.model.errors import WireError
from barnabas.protocol.apis import APIS, ApiFacts
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.wire.link import _KEYS, _LENGTH, ANSWER_BYTES_MAX, Link, _is_flexible

ROOM_BYTES = 1 << 20

M = TypeVar("M", bound=Message)


class _Sent(NamedTuple):
    correlation: bytes
    facts: ApiFacts
    version: int


class PipelinedLink(Link):
    """One connection to one broker, with requests on their way."""

    def __init__(self, host: str, port: int, client_id: str = "barnabas") -> None:
        self._sent: deque[_Sent] = deque()
        self._room = bytearray(ROOM_BYTES)
        self.place = (host, port)
        """Where it was opened to."""
        super().__init__(host, port, client_id)

    @property
    def waiting(self) -> int:
        """How many answers are still to come."""
        return len(self._sent)

    def send(self, request: Message, highest: int | None = None) -> None:
        """Send a request, in the highest version that both sides and the caller know."""
        version = self.version(type(request))
        version = version if highest is None else min(version, highest)
        key = _KEYS[type(request).__name__]
        facts = APIS[key]
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        head = encoder(RequestHeader, 2 if version >= facts.flexible_from else 1)(header)
        body = head + encoder(type(request), version)(request)
        with self._blamed(facts):
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        self._sent.append(_Sent(_LENGTH.pack(self._correlation_id), facts, version))

    def receive(self, expected: type[M]) -> M:
        """Return the answer to the oldest request; it ends with the next call."""
        sent = self._sent.popleft()
        with self._blamed(sent.facts):
            (size,) = _LENGTH.unpack(self._receive(4))
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise WireError(f"an answer of {size} bytes")
            frame = self._receive_into_room(size)
            if frame[:4] != sent.correlation:
                raise WireError("an answer to another request")
            start = 5 if _is_flexible(sent.facts, sent.version) else 4
            return decode_exact(expected, sent.version, frame, start)

    def _receive_into_room(self, size: int) -> memoryview:
        if size > len(self._room):
            self._room = bytearray(size)
        frame = memoryview(self._room)[:size]
        filled = 0
        while filled < size:
            count = self._socket.recv_into(frame[filled:])
            if not count:
                raise ConnectionResetError
            filled += count
        return frame
