"""The TLS transport of one connection: the same interface and guarantees as the plain one.

It works on a socket whose handshake is complete (`handshakes.py`). Three things differ from a plain
socket, and this module hides them:

- OpenSSL holds decrypted bytes that the kernel does not report. So a read continues until OpenSSL
  needs more from the network. If it stops earlier, since the buffer is full or the event has lasted
  long enough, the transport reads again in a separate event.
- If the kernel has no room, OpenSSL has begun a write, and does not tell how many bytes it sent. It
  must be called again with the same bytes. They are copied, and stay at the front of the queue.
- Slices of files are read into a buffer that all connections share: the kernel cannot encrypt them,
  so sendfile would send them unencrypted, and is not used.

A read may have to write first, and a write to read. Each waits until it can.
"""

import os
import socket
import ssl
from collections import deque
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD
from typing import NoReturn

from barnabas.model.callers import Principal
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.model.timers import Timer
from barnabas.server.edge_ports import AcceptedConnection, ConnectionOwner
from barnabas.server.tls.tls_memory import TlsMemory
from barnabas.server.transport import FILE_TOO_SHORT

SHORT_BYTES = 2048
"""After a first record of fewer bytes (a small request), often nothing more has arrived."""
SEND_BYTES_MAX = 256 * 1024
"""How many bytes OpenSSL gets in one call."""
JOIN_BELOW_BYTES = 16 * 1024
"""Chunks smaller than this are joined: TLS would make a record of each."""
REPEAT_MS = 10
"""When a write that must read first is tried again. If the broker does not read the connection,
since its client does not read either, it does not learn when bytes arrive."""

_unread = bytearray(4)
_shared = memoryview(bytearray(SEND_BYTES_MAX))
"""The buffer in which sends are gathered. All connections share it: a send ends in its event."""


class TlsTransport:
    """A transport that encrypts what it sends."""

    __slots__ = (
        "_connection",
        "_expiry",
        "_failure",
        "_file_sent",
        "_has_ended",
        "_is_reading",
        "_memory",
        "_must_repeat",
        "_read_is_due",
        "_read_wants_write",
        "_server",
        "_socket",
        "_write_wants_read",
        "descriptor",
        "is_drained",
        "is_writing",
        "out",
        "out_bytes",
        "principal",
    )

    def __init__(
        self, server: ConnectionOwner, accepted: ssl.SSLSocket, principal: Principal | None = None
    ) -> None:
        self._server = server
        self._socket = accepted
        self._connection: AcceptedConnection | None = None
        self.descriptor = accepted.fileno()
        self.principal = principal
        """The subject of the client's certificate, if the listener asks for one."""
        self.out: deque[Chunk] = deque()
        self.out_bytes = 0
        self._file_sent = 0
        """How much of the slice at the front of the queue has been sent."""
        self._must_repeat = False
        """Whether OpenSSL has begun with the chunk at the front of the queue."""
        self.is_drained = True
        """Whether the last read left nothing in OpenSSL."""
        self._has_ended = False
        self._failure: OSError | None = None
        self._is_reading = True
        self._read_is_due = False
        self._read_wants_write = False
        self._write_wants_read = False
        self._expiry: Timer | None = None
        self._memory: TlsMemory | None = None
        self.is_writing = False

    def serve(
        self,
        connection: AcceptedConnection,
        expiry: Timer | None = None,
        memory: TlsMemory | None = None,
    ) -> None:
        """Begin to read for a connection: its first request may have come with the handshake.

        Take a timer that ends with the connection, and the memory that is counted until then.
        """
        self._connection = connection
        self._expiry = expiry
        self._memory = memory
        self._read_soon()

    # --- reading ---

    def receive(self, buffer: memoryview, /) -> int:
        """Read what has arrived; 0 is the end. Raise `BlockingIOError` if nothing has."""
        if self._failure is not None:
            self._fail()
        if self._has_ended:
            return 0
        server = self._server
        if server.monotonic_ms() - server.node.timers.now_ms >= server.event_ms_max:
            self._leave_rest()
            raise BlockingIOError
        filled = self._decrypt(buffer)
        self._leave_rest()
        if not filled and not self._has_ended:
            raise BlockingIOError
        return filled

    def _decrypt(self, buffer: memoryview) -> int:
        """Fill a buffer, as far as that goes: OpenSSL gives 16 KB at a time."""
        filled, size = 0, len(buffer)
        try:
            while filled < size:
                # The size is passed, since Python would otherwise make another view to find it.
                room = buffer[filled:] if filled else buffer
                count = self._socket.recv_into(room, size - filled)
                if count == 0:
                    self._has_ended = True
                    break
                filled += count
                if filled == count < SHORT_BYTES and not self._has_arrived():
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self._read_wants_write = True
            if self._connection is not None:
                self.watch_writing(self._connection, wanted=True)
        except OSError as error:
            if not filled:
                raise
            # It is raised after the bytes before it. Its traceback refers to this transport.
            self._failure = error.with_traceback(None)
        return filled

    def _fail(self) -> NoReturn:
        """Raise the error that came after the last bytes, and keep no reference to it.

        The error refers to this transport by its traceback. The broker next to never collects
        reference cycles, and a TLS connection takes 50 KB.
        """
        failure, self._failure, self._has_ended = self._failure, None, True
        assert failure is not None
        try:
            raise failure
        finally:
            del failure

    def _has_arrived(self) -> bool:
        """Tell whether the kernel has more: asking is cheaper than a read that finds nothing."""
        ioctl(self.descriptor, FIONREAD, _unread, True)
        return any(_unread)

    def _leave_rest(self) -> None:
        """Read again soon if OpenSSL has bytes, or an end, that the kernel does not report."""
        is_over = self._has_ended or self._failure is not None
        self.is_drained = not is_over and not self._socket.pending()
        if not self.is_drained:
            self._read_soon()

    def _read_soon(self) -> None:
        """Read again in a separate event: the kernel may have nothing to report."""
        if not self._read_is_due and self._connection is not None:
            self._read_is_due = True
            self._server.in_turn(self._read_again)

    def _read_again(self) -> None:
        self._read_is_due = False
        connection = self._connection
        if connection is not None and not connection.closed and self._is_reading:
            connection.on_readable()

    # --- sending ---

    def send_queued(self) -> bool:
        """Send as much of the queue as the kernel takes; return whether a part of a chunk left."""
        if self._read_wants_write:
            self._read_wants_write = False
            self._read_soon()
        server, out, moved = self._server, self.out, False
        while out:
            if self._must_repeat:
                head = out[0]
                assert not isinstance(head, FileSlice)
                piece: Buffer = head
            else:
                piece = self._gather()
            if not len(piece):
                continue
            try:
                self._socket.write(piece)
            except ssl.SSLWantWriteError:
                self._keep(piece)
                return moved
            except ssl.SSLWantReadError:
                self._keep(piece)
                self._repeat_later()
                return moved
            if self._must_repeat:
                self._must_repeat = self._write_wants_read = False
                out.popleft()
            moved = True
            if out and server.monotonic_ms() - server.node.timers.now_ms >= server.event_ms_max:
                return moved  # the connection waits until it is writable: others come first
        self.out_bytes = 0
        return moved

    def _gather(self) -> Buffer:
        """Remove from the queue the chunks that are sent together."""
        out = self.out
        head = out[0]
        if not isinstance(head, FileSlice) and (len(out) == 1 or len(head) >= JOIN_BELOW_BYTES):
            out.popleft()
            if len(head) <= SEND_BYTES_MAX:
                return head
            view = memoryview(head)
            out.appendleft(view[SEND_BYTES_MAX:])
            return view[:SEND_BYTES_MAX]
        filled = 0
        while out and filled < SEND_BYTES_MAX:
            head = out[0]
            if isinstance(head, FileSlice):
                filled += self._read_file(head, _shared[filled:])
                continue
            size = len(head)
            if size > SEND_BYTES_MAX - filled:
                break
            _shared[filled : filled + size] = head
            filled += size
            out.popleft()
        return _shared[:filled]

    def _read_file(self, piece: FileSlice, room: memoryview) -> int:
        """Read more of the slice at the front of the queue; return how much."""
        left = piece.length - self._file_sent
        wanted = min(left, len(room))
        position = piece.position + self._file_sent
        descriptor = self._server.descriptor_of(piece.file)
        filled = 0
        while filled < wanted:
            count = os.preadv(descriptor, [room[filled:wanted]], position + filled)
            if count == 0:
                raise ConnectionError(FILE_TOO_SHORT)
            filled += count
        self._file_sent += filled
        if filled == left:
            self._file_sent = 0
            self.out.popleft()
        return filled

    def _keep(self, piece: Buffer) -> None:
        """Put a copy of the bytes that OpenSSL has begun to send at the front of the queue."""
        if not self._must_repeat:
            self._must_repeat = True
            is_shared = isinstance(piece, memoryview) and piece.obj is _shared.obj
            self.out.appendleft(bytes(piece) if is_shared else piece)

    def _repeat_later(self) -> None:
        """Repeat a write that waited for bytes from the client."""
        if not self._write_wants_read:
            self._write_wants_read = True
            self._server.node.timers.after(REPEAT_MS, self._repeat)

    def _repeat(self) -> None:
        connection = self._connection
        self._write_wants_read = False
        if connection is not None and not connection.closed:
            connection.flush()

    def end_sending(self) -> None:
        """Tell the client that nothing follows; go on receiving."""
        self._say_goodbye()
        self._socket.shutdown(socket.SHUT_WR)

    # --- watching and the end ---

    def watch_reading(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_readable` whenever bytes have arrived, or stop doing so."""
        if wanted != self._is_reading:
            self._is_reading = wanted
            self._server.watch_reading(connection, wanted=wanted)
            if wanted and not self.is_drained:
                self._read_soon()

    def watch_writing(self, connection: AcceptedConnection, *, wanted: bool) -> None:
        """Call the connection's `on_writable` whenever the kernel has room, or stop doing so."""
        wanted = (wanted and not self._write_wants_read) or self._read_wants_write
        if wanted != self.is_writing:
            self.is_writing = wanted
            self._server.watch_writing(connection, wanted=wanted)

    def close(self, connection: AcceptedConnection) -> None:
        """Stop watching, send close_notify, close the socket, drop the queue."""
        self._read_wants_write = False
        self.watch_reading(connection, wanted=False)
        self.watch_writing(connection, wanted=False)
        if not self._must_repeat:
            self._say_goodbye()
        self._socket.close()
        self.out.clear()
        self._connection = None
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._memory is not None:
            self._memory.release()

    def _say_goodbye(self) -> None:
        """Send close_notify, if there is room; do not wait for the client's."""
        with suppress(OSError, ValueError):
            self._socket.unwrap()
