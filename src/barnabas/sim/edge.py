"""The broker's edge in a simulation: the server's own connections, on sockets in memory.

Transport, connection and Kafka session (`barnabas.server`) cut bytes into frames, keep answers in
order, and do not read from a client that is behind. They run here unchanged. `Wire` replaces the
kernel's socket, and `SimServer` the event loop around it, with limits that a test may set low.
Slices of files are read and sent like other bytes, since sendfile needs a kernel.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from struct import Struct

from barnabas.handlers.shapes import Shapes
from barnabas.model.ports import Buffer, File
from barnabas.node.node import Node
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.ports import AcceptedConnection
from barnabas.server.transport import PlainTransport

_LENGTH = Struct(">i")

Later = Callable[[Callable[[], None]], None]
"""Runs a callback as an event of its own."""
Problems = Callable[[AcceptedConnection, str | Exception], None]
"""Is called with a connection that the server has closed, and the reason; it may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where connections stop reading, and how much they take at once."""

    receive_bytes: int = 64 * 1024
    queued_bytes: int = 1024 * 1024
    queued_answers: int = 1000
    frames_per_event: int = 256


class Wire:
    """One accepted socket: bytes that have arrived, and answers cut into frames again."""

    def __init__(
        self, on_answer: Callable[[bytes], None], room: Callable[[], int] | None = None
    ) -> None:
        self._on_answer = on_answer
        self._room = room
        """Returns how many bytes the kernel takes now; without it, everything."""
        self._arrived = bytearray()
        self._sent = bytearray()
        self._ended = False
        self.is_watched = True
        """Whether the server reads bytes that arrive."""
        self.is_queued = False
        """Whether a read is scheduled."""

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read, if only the end."""
        return bool(self._arrived) or self._ended

    @property
    def unread_bytes(self) -> int:
        """How much has arrived and was not read."""
        return len(self._arrived)

    def arrive(self, content: Buffer) -> None:
        """Have bytes arrive from the client."""
        self._arrived += content

    def end(self) -> None:
        """Have the client close its side."""
        self._ended = True

    def fileno(self) -> int:
        """Return no descriptor: there is no kernel."""
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read what has arrived."""
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
    """Takes the place of `server/server.py` for its connections."""

    def __init__(self, node: Node, limits: Limits, soon: Later, on_problem: Problems) -> None:
        self.node = node
        self.shapes = Shapes(node)
        self.receive_buffer = memoryview(bytearray(limits.receive_bytes))
        self.buffers = BufferPool()
        self.dirty: list[AcceptedConnection] = []
        self.max_request_bytes = node.settings.performance.max_request_bytes
        self.sendfile_bytes = sys.maxsize
        self.queued_bytes_max = limits.queued_bytes
        self.queued_answers_max = limits.queued_answers
        self.frames_per_event = limits.frames_per_event
        self.event_ms_max = 1  # time stands still within an event
        self._soon = soon
        self._on_problem = on_problem
        self._wires: dict[AcceptedConnection, Wire] = {}
        self._writing: set[AcceptedConnection] = set()

    def accept(self, wire: Wire, client: str, *, peer: bool = False) -> Connection:
        """Return the connection of a client that has just connected."""
        transport = PlainTransport(self, wire)
        connection = Connection(self, transport, client, partial(KafkaSession, self), peer=peer)
        self._wires[connection] = wire
        return connection

    def readable(self, connection: AcceptedConnection) -> None:
        """Have a connection read, as the event loop does where bytes have arrived."""
        wire = self._wires.get(connection)
        if wire is not None and wire.is_watched and wire.is_readable:
            connection.on_readable()
            self._look_again(connection, wire)

    def flush(self) -> None:
        """Send what was answered, at the end of an event."""
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

            self._soon(read)

    # --- what connections ask for ---

    def monotonic_ms(self) -> int:
        """Return the simulated clock."""
        return self.node.timers.now_ms

    def descriptor_of(self, file: File) -> int:
        """Refuse: nothing is large enough here to be sent by sendfile."""
        raise AssertionError(f"{file.path} is not to be sent by sendfile")

    def in_turn(self, callback: Callable[[], None]) -> None:
        """Run a callback as an event of its own."""
        self._soon(callback)

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Have the connection read bytes that arrive, or not."""
        wire = self._wires[connection]
        wire.is_watched = wanted
        self._look_again(connection, wire)

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Have the connection try again; it asks once more where there is still no room."""
        if wanted:
            self._writing.add(connection)
            self._soon(lambda: self._write(connection))
        else:
            self._writing.discard(connection)

    def _write(self, connection: AcceptedConnection) -> None:
        if connection not in self._writing:
            return
        connection.on_writable()
        if connection in self._writing:
            self._soon(lambda: self._write(connection))

    def hand_over(
        self, connection: AcceptedConnection, successor: AcceptedConnection, event: str
    ) -> None:
        """Report an event, and have another object serve the connection's socket."""
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
        """Close a connection whose request met a defect."""
        connection.close()
        self._on_problem(connection, error)

    def lost(self, connection: AcceptedConnection, error: OSError) -> None:
        """Close a connection that broke."""
        connection.close()
        self._on_problem(connection, error)
