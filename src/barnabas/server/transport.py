"""The transport of one connection: bytes in and out of its socket.

Outgoing bytes are queued as chunks and sent in few, gathered sends. Slices of files are sent by
sendfile if they are large enough to make it worthwhile.

The other parts of a connection use the interface `Transport`. `PlainTransport` implements it
without encryption, `server/tls/tls_transport.py` with TLS.
"""

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.server.edge_ports import AcceptedConnection, StreamSocket, TransportOwner

MSG_MORE = getattr(socket, "MSG_MORE", 0)
SENDFILE_BYTES_MAX = 1 << 30
JOIN_BYTES_MAX = 64 * 1024
FILE_TOO_SHORT = "the file is shorter than the slice that was to be sent"


class Transport(Protocol):
    """The bytes of one connection, in both directions."""

    descriptor: int
    out: deque[Chunk]
    """The chunks to send, the oldest first."""
    out_bytes: int
    """How many bytes were queued since the queue was last empty."""
    is_writing: bool
    """Whether it waits for the kernel to have room."""

    def receive(self, buffer: memoryview, /) -> int:
        """Read what has arrived; 0 is the end. Raise `BlockingIOError` if nothing has."""

    def send_queued(self) -> bool:
        """Send as much of the queue as the kernel takes; return whether a part of a chunk left."""

    def end_sending(self) -> None:
        """Tell the client that nothing follows; go on receiving."""

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_readable` whenever bytes have arrived, or stop doing so."""

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_writable` whenever the kernel has room, or stop doing so."""

    def close(self, connection: AcceptedConnection) -> None:
        """Stop watching, close the socket, drop the queue."""


class PlainTransport:
    """A transport that sends and receives bytes as they are."""

    __slots__ = (
        "_file_sent",
        "_is_reading",
        "_server",
        "_socket",
        "descriptor",
        "is_writing",
        "out",
        "out_bytes",
        "receive",
    )

    def __init__(self, server: TransportOwner, accepted: StreamSocket) -> None:
        self._server = server
        self._socket = accepted
        # The socket's own function, to save a call in each event of the connection.
        self.receive: Callable[[memoryview], int] = accepted.recv_into
        self.descriptor = accepted.fileno()
        self.out: deque[Chunk] = deque()
        self.out_bytes = 0
        self._file_sent = 0
        """How much of the slice at the front of the queue has been sent."""
        self._is_reading = True
        self.is_writing = False

    def send_queued(self) -> bool:
        """Send as much of the queue as the kernel takes; return whether a part of a chunk left."""
        out = self.out
        moved = False
        while out:
            head = out[0]
            if len(out) == 1 and not isinstance(head, FileSlice):
                joined, count, more = head, 1, 0
            elif isinstance(head, FileSlice) and head.length >= self._server.sendfile_bytes:
                if not self._send_file(head):
                    return moved
                moved = True
                continue
            else:
                joined, count, more = self._join()
            try:
                sent = self._socket.send(joined, more)
            except BlockingIOError:
                sent = 0
            if sent < len(joined):
                self._replace_front(count, memoryview(joined)[sent:])
                return moved or sent > 0
            if count == len(out):
                out.clear()
                break
            for _ in range(count):
                out.popleft()
        self.out_bytes = 0
        return moved

    def _join(self) -> tuple[Buffer, int, int]:
        """Join small chunks; return them, how many they are, and MSG_MORE if a file follows."""
        parts: list[Buffer] = []
        size = 0
        for chunk in self.out:
            if isinstance(chunk, FileSlice):
                if chunk.length >= self._server.sendfile_bytes:
                    return (parts[0] if len(parts) == 1 else b"".join(parts)), len(parts), MSG_MORE
                parts.append(_read_all(chunk))
            else:
                parts.append(chunk)
            size += len(parts[-1])
            if size >= JOIN_BYTES_MAX:
                break
        return (parts[0] if len(parts) == 1 else b"".join(parts)), len(parts), 0

    def _replace_front(self, count: int, rest: Buffer) -> None:
        for _ in range(count):
            self.out.popleft()
        self.out.appendleft(rest)

    def _send_file(self, piece: FileSlice) -> bool:
        """Send some of a slice; return whether the kernel took any of it."""
        position, left = piece.position + self._file_sent, piece.length - self._file_sent
        try:
            sent = os.sendfile(
                self.descriptor,
                self._server.descriptor_of(piece.file),
                position,
                min(left, SENDFILE_BYTES_MAX),
            )
        except BlockingIOError:
            return False
        if sent == 0:
            raise ConnectionError(FILE_TOO_SHORT)
        self._file_sent += sent
        if self._file_sent == piece.length:
            self._file_sent = 0
            self.out.popleft()
        return True

    def end_sending(self) -> None:
        """Tell the client that nothing follows; go on receiving."""
        self._socket.shutdown(socket.SHUT_WR)

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_readable` whenever bytes have arrived, or stop doing so."""
        if wanted != self._is_reading:
            self._is_reading = wanted
            self._server.watch_reading(connection, wanted=wanted)

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_writable` whenever the kernel has room, or stop doing so."""
        if wanted != self.is_writing:
            self.is_writing = wanted
            self._server.watch_writing(connection, wanted=wanted)

    def close(self, connection: AcceptedConnection) -> None:
        """Stop watching, close the socket, drop the queue."""
        self.watch_reading(connection, wanted=False)
        self.watch_writing(connection, wanted=False)
        self._socket.close()
        self.out.clear()


def _read_all(piece: FileSlice) -> bytes:
    content = piece.file.read(piece.position, piece.length)
    if len(content) != piece.length:
        raise ConnectionError(FILE_TOO_SHORT)
    return content
