"""Framing and pacing of one accepted connection: bytes become frames, at a bounded rate.

    transport (bytes) -> connection (frames) -> session (requests and answers)

All connections read into one shared buffer, since there is one thread. A frame that arrives whole
is handled in that buffer. A frame of which only a part has arrived is moved to a buffer of its own.
An idle connection has no buffer. Answers are gathered until the end of the event.

Partial frames take memory, which is limited for all clients together (`buffered_memory.py`): a
connection may have to wait for memory.

The connection does not read from a client that does not read its answers. Once enough answers
wait, it keeps the frames that have already arrived in a backlog, and leaves the rest in the kernel.
The session decides when; it may also mute the connection for a while, to enforce a quota.

The number of requests that a connection handles in one event is limited, and so is the time. The
other requests go into the backlog, too, until the other connections had their turn.
"""

from collections.abc import Callable
from struct import Struct
from typing import NoReturn

from barnabas.model.callers import CLIENT_LISTENER, Listener
from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.model.timers import Timer
from barnabas.server.buffered_memory import UNCOUNTED, WaitingFrame
from barnabas.server.edge_ports import ConnectionOwner, OpenSession, Session
from barnabas.server.farewell import Farewell
from barnabas.server.foreign import ForeignProtocol, ForeignProtocolError
from barnabas.server.partial_frame import LENGTH_BYTES, PartialFrame
from barnabas.server.transport import Transport

_LENGTH = Struct(">i")
FRAME_BYTES_MIN = 8
TOKEN_BYTES_MIN = 3
"""A SASL token may be a frame by itself, and shorter than any request."""
SLOWEST_BYTES_PER_MS = 10


class Connection:
    """One accepted socket whose bytes are length-prefixed frames, until it is closed."""

    __slots__ = (
        "_answer_bytes",
        "_backlog",
        "_backlog_bytes",
        "_file_bytes",
        "_frame",
        "_memory",
        "_paused",
        "_quotas",
        "_reserved_bytes",
        "_server",
        "_timers",
        "_turn_is_due",
        "_unmuting",
        "_waiting",
        "closed",
        "dirty",
        "host",
        "last_progress_ms",
        "listener",
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
        listener: Listener = CLIENT_LISTENER,
    ) -> None:
        self._server = server
        self._timers = server.node.timers
        self._quotas = server.node.quotas
        self.transport = transport
        self.host = host
        self.listener = listener
        self.peer = listener.is_peer
        self.closed = False
        self.dirty = False
        """Whether it will be flushed at the end of this event."""
        self._memory = UNCOUNTED if self.peer else server.memory
        self._frame: PartialFrame | None = None
        self._reserved_bytes = 0
        """The memory that is reserved for the frame."""
        self._waiting: WaitingFrame | None = None
        """The place in the queue of a frame for which there is no memory yet."""
        self._backlog: memoryview | None = None
        """Frames that were received and are not handled yet; they are handled before any read."""
        self._backlog_bytes = 0
        """The size of the backlog's buffer."""
        self._answer_bytes = 0
        """How many bytes of unread answers are counted as used memory."""
        self._file_bytes = 0
        """The slices of files that were queued since the queue was last empty."""
        self._turn_is_due = False
        """Whether the server will call `_take_backlog`."""
        self._unmuting: Timer | None = None
        """Ends the pause that a quota imposes."""
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
        """Handle requests; an error of any kind closes this connection and no other."""
        self.dirty = True  # so that answers gather until the end of this event
        started_ns = self._server.monotonic_ns() if self._quotas.times_requests else 0
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
        if started_ns and not self.peer:
            self.session.charge(self._server.monotonic_ns() - started_ns)
        if self._backlog is not None:
            self._resume()

    def _read_shared(self) -> None:
        if self._memory.is_tight:
            self._read_length_first()
            return
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
            # Writable, like the receive buffer: offsets are written into batches in place.
            self._backlog = memoryview(bytearray(shared[position:count]))
            self._count_backlog(count - position)
        else:
            self._keep(shared[position:count])

    def _read_length_first(self) -> None:
        """Begin a frame; if it must wait for memory, none of its bytes are held."""
        self._keep(self._server.receive_buffer[:0])
        frame = self._frame
        self._read_rest()
        if frame is not None and self._frame is frame and not frame.filled:
            self._frame = None  # there was nothing to read
            self.stalled_since_ms = None

    def _take(self, received: memoryview, count: int) -> int:
        """Handle whole frames, as long as this connection may; return where the rest begins."""
        position, handled, largest = 0, 0, self._server.max_request_bytes
        while count - position >= 4 and not self._paused:
            (size,) = _LENGTH.unpack_from(received, position)
            if not FRAME_BYTES_MIN <= size <= largest and not self._may_be_short(size):
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
        """Tell whether other connections must be served before this one's next request."""
        server = self._server
        return (
            handled >= server.frames_per_event
            or server.monotonic_ms() - self._timers.now_ms >= server.event_ms_max
        )

    def _keep(self, rest: memoryview) -> None:
        """Move the beginning of a frame into a buffer of its own."""
        self.stalled_since_ms = self.last_progress_ms
        self._frame = PartialFrame(rest, self._server.buffers, self._check, self._reserve)

    def _reserve(self, size: int, held_bytes: int) -> bool:
        """Reserve memory for a frame, or stop reading until there is some."""
        if self._memory.begin(size):
            self._reserved_bytes = size
            return True
        self._waiting = self._memory.wait(size, held_bytes, self._go_on)
        self.pause()
        return False

    def _go_on(self) -> None:
        """Read a frame that has waited for memory."""
        frame, waiting = self._frame, self._waiting
        assert frame is not None
        assert waiting is not None
        self._waiting = None
        frame.go_on()
        self.last_progress_ms = self._timers.now_ms
        self.stalled_since_ms = self.last_progress_ms
        self._resume()
        self._reserved_bytes = waiting.size
        if self._paused:
            self._memory.park()

    def _end_frame(self) -> None:
        """Release the memory of a frame that was handled or abandoned."""
        size, self._reserved_bytes = self._reserved_bytes, 0
        if size:
            if self._paused:
                self._memory.unpark()
            self._memory.finish(size)

    def _read_rest(self) -> None:
        """Read the rest of the frame that was begun, and no further bytes."""
        frame = self._frame
        assert frame is not None
        while not frame.is_whole:
            if not frame.is_granted:
                return
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
            self._end_frame()

    def _check(self, size: int, head: Buffer) -> None:
        """Raise if a frame that arrives in parts is not acceptable."""
        is_request = FRAME_BYTES_MIN <= size <= self._server.max_request_bytes
        if not is_request and not self._may_be_short(size):
            self._refuse_size(size)
        if head:
            try:
                self.session.check(size, head)
            except WireError as error:
                self._refuse_first_bytes(size, error)

    def _may_be_short(self, size: int) -> bool:
        """Tell whether a frame that is too short for a request is acceptable."""
        return TOKEN_BYTES_MIN <= size < FRAME_BYTES_MIN and self.session.takes_short_frames

    def _refuse_size(self, size: int) -> NoReturn:
        largest = self._server.max_request_bytes
        problem = f"frame length {size} is not between {FRAME_BYTES_MIN} and {largest} bytes"
        self._refuse_first_bytes(size, WireError(problem))

    def _refuse_first_bytes(self, size: int, error: WireError) -> NoReturn:
        """Raise an error; a different one if the "length" is the start of another protocol."""
        found = self.session.recognise(_LENGTH.pack(size))
        if found is not None:
            raise ForeignProtocolError(found)
        raise error

    def _hand_over(self, found: ForeignProtocol) -> None:
        """Hand the socket to an object that tells the client which protocol is served."""
        successor = Farewell(self._server, self.transport, self.host, peer=self.peer)
        self._end()
        self._server.hand_over(self, successor, found.event)
        successor.send(found.reply)

    def end_with(self, answer: bytes, event: str) -> None:
        """Send a last answer and log an event; close as soon as the client has read it."""
        if not self.closed:
            self.transport.watch_reading(self, wanted=True)  # the next owner continues to read
            self._hand_over(ForeignProtocol(event, _LENGTH.pack(len(answer)) + answer))

    # --- sending ---

    def queue(self, chunks: list[Chunk]) -> None:
        """Queue a frame for the client, preceded by its length."""
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
            self._file_bytes += size
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
            # A client that reads slowly has not stalled.
            self.stalled_since_ms = None
            self.last_progress_ms = self._timers.now_ms
        if transport.out:
            self._count_answers(max(0, transport.out_bytes - self._file_bytes))
            if self.stalled_since_ms is None:
                self.stalled_since_ms = self._server.monotonic_ms()
            transport.watch_writing(self, wanted=True)
            return
        if self._frame is None:
            self.stalled_since_ms = None
        if self._answer_bytes or self._file_bytes:
            self._file_bytes = 0
            self._count_answers(0)
        self._sent_all()

    def _sent_all(self) -> None:
        """Continue to read, after everything was sent."""
        if self._paused:
            self._resume()
        if self.transport.is_writing and not self.closed:
            self.transport.watch_writing(self, wanted=False)

    # --- memory ---

    def use_memory(self, change: int) -> None:
        """Count bytes of answers that the session holds, or stop counting them."""
        if change > 0:
            self._memory.use(change)
        elif change:
            self._memory.release(-change)

    def _count_answers(self, size: int) -> None:
        change, self._answer_bytes = size - self._answer_bytes, size
        self.use_memory(change)

    def _count_backlog(self, size: int) -> None:
        change, self._backlog_bytes = size - self._backlog_bytes, size
        self.use_memory(change)

    # --- pacing ---

    def resume(self) -> None:
        """Continue after a pause that the session asked for, if it may."""
        self._resume()

    def pause(self) -> None:
        """Handle no more requests until the session has room for their answers."""
        if not self._paused and not self.closed:
            self._paused = True
            self.transport.watch_reading(self, wanted=False)
            if self._reserved_bytes:
                self._memory.park()

    def mute(self, duration_ms: int) -> None:
        """Stop reading for a while: the response has told the client so (KIP-219)."""
        if self.closed:
            return
        self.pause()
        timer = self._unmuting
        if timer is not None:
            if timer.deadline_ms >= self._timers.now_ms + duration_ms:
                return
            timer.cancel()
        self._unmuting = self._timers.after(duration_ms, self._unmute)

    def _unmute(self) -> None:
        self._unmuting = None
        # The broker did not read, so the client was neither idle nor stalled.
        self.last_progress_ms = self._server.monotonic_ms()
        if self._frame is not None:
            self.stalled_since_ms = self.last_progress_ms
        self._resume()

    @property
    def is_muted(self) -> bool:
        """Whether the broker does not read from it, so that the client cannot make progress."""
        return self._unmuting is not None or self._waiting is not None

    def patience_ms(self, stall_ms: int) -> int:
        """Return how long a stall may last; a large frame may take longer than a small one."""
        filled = 0 if self._frame is None else self._frame.filled
        return stall_ms + filled // SLOWEST_BYTES_PER_MS

    def _resume(self) -> None:
        if not self._paused or self.closed or self.is_muted:
            return
        if not self.session.has_room():
            return
        if self._backlog is None:
            self._unpause()
            self.transport.watch_reading(self, wanted=True)
        elif not self._turn_is_due:
            self._turn_is_due = True
            self._server.in_turn(self._take_backlog)

    def _take_backlog(self) -> None:
        """Handle the backlog before anything newer is read."""
        self._turn_is_due = False
        if self.closed or self.is_muted or not self.session.has_room() or self._backlog is None:
            return
        self._unpause()
        self._guarded(self._take_more)
        if not self._paused and not self.closed:
            self.transport.watch_reading(self, wanted=True)

    def _unpause(self) -> None:
        self._paused = False
        if self._reserved_bytes:
            self._memory.unpark()

    def _take_more(self) -> None:
        """Continue where the last event stopped. Nothing is copied, even over many events."""
        backlog, self._backlog = self._backlog, None
        assert backlog is not None
        position = self._take(backlog, len(backlog))
        if self._paused and position < len(backlog) and not self.closed:
            self._backlog = backlog[position:]
            return
        self._count_backlog(0)
        if position < len(backlog):
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
        """Drop everything except the transport."""
        self.closed = True
        self._frame = None
        self._backlog = None
        self._end_frame()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._unmuting is not None:
            self._unmuting.cancel()
            self._unmuting = None
        self._count_backlog(0)
        self._count_answers(0)
        session, self.session = self.session, ENDED
        session.close()


class EndedSession:
    """Replaces the session of a closed connection.

    A connection and its session refer to each other. Without this, each closed connection would
    leave a cycle for the garbage collector, which stops the event loop.
    """

    takes_short_frames = False

    def handle(self, frame: memoryview) -> None:
        """Ignore a request."""

    def check(self, size: int, head: Buffer) -> None:
        """Accept every frame."""

    def charge(self, duration_ns: int) -> None:
        """Charge no client."""

    def has_room(self) -> bool:
        """Return False: no request may follow."""
        return False

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Return None: no other protocol is recognised."""

    def close(self) -> None:
        """Do nothing."""


ENDED = EndedSession()
