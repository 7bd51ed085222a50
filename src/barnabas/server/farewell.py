"""A connection that is sent one last answer and then closed.

It takes over the transport of a client that speaks another protocol (see `foreign.py`). Closing the
socket at once would be wrong: the kernel resets a connection if some bytes were never read, and the
client might lose the answer. So the broker ends its own direction, discards the bytes that still
arrive, and closes when the client has closed. A client that does not close is closed as stalled.
"""

from barnabas.server.edge_ports import ConnectionOwner
from barnabas.server.transport import Transport

DISCARDED_BYTES_MAX = 1024 * 1024


class Farewell:
    """One accepted socket whose requests are no longer read."""

    __slots__ = (
        "_discarded_bytes",
        "_has_ended",
        "_server",
        "_transport",
        "closed",
        "host",
        "last_progress_ms",
        "peer",
        "stalled_since_ms",
    )

    def __init__(
        self, server: ConnectionOwner, transport: Transport, host: str, *, peer: bool
    ) -> None:
        self._server = server
        self._transport = transport
        self._discarded_bytes = 0
        self._has_ended = False
        self.host = host
        self.peer = peer
        self.closed = False
        self.last_progress_ms = server.monotonic_ms()
        self.stalled_since_ms: int | None = self.last_progress_ms

    @property
    def descriptor(self) -> int:
        """The socket's descriptor."""
        return self._transport.descriptor

    @property
    def is_muted(self) -> bool:
        """Whether the broker does not read: it always does."""
        return False

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long the client may take to close."""
        return stall_ms

    def send(self, reply: bytes) -> None:
        """Send the last bytes."""
        self._transport.out.append(reply)
        self.flush()

    def on_readable(self) -> None:
        """Discard what has arrived."""
        try:
            count = self._transport.receive(self._server.receive_buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._server.lost(self, error)
            return
        self._discarded_bytes += count
        if not count or self._discarded_bytes > DISCARDED_BYTES_MAX:
            self.close()

    def on_writable(self) -> None:
        """Send more: the kernel has room."""
        self.flush()

    def flush(self) -> None:
        """Send what is left of the answer, then end this direction."""
        if self.closed or self._has_ended:
            return
        try:
            self._transport.send_queued()
            if not self._transport.out:
                self._has_ended = True
                self._transport.end_sending()
        except OSError as error:
            self._server.lost(self, error)
            return
        self._transport.watch_writing(self, wanted=bool(self._transport.out))

    def close(self) -> None:
        """Close the socket."""
        if not self.closed:
            self.closed = True
            self._transport.close(self)
            self._server.forget(self)
