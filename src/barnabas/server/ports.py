"""What a connection needs: a socket, and the server that accepted it.

`server/server.py` fills these with an event loop and the kernel's sockets, `sim/edge.py` with a
simulated clock and sockets in memory. `Connection` is the same in both.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.handlers.shapes import Shapes
from barnabas.model.ports import Buffer, File
from barnabas.node.node import Node
from barnabas.server.buffers import BufferPool

if TYPE_CHECKING:
    from barnabas.server.connection import Connection


class StreamSocket(Protocol):
    """A connected socket that never blocks: it raises `BlockingIOError` instead."""

    def fileno(self) -> int:
        """Return the descriptor."""

    def recv_into(self, buffer: memoryview) -> int:
        """Read what has arrived; 0 is the end."""

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Send the beginning of something; return how many bytes the kernel took."""

    def close(self) -> None:
        """Release it."""


class ConnectionOwner(Protocol):
    """The server, as its connections know it."""

    node: Node
    shapes: Shapes
    receive_buffer: memoryview
    """All connections read into it, one at a time."""
    buffers: BufferPool
    dirty: "list[Connection]"
    """Connections that are flushed at the end of the event."""
    max_request_bytes: int
    sendfile_bytes: int
    """Slices of files from this size on are sent by sendfile."""
    queued_bytes_max: int
    """A connection with more bytes to send than this is not read from."""
    queued_answers_max: int
    """A connection with more unfinished answers than this is not read from."""
    frames_per_event: int
    """A connection handles at most so many requests before others have their turn."""
    event_ms_max: int
    """It begins no further request once its event has taken so long."""

    def monotonic_ms(self) -> int:
        """Return a clock that never jumps."""

    def descriptor_of(self, file: File) -> int:
        """Return the descriptor of a file, for sendfile."""

    def in_turn(self, callback: Callable[[], None]) -> None:
        """Run a callback as an event of its own, once other connections had their turn."""

    def watch_reading(self, connection: "Connection", *, wanted: bool) -> None:
        """Call `on_readable` whenever bytes have arrived, or stop doing so."""

    def watch_writing(self, connection: "Connection", *, wanted: bool) -> None:
        """Call `on_writable` whenever the kernel has room, or stop doing so."""

    def forget(self, connection: "Connection", *, writing: bool, reading: bool) -> None:
        """Drop a connection that closes."""

    def refuse(self, connection: "Connection", problem: str) -> None:
        """Close a connection whose client does not speak the protocol."""

    def failed(self, connection: "Connection", error: Exception) -> None:
        """Close a connection whose request met a defect of the broker's."""

    def lost(self, connection: "Connection", error: OSError) -> None:
        """Close a connection that broke."""
