"""Framing and pacing of one accepted connection: bytes become frames, at a bounded rate.

    transport (bytes) -> connection (frames) -> session (requests and answers)

Reading goes through one buffer that all connections share, since there is one thread: a frame
that arrives whole is handled in that buffer, and only a cut one is moved to a buffer of its own.
An idle connection owns no buffer at all. Answers are gathered until the end of the event.

The connection does not read from a client that does not read its answers. Once enough answers
wait, it sets aside the frames that have already arrived, and leaves the rest in the kernel. The
session says when that is so; it may also mute the connection for a while, to keep to a quota.

One connection handles only so many requests, and for so long, in one event. It sets aside the rest
too, and handles them after the other connections had their turn.
"""

from collections.abc import Callable
from struct import Struct
from typing import NoReturn

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.server.farewell import Farewell
from barnabas.server.foreign import ForeignProtocol, ForeignProtocolError
from barnabas.server.partial_frame import LENGTH_BYTES, PartialFrame
from barnabas.server.ports import ConnectionOwner, OpenSession, Session
from barnabas.server.transport import Transport

_LENGTH = Struct(">i")
FRAME_BYTES_MIN = 8
SLOWEST_BYTES_PER_MS = 10


class Connection:
    """One accepted socket whose bytes are length-prefixed frames, until it is closed."""

    __slots__ = (
        "_backlog",
        "_frame",
        "_muted",
        "_paused",
        "_server",
        "_timers",
        "_turn_is_due",
        "closed",
        "dirty",
        "host",
        "last_progress_ms",
        "peer",
        "session",
        "stalled_since_ms",
        "transport",
    )

    def __init__(
        self,
        server: ConnectionOwner,
        transport: Transport,
        host: str,
        open_session: OpenSession,
        *,
        peer: bool = False,
    ) -> None:
        self._server = server
        self._timers = server.node.timers
        self.transport = transport
        self.host = host
        self.peer = peer
        self.closed = False
        self.dirty = False
        """Whether it is going to be flushed at the end of this event."""
        self._frame: PartialFrame | None = None
        self._backlog: memoryview | None = None
        """Frames that were received and are not handled yet; nothing is read before they are."""
        self._turn_is_due = False
        """Whether the server is going to call `_take_backlog`."""
        self._muted = 0
        self._paused = False
        self.last_progress_ms = server.monotonic_ms()
        self.stalled_since_ms: int | None = None
        self.session: Session = open_session(self)

    @property
    def descriptor(self) -> int:
        """The socket's descriptor."""
        return self.transport.descriptor

    # --- reading ---

    def on_readable(self) -> None:
        """Read what the kernel has, and handle every whole frame in it."""
        self._guarded(self._read_shared if self._frame is None else self._read_rest)

    def _guarded(self, read: Callable[[], None]) -> None:
        """Handle requests such that an error of any kind ends this connection and no other."""
        self.dirty = True  # so that answers gather until the end of this event
        try:
            read()
        except ForeignProtocolError as error:
            self._hand_over(error.found)
        except WireError as error:
            self._server.refuse(self, str(error))
        except OSError as error:
            self._server.lost(self, error)
        except Exception as error:  # noqa: BLE001 - one request's bug must not hang its client
            self._server.failed(self, error)
        if self.transport.out:
            self.flush()
        else:
            self.dirty = False
        if self._backlog is not None:
            self._resume()

    def _read_shared(self) -> None:
        shared = self._server.receive_buffer
        try:
            count = self.transport.receive(shared)
        except BlockingIOError:
            return
        if count == 0:
            self.close()
            return
        self.last_progress_ms = self._timers.now_ms
        position = self._take(shared, count)
        if position == count:
            return
        if self._paused:
            # Writable, as the receive buffer is: batches are stamped in place.
            self._backlog = memoryview(bytearray(shared[position:count]))
        else:
            self._keep(shared[position:count])

    def _take(self, received: memoryview, count: int) -> int:
        """Handle whole frames, as long as this connection may; return where the rest begins."""
        position, handled, largest = 0, 0, self._server.max_request_bytes
        while count - position >= 4 and not self._paused:
            (size,) = _LENGTH.unpack_from(received, position)
            if not FRAME_BYTES_MIN <= size <= largest:
                self._refuse_size(size)
            end = position + 4 + size
            if end > count:
                break
            self.session.handle(received[position + 4 : end])
            if self.closed:
                return count
            position = end
            handled += 1
            if position < count and self._has_used_its_turn(handled):
                self.pause()
        return position

    def _has_used_its_turn(self, handled: int) -> bool:
        """Tell whether other connections come first, before this one's next request."""
        server = self._server
        return (
            handled >= server.frames_per_event
            or server.monotonic_ms() - self._timers.now_ms >= server.event_ms_max
        )

    def _keep(self, rest: memoryview) -> None:
        """Move the beginning of a frame into a buffer of its own."""
        self._frame = PartialFrame(rest, self._server.buffers, self._check)
        self.stalled_since_ms = self.last_progress_ms

    def _read_rest(self) -> None:
        """Fill up the frame that was begun, and not a byte more."""
        frame = self._frame
        assert frame is not None
        while not frame.is_whole:
            try:
                count = frame.receive(self.transport.receive)
            except BlockingIOError:
                return
            if count == 0:
                self.close()
                return
            self.last_progress_ms = self._timers.now_ms
        self._frame = None
        self.stalled_since_ms = None
        view = memoryview(frame.buffer)
        try:
            self.session.handle(view[LENGTH_BYTES : frame.size])
        finally:
            view.release()
            self._server.buffers.give_back(frame.buffer)

    def _check(self, size: int, head: Buffer) -> None:
        """Raise where a frame that arrives in parts is not acceptable."""
        if not FRAME_BYTES_MIN <= size <= self._server.max_request_bytes:
            self._refuse_size(size)
        if head:
            try:
                self.session.check(size, head)
            except WireError as error:
                self._refuse_first_bytes(size, error)

    def _refuse_size(self, size: int) -> NoReturn:
        largest = self._server.max_request_bytes
        problem = f"frame length {size} is not between {FRAME_BYTES_MIN} and {largest} bytes"
        self._refuse_first_bytes(size, WireError(problem))

    def _refuse_first_bytes(self, size: int, error: WireError) -> NoReturn:
        """Raise an error, or another one where the "length" is another protocol's first bytes."""
        found = self.session.recognise(_LENGTH.pack(size))
        if found is not None:
            raise ForeignProtocolError(found)
        raise error

    def _hand_over(self, found: ForeignProtocol) -> None:
        """Leave the socket to an object that tells the client its mistake."""
        successor = Farewell(self._server, self.transport, self.host, peer=self.peer)
        self._end()
        self._server.hand_over(self, successor, found.event)
        successor.send(found.reply)

    # --- sending ---

    def queue(self, chunks: list[Chunk]) -> None:
        """Queue a frame for the client, with its length in front."""
        if self.closed:
            return
        size, files = 0, False
        for chunk in chunks:
            if isinstance(chunk, FileSlice):
                size += chunk.length
                files = True
            else:
                size += len(chunk)
        transport = self.transport
        if files:
            transport.out.append(_LENGTH.pack(size))
            transport.out.extend(chunks)
        else:
            transport.out.append(b"".join((_LENGTH.pack(size), *chunks)))  # type: ignore[arg-type]
        transport.out_bytes += size + 4
        if not self.dirty:
            self.dirty = True
            self._server.dirty.append(self)

    def on_writable(self) -> None:
        """Send more: the kernel has room."""
        self.flush()

    def flush(self) -> None:
        """Send what is queued, as far as the kernel takes it."""
        self.dirty = False
        if self.closed:
            return
        transport = self.transport
        try:
            moved = transport.send_queued()
        except OSError as error:
            self._server.lost(self, error)
            return
        except Exception as error:  # noqa: BLE001 - as above; others are to be flushed, too
            self._server.failed(self, error)
            return
        if moved and self._frame is None:
            # A reader that is slow but reads has not stalled.
            self.stalled_since_ms = None
            self.last_progress_ms = self._timers.now_ms
        if transport.out:
            if self.stalled_since_ms is None:
                self.stalled_since_ms = self._server.monotonic_ms()
            transport.watch_writing(self, wanted=True)
            return
        if self._frame is None:
            self.stalled_since_ms = None
        if self._paused:
            self._resume()
        if transport.is_writing and not self.closed:
            transport.watch_writing(self, wanted=False)

    # --- pacing ---

    def pause(self) -> None:
        """Handle no more requests until the session has room for their answers."""
        if not self._paused and not self.closed:
            self._paused = True
            self.transport.watch_reading(self, wanted=False)

    def mute(self, duration_ms: int) -> None:
        """Read nothing for a while: the answer has told the client (KIP-219)."""
        self._muted += 1
        self.pause()
        self._timers.after(duration_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted -= 1
        if self._frame is not None:
            self.stalled_since_ms = self._server.monotonic_ms()  # the broker did not read
        self._resume()

    @property
    def is_muted(self) -> bool:
        """Whether the broker does not read from it, so that the client cannot make progress."""
        return self._muted > 0

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long a stall may last: a large frame may take longer than a small one."""
        filled = 0 if self._frame is None else self._frame.filled
        return stall_ms + filled // SLOWEST_BYTES_PER_MS

    def _resume(self) -> None:
        if not self._paused or self.closed or self._muted or not self.session.has_room():
            return
        if self._backlog is None:
            self._paused = False
            self.transport.watch_reading(self, wanted=True)
        elif not self._turn_is_due:
            self._turn_is_due = True
            self._server.in_turn(self._take_backlog)

    def _take_backlog(self) -> None:
        """Handle what was set aside, before anything newer is read."""
        self._turn_is_due = False
        if self.closed or self._muted or not self.session.has_room() or self._backlog is None:
            return
        self._paused = False
        self._guarded(self._take_more)
        if not self._paused and not self.closed:
            self.transport.watch_reading(self, wanted=True)

    def _take_more(self) -> None:
        """Go on where the last event stopped. Nothing is copied, however often that is."""
        backlog, self._backlog = self._backlog, None
        assert backlog is not None
        position = self._take(backlog, len(backlog))
        if position == len(backlog):
            return
        if self._paused:
            self._backlog = backlog[position:]
        else:
            self._keep(backlog[position:])

    # --- the end ---

    def close(self) -> None:
        """Close the socket and drop what is queued for it."""
        if self.closed:
            return
        self.closed = True
        self.transport.close(self)
        self._server.forget(self)
        self._end()

    def _end(self) -> None:
        """Drop everything but the transport."""
        self.closed = True
        self._frame = None
        self._backlog = None
        session, self.session = self.session, ENDED
        session.close()


class EndedSession:
    """Takes the place of a closed connection's session.

    A connection and its session refer to each other. Without this, each closed connection would
    leave a cycle for the garbage collector, which stops the event loop.
    """

    def handle(self, frame: memoryview) -> None:
        """Ignore a request."""

    def check(self, size: int, head: Buffer) -> None:
        """Accept every frame."""

    def has_room(self) -> bool:
        """Return that no request may follow."""
        return False

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Return that no other protocol is known."""

    def close(self) -> None:
        """Do nothing."""


ENDED = EndedSession()
