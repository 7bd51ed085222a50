"""A transport and a session whose work is timed: see `slow_events.py`."""

import ssl

from barnabas.model.callers import Principal
from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.apis import APIS
from barnabas.protocol.headers import parse_request_header
from barnabas.server.edge_ports import ConnectionOwner, Session, StreamSocket, TransportOwner
from barnabas.server.foreign import ForeignProtocol
from barnabas.server.slow_events import Facts, SlowEvents
from barnabas.server.tls.tls_transport import TlsTransport
from barnabas.server.transport import PlainTransport


class WatchedTransport(PlainTransport):
    """A transport whose sends are timed."""

    __slots__ = ("_events", "_host")

    def __init__(
        self, events: SlowEvents, server: TransportOwner, accepted: StreamSocket, host: str
    ) -> None:
        super().__init__(server, accepted)
        self._events = events
        self._host = host

    def send_queued(self) -> bool:
        """Send as much of the queue as the kernel takes; return whether a part of a chunk left."""
        return self._events.step(lambda: ("sending", {"client": self._host}), super().send_queued)


class WatchedTlsTransport(TlsTransport):
    """A TLS transport whose sends are timed."""

    __slots__ = ("_events", "_host")

    def __init__(
        self,
        events: SlowEvents,
        server: ConnectionOwner,
        accepted: ssl.SSLSocket,
        host: str,
        principal: Principal | None,
    ) -> None:
        super().__init__(server, accepted, principal)
        self._events = events
        self._host = host

    def send_queued(self) -> bool:
        """Send as much of the queue as the kernel takes; return whether a part of a chunk left."""
        return self._events.step(lambda: ("sending", {"client": self._host}), super().send_queued)


class WatchedSession:
    """A Kafka session whose requests are timed."""

    __slots__ = ("_events", "_host", "_session")

    def __init__(self, events: SlowEvents, session: Session, host: str) -> None:
        self._events = events
        self._session = session
        self._host = host

    @property
    def takes_short_frames(self) -> bool:
        """Ask the session."""
        return self._session.takes_short_frames

    def handle(self, frame: memoryview) -> None:
        """Have the session handle a request, as a step of the event."""
        self._events.step(lambda: self._describe(frame), self._session.handle, frame)

    def check(self, size: int, head: Buffer) -> None:
        """Have the session check the beginning of a frame."""
        self._session.check(size, head)

    def charge(self, duration_ns: int) -> None:
        """Have the session charge its client."""
        self._session.charge(duration_ns)

    def has_room(self) -> bool:
        """Ask the session."""
        return self._session.has_room()

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Ask the session."""
        return self._session.recognise(first)

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def _describe(self, frame: memoryview) -> tuple[str, Facts]:
        facts: Facts = {"client": self._host, "bytes": len(frame)}
        try:
            header = parse_request_header(frame)
            name = f"{APIS[header.api_key].name} v{header.api_version}"
        except (WireError, KeyError):
            return "no request", facts
        return name, {**facts, "client_id": header.client_id}
