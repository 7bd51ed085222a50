"""Runs the server's own connections on sockets in memory.

Transport, connection and Kafka session (`barnabas.server`) cut bytes into frames, keep responses in
order, and stop reading from a client that does not read its responses. They run here unchanged.
`Wire` replaces the kernel's socket, and `SimServer` the event loop. Tests may set low limits.
Slices of files are read and sent like other bytes, since sendfile needs a kernel.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from struct import Struct

from barnabas.handlers.shapes import Shapes
from barnabas.model.callers import CLIENT_LISTENER, PEER_LISTENER, Listener, Principal
from barnabas.model.ports import Buffer, File
from barnabas.node.node import Node
from barnabas.server.buffered_memory import BufferedMemory
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import AcceptedConnection
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.sasl_session import open_session
from barnabas.server.transport import PlainTransport

_LENGTH = Struct(">i")
NS_PER_MS = 1_000_000

Later = Callable[[Callable[[], None]], None]
"""Runs a callback as a separate event."""
Problems = Callable[[AcceptedConnection, str | Exception], None]
"""Called with a connection that the server has closed, and the reason; it may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When connections stop reading, and how much they read at once."""

    receive_bytes: int = 64 * 1024
    queued_bytes: int = 1024 * 1024
    queued_answers: int = 1000
    frames_per_event: int = 256
    buffered_bytes: int = 0


class Wire:
    """An accepted socket: received bytes, and responses that are cut into frames again."""

    def __init__(
        self, on_answer: Callable[[bytes], None], room: Callable[[], int] | None = None
    ) -> None:
        self._on_answer = on_answer
        self._room = room
        """Returns how many bytes the kernel takes now; by default all."""
        self._arrived = bytearray()
        self._sent = bytearray()
        self._ended = False
        self.is_watched = True
        """Whether the server reads received bytes."""
        self.is_queued = False
        """Whether a read is scheduled."""

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read, including the end of the stream."""
        return bool(self._arrived) or self._ended

    @property
    def unread_bytes(self) -> int:
        """The number of bytes that have arrived and are unread."""
        return len(self._arrived)

    def arrive(self, content: Buffer) -> None:
        """Receive bytes from the client."""
        self._arrived += content

    def end(self) -> None:
        """Receive the end of the client's stream."""
        self._ended = True

    def fileno(self) -> int:
        """Return an invalid descriptor: there is no kernel."""
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read received bytes."""
        if not self.is_readable:
            raise BlockingIOError
        count = min(len(buffer), len(self._arrived))
        buffer[:count] = self._arrived[:count]
        del self._arrived[:count]
        return count

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Take as many bytes as there is room for."""
        del flags
        count = len(data) if self._room is None else min(len(data), self._room())
        if not count:
            raise BlockingIOError
        self._sent += memoryview(data)[:count]
        while len(self._sent) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._sent)[0]
            if len(self._sent) < end:
                break
            answer = bytes(self._sent[_LENGTH.size : end])
            del self._sent[:end]
            self._on_answer(answer)
        return count

    def shutdown(self, how: int, /) -> None:
        """Close one direction: nothing depends on it."""

    def close(self) -> None:
        """Release it: there is nothing to release."""


class SimServer:
    """Replaces `server/server.py` for its connections."""

    def __init__(self, node: Node, limits: Limits, soon: Later, on_problem: Problems) -> None:
        self.node = node
        self.shapes = Shapes(node)
        self.receive_buffer = memoryview(bytearray(limits.receive_bytes))
        self.buffers = BufferPool()
        self.memory = BufferedMemory(limits.buffered_bytes, self.in_turn)
        self.dirty: list[AcceptedConnection] = []
        self.max_request_bytes = node.settings.performance.max_request_bytes
        self.sendfile_bytes = sys.maxsize
        self.queued_bytes_max = limits.queued_bytes
        self.queued_answers_max = limits.queued_answers
        self.frames_per_event = limits.frames_per_event
        self.event_ms_max = 1  # time does not pass within an event
        self._call_soon = soon
        self._on_problem = on_problem
        self._wires: dict[AcceptedConnection, Wire] = {}
        self._writing: set[AcceptedConnection] = set()

    def accept(
        self,
        wire: Wire,
        client: str,
        *,
        peer: bool = False,
        listener: Listener = CLIENT_LISTENER,
        principal: Principal | None = None,
    ) -> Connection:
        """Return the connection of a client that has just connected, maybe with a certificate."""
        transport = PlainTransport(self, wire)
        named = PEER_LISTENER if peer else listener
        connection = Connection(self, transport, client, partial(open_session, self), named)
        if principal is not None:
            session = connection.session
            assert isinstance(session, KafkaSession), "certificates are for listeners without SASL"
            session.authenticate(principal)
        self._wires[connection] = wire
        return connection

    def readable(self, connection: AcceptedConnection) -> None:
        """Let a connection read, as the event loop does when bytes have arrived."""
        wire = self._wires.get(connection)
        if wire is not None and wire.is_watched and wire.is_readable:
            connection.on_readable()
            self._look_again(connection, wire)

    def flush(self) -> None:
        """Send the responses of an event at its end."""
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for connection in dirty:
                connection.flush()

    def _look_again(self, connection: AcceptedConnection, wire: Wire) -> None:
        """Schedule another read if bytes are left: a socket stays readable until it is empty."""
        if wire.is_watched and wire.is_readable and not wire.is_queued and not connection.closed:
            wire.is_queued = True

            def read() -> None:
                wire.is_queued = False
                self.readable(connection)

            self._call_soon(read)

    # --- the interface that connections use ---

    def monotonic_ms(self) -> int:
        """Return the simulated clock."""
        return self.node.timers.now_ms

    def monotonic_ns(self) -> int:
        """Return the same clock: time stands still within an event."""
        return self.node.timers.now_ms * NS_PER_MS

    def descriptor_of(self, file: File) -> int:
        """Refuse: no response is large enough for sendfile here."""
        raise AssertionError(f"{file.path} must not be sent by sendfile")

    def in_turn(self, callback: Callable[[], None]) -> None:
        """Run a callback as a separate event."""
        self._call_soon(callback)

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Start or stop reading received bytes on a connection."""
        wire = self._wires[connection]
        wire.is_watched = wanted
        self._look_again(connection, wire)

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Let the connection write again; it asks once more if there is still no room."""
        if wanted:
            self._writing.add(connection)
            self._call_soon(lambda: self._write(connection))
        else:
            self._writing.discard(connection)

    def _write(self, connection: AcceptedConnection) -> None:
        if connection not in self._writing:
            return
        connection.on_writable()
        if connection in self._writing:
            self._call_soon(lambda: self._write(connection))

    def hand_over(
        self, connection: AcceptedConnection, successor: AcceptedConnection, event: str
    ) -> None:
        """Report an event, and let another object serve the connection's socket."""
        self._wires[successor] = self._wires.pop(connection)
        self._on_problem(connection, event)

    def forget(self, connection: AcceptedConnection) -> None:
        """Drop a connection."""
        self._wires.pop(connection, None)

    def refuse(self, connection: AcceptedConnection, problem: str) -> None:
        """Close a connection that does not speak the protocol."""
        connection.flush()
        connection.close()
        self._on_problem(connection, problem)

    def failed(self, connection: AcceptedConnection, error: Exception) -> None:
        """Close a connection whose request hit a defect."""
        connection.close()
        self._on_problem(connection, error)

    def lost(self, connection: AcceptedConnection, error: OSError) -> None:
        """Close a connection that broke."""
        connection.close()
        self._on_problem(connection, error)
