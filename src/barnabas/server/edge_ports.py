"""The interfaces between the parts of a connection, and between them and the server.

    socket -> transport -> connection (frames, pacing) -> session (one protocol's requests)

`server/server.py` implements the server's side with an event loop and the kernel's sockets,
`sim/edge.py` with a simulated clock and sockets in memory. The parts are the same in both.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.handlers.shapes import Shapes
from barnabas.model.ports import Buffer, File
from barnabas.node.node import Node
from barnabas.server.buffered_memory import BufferedMemory
from barnabas.server.buffers import BufferPool
from barnabas.server.foreign import ForeignProtocol

if TYPE_CHECKING:
    from barnabas.server.connection import Connection


class StreamSocket(Protocol):
    """A connected socket that never blocks: it raises `BlockingIOError` instead."""

    def fileno(self) -> int:
        """Return the descriptor."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read what has arrived; 0 is the end."""

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Send the beginning of something; return how many bytes the kernel took."""

    def shutdown(self, how: int, /) -> None:
        """Close one direction."""

    def close(self) -> None:
        """Release it."""


class AcceptedConnection(Protocol):
    """A connection of any protocol, as the server uses it."""

    host: str
    peer: bool
    """Whether it came to the listener for other brokers."""
    closed: bool
    last_progress_ms: int
    stalled_since_ms: int | None
    """When the client last sent a part of an unfinished frame, or read a part of an answer."""

    @property
    def descriptor(self) -> int:
        """The socket's descriptor."""

    @property
    def is_muted(self) -> bool:
        """Whether the broker does not read from it, so that the client cannot make progress."""

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long a stall may last, given the limit for a small frame."""

    def on_readable(self) -> None:
        """Read what has arrived."""

    def on_writable(self) -> None:
        """Send more: the kernel has room."""

    def flush(self) -> None:
        """Send as much of the queue as the kernel takes."""

    def close(self) -> None:
        """Close the socket and drop what is queued for it."""


class Session(Protocol):
    """Handles the frames of a connection for one protocol."""

    @property
    def takes_short_frames(self) -> bool:
        """Whether the next frame may be too short for a request of Kafka's protocol."""

    def handle(self, frame: memoryview) -> None:
        """Handle a request; raise `WireError` if the connection must be closed."""

    def check(self, size: int, head: Buffer) -> None:
        """Raise `WireError` if a frame of this size must not begin with these two bytes.

        It is called for frames that arrive in parts, before memory is allocated for them.
        """

    def charge(self, duration_ns: int) -> None:
        """Charge the time that an event of the connection took to its client."""

    def has_room(self) -> bool:
        """Tell whether the client may send more requests, given the answers it has not read."""

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Return the other protocol that a connection's first four bytes belong to, if any.

        It is called if they are not the length of a frame.
        """

    def close(self) -> None:
        """Abandon the answers that are pending."""


OpenSession = Callable[["Connection"], Session]
"""Returns the session for a new connection. Each listener has its own."""


class TransportOwner(Protocol):
    """The server, as transports use it."""

    sendfile_bytes: int
    """Slices of files from this size on are sent by sendfile."""

    def descriptor_of(self, file: File) -> int:
        """Return the descriptor of a file, for sendfile."""

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call `on_readable` whenever bytes have arrived, or stop doing so."""

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call `on_writable` whenever the kernel has room, or stop doing so."""


class ConnectionOwner(TransportOwner, Protocol):
    """The server, as its connections and their sessions use it."""

    node: Node
    shapes: Shapes
    receive_buffer: memoryview
    """The buffer that all connections read into, one at a time."""
    buffers: BufferPool
    memory: BufferedMemory
    """The memory that frames and answers of clients take."""
    dirty: list[AcceptedConnection]
    """Connections that are flushed at the end of the event."""
    max_request_bytes: int
    queued_bytes_max: int
    """A connection with more bytes to send than this is not read from."""
    queued_answers_max: int
    """A connection with more unfinished answers than this is not read from."""
    frames_per_event: int
    """How many requests a connection handles at most before others have their turn."""
    event_ms_max: int
    """After this time in one event, a connection begins no further request."""

    def monotonic_ms(self) -> int:
        """Return a clock that never jumps."""

    def monotonic_ns(self) -> int:
        """Return the same clock for short times."""

    def in_turn(self, callback: Callable[[], None]) -> None:
        """Run a callback as a separate event, once other connections had their turn."""

    def hand_over(
        self, connection: AcceptedConnection, successor: AcceptedConnection, event: str
    ) -> None:
        """Log an event, and have another object serve the connection's transport from now on."""

    def forget(self, connection: AcceptedConnection) -> None:
        """Drop a connection that closes."""

    def refuse(self, connection: AcceptedConnection, problem: str) -> None:
        """Close a connection whose client does not speak the protocol."""

    def failed(self, connection: AcceptedConnection, error: Exception) -> None:
        """Close a connection whose request hit a defect of the broker."""

    def lost(self, connection: AcceptedConnection, error: OSError) -> None:
        """Close a connection that broke."""
