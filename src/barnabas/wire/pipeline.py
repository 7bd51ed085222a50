"""One connection to one broker, with several requests in flight.

    pipeline.send(first); pipeline.send(second)
    pipeline.receive(ProduceResponse); pipeline.receive(ProduceResponse)

Answers arrive in the order of the requests, as the protocol guarantees. Record batches are passed
to the socket without a copy. Close a pipeline after its first failure.
"""

import socket
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeVar

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.apis import APIS, KEYS, ApiFacts
from barnabas.protocol.codec import decode_exact, parts_encoder
from barnabas.protocol.message import Message
from barnabas.wire.link import (
    ANSWER_BYTES_MAX,
    ANSWER_TIMEOUT_S,
    LENGTH,
    Link,
    is_flexible,
)
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.wire_failures import LinkError

BUFFERS_A_CALL = 64
"""How many buffers one system call gets; every system accepts at least this many."""

ROOM_BYTES = 1 << 20
"""The initial size of a buffer for answers."""

M = TypeVar("M", bound=Message)


class Pipeline(Link):
    """A link on which a request need not wait for the answer to the one before it."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "barnabas",
        ceilings: Mapping[type[Message], int] | None = None,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        security: LinkSecurity | None = None,
    ) -> None:
        """Take the highest version to use for some APIs, besides the arguments of `Link`."""
        self._ceilings = dict(ceilings or {})
        super().__init__(host, port, client_id, answer_timeout_s, security)
        self._awaited: deque[tuple[int, ApiFacts, int]] = deque()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def in_flight(self) -> int:
        """How many answers are outstanding."""
        return len(self._awaited)

    def version(self, request: type[Message]) -> int:
        """Return the highest version that both sides know and that the ceiling allows."""
        return min(super().version(request), self._ceilings.get(request, 32767))

    def ask(self, request: Message, expected: type[M]) -> M:
        """Send a request and return its answer; no other may be outstanding."""
        assert not self._awaited, "a response with the wrong correlation id comes first"
        return super().ask(request, expected)

    def send(self, request: Message, *, answered: bool = True) -> None:
        """Send a request and return at once; `answered` says whether it gets an answer."""
        if not self._awaited:
            self._stay_logged_in()
        version = self.version(type(request))
        facts = APIS[KEYS[type(request).__name__]]
        head = self._head(facts, version)
        parts = parts_encoder(type(request), version)(request)
        size = len(head) + sum(len(part) for part in parts)
        if answered:
            self._awaited.append((self._correlation_id, facts, version))
        with self._blamed(facts):
            self._send_all([LENGTH.pack(size) + head, *parts])

    def receive(self, expected: type[M]) -> M:
        """Wait for the answer to the oldest unanswered request."""
        if not self._awaited:
            raise LinkError(f"{self._address} was reconnected; no answer is outstanding")
        correlation_id, facts, version = self._awaited.popleft()
        with self._blamed(facts):
            (size,) = LENGTH.unpack(self._receive(4))
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise WireError(f"invalid response length {size}")
            frame = self._receive_frame(size)
            if frame[:4] != LENGTH.pack(correlation_id):
                raise WireError("a response with the wrong correlation id")
            return decode_exact(expected, version, frame, 5 if is_flexible(facts, version) else 4)

    def _receive_frame(self, size: int) -> bytes | memoryview:
        return self._receive(size)

    def _send_all(self, parts: Sequence[Buffer]) -> None:
        if isinstance(self._socket, ssl.SSLSocket):  # it has no gathered send
            self._socket.sendall(b"".join(parts))
            return
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        first = 0
        while first < len(views):
            sent = self._socket.sendmsg(views[first : first + BUFFERS_A_CALL])
            while first < len(views) and sent >= len(views[first]):
                sent -= len(views[first])
                first += 1
            if sent:
                views[first] = views[first][sent:]


class ReadingPipeline(Pipeline):
    """A pipeline for large answers: views of one buffer, valid until the next `receive`."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "barnabas",
        ceilings: Mapping[type[Message], int] | None = None,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        security: LinkSecurity | None = None,
    ) -> None:
        super().__init__(host, port, client_id, ceilings, answer_timeout_s, security)
        self.place = (host, port)
        """The address that it is connected to."""
        self._room = bytearray(ROOM_BYTES)

    def _receive_frame(self, size: int) -> memoryview:
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


class Pool:
    """Pipelines by address, opened on first use and kept."""

    def __init__(
        self,
        client_id: str,
        ceilings: Mapping[type[Message], int],
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        security: LinkSecurity | None = None,
    ) -> None:
        self._client_id = client_id
        self._security = security
        self._ceilings = ceilings
        self._answer_timeout_s = answer_timeout_s
        self._pipelines: dict[tuple[str, int], Pipeline] = {}

    def to(self, host: str, port: int) -> Pipeline:
        """Return the connection to an address."""
        found = self._pipelines.get((host, port))
        if found is None:
            try:
                found = Pipeline(
                    host,
                    port,
                    self._client_id,
                    self._ceilings,
                    self._answer_timeout_s,
                    self._security,
                )
            except OSError as error:
                raise LinkError(
                    f"No broker answers at {host}:{port} ({error.strerror or error}); start the "
                    "broker, or correct its advertised address"
                ) from error
            self._pipelines[host, port] = found
        return found

    def drop(self, host: str, port: int) -> None:
        """Close the connection to one address."""
        found = self._pipelines.pop((host, port), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all connections; the next use connects again."""
        for pipeline in self._pipelines.values():
            pipeline.close()
        self._pipelines.clear()
