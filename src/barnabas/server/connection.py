"""One accepted socket: bytes in become frames, answers become bytes out, in order.

Reading goes through one buffer that all connections share, since there is one thread: a frame
that arrives whole is handled where it lies, and only a cut one is moved to a buffer of its own.
An idle connection owns no buffer at all.

Answers leave in the order of the requests (a slot is kept for one that is pending), gathered
until the end of the event. Files are sent by sendfile where they are large enough to pay for it.
An answer that merely waits for news is given when the next request comes, which would wait behind.

A client that does not read its answers is not read from either: once enough of them wait, frames
that have arrived already are set aside, and nothing is taken from the kernel. Answers that wait
behind a pending one count as much as those that wait for the socket.

One connection handles only so many requests, and for so long, in one event. The rest are set aside
too, and handled after the other connections had their turn.
"""

import os
import socket
from collections import deque
from collections.abc import Callable
from struct import Struct

from barnabas.handlers.context import RequestContext
from barnabas.handlers.registry import PRODUCE, dispatch
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.server.ports import ConnectionOwner, StreamSocket

_LENGTH = Struct(">i")
_API_KEY = Struct(">h")
HEAD_BYTES = 6
"""The length and the API key: enough to know whether a frame is acceptable."""
MSG_MORE = getattr(socket, "MSG_MORE", 0)
FIRST_ALLOCATION_BYTES = 1024 * 1024
OTHER_REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""Only Produce carries data; a larger request of another kind is a mistake or an attack."""
SENDFILE_BYTES_MAX = 1 << 30
JOIN_BYTES_MAX = 64 * 1024
SLOWEST_BYTES_PER_MS = 10
CUT_SHORT = "the file is shorter than what was promised of it"


class Slot:
    """The place of one answer in the queue."""

    __slots__ = ("chunks", "pending", "size")

    def __init__(self, pending: Pending[list[Chunk]] | None = None) -> None:
        self.chunks: list[Chunk] | None = None
        self.pending = pending
        self.size = 0
        """The bytes of an answer that is ready and waits behind a pending one."""


class Connection:
    """One accepted socket, until it is closed."""

    __slots__ = (
        "__weakref__",
        "_backlog",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_held_bytes",
        "_muted",
        "_out",
        "_out_bytes",
        "_overtaken",
        "_paused",
        "_prefix_bytes",
        "_reading",
        "_sent",
        "_server",
        "_slots",
        "_socket",
        "_timers",
        "_turn_is_due",
        "_writing",
        "closed",
        "descriptor",
        "dirty",
        "host",
        "last_progress_ms",
        "peer",
        "stalled_since_ms",
    )

    def __init__(
        self,
        server: ConnectionOwner,
        accepted: StreamSocket,
        host: str,
        now_ms: int,
        *,
        peer: bool = False,
    ) -> None:
        self._server = server
        self._timers = server.node.timers
        self._socket = accepted
        self.descriptor = accepted.fileno()
        self.host = host
        self.peer = peer
        self.closed = False
        self.dirty = False
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0
        self._backlog: memoryview | None = None
        """Frames that were received and are not handled yet; nothing is read before they are."""
        self._turn_is_due = False
        """Whether the server is going to call `_take_backlog`."""
        self._slots: deque[Slot] = deque()
        self._out: deque[Chunk] = deque()
        self._out_bytes = 0
        self._held_bytes = 0
        """The bytes of answers that wait behind a pending one."""
        self._overtaken: Callable[[], None] | None = None
        self._prefix_bytes = 0
        self._sent = 0
        self._muted = 0
        self._paused = False
        self._reading = True
        self._writing = False
        self.last_progress_ms = now_ms
        self.stalled_since_ms: int | None = None

    def on_readable(self) -> None:
        """Take what the kernel has, and handle every whole frame in it."""
        self._guarded(self._read_shared if self._frame is None else self._read_own)

    def _guarded(self, read: Callable[[], None]) -> None:
        """Handle requests such that whatever goes wrong ends this connection and nothing else."""
        self.dirty = True  # so that answers gather until the end of this event
        try:
            read()
        except WireError as error:
            self._server.refuse(self, str(error))
        except OSError as error:
            self._server.lost(self, error)
        except Exception as error:  # noqa: BLE001 - one request's bug must not hang its client
            self._server.failed(self, error)
        if self._out:
            self.flush()
        else:
            self.dirty = False
        if self._backlog is not None:
            self._resume()

    def on_writable(self) -> None:
        """Go on where the kernel had no more room."""
        self.flush()

    def _read_shared(self) -> None:
        shared = self._server.receive_buffer
        try:
            count = self._socket.recv_into(shared)
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
            if not 8 <= size <= largest:
                self._check_size(size)
            end = position + 4 + size
            if end > count:
                break
            self._handle(received[position + 4 : end])
            if self.closed:
                return count
            position = end
            handled += 1
            if position < count and self._has_used_its_turn(handled):
                self._pause()
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
        if len(rest) < HEAD_BYTES:
            self._frame = bytearray(HEAD_BYTES)
            self._frame_bytes = HEAD_BYTES
        else:
            self._frame = self._allocate(rest)
        self._frame[: len(rest)] = rest
        self._filled = len(rest)
        self.stalled_since_ms = self.last_progress_ms

    def _allocate(self, head: memoryview | bytearray) -> bytearray:
        """Return a buffer for the frame whose first bytes are here, if it is acceptable."""
        (size,) = _LENGTH.unpack_from(head)
        self._check_size(size)
        (api_key,) = _API_KEY.unpack_from(head, 4)
        if size > OTHER_REQUEST_BYTES_MAX and api_key != PRODUCE and not self.peer:
            raise WireError(f"{size} bytes for API {api_key}, which carries no data")
        self._frame_bytes = size + 4
        # A claim is not yet bytes: what is claimed is allocated as it arrives.
        return self._server.buffers.take(min(size + 4, FIRST_ALLOCATION_BYTES))

    def _read_own(self) -> None:
        """Fill up the frame that was begun, and not a byte more."""
        frame = self._frame
        assert frame is not None
        while True:
            room = min(len(frame), self._frame_bytes)
            if self._filled == room and room < self._frame_bytes:
                frame.extend(bytes(min(len(frame), self._frame_bytes - room)))
                continue
            with memoryview(frame)[self._filled : room] as view:
                try:
                    count = self._socket.recv_into(view)
                except BlockingIOError:
                    return
            if count == 0:
                self.close()
                return
            self.last_progress_ms = self._timers.now_ms
            self._filled += count
            if self._frame_bytes == HEAD_BYTES:
                frame = self._learn_size(frame)
            elif self._filled == self._frame_bytes:
                self._finish_frame(frame)
                return

    def _learn_size(self, head: bytearray) -> bytearray:
        """Refuse a wrong length as soon as it is there; go on to the frame once the head is."""
        if self._filled >= 4:
            self._check_size(_LENGTH.unpack_from(head)[0])
        if self._filled < HEAD_BYTES:
            return head
        grown = self._frame = self._allocate(head)
        grown[:HEAD_BYTES] = head
        return grown

    def _finish_frame(self, frame: bytearray) -> None:
        size, self._frame, self._filled = self._frame_bytes, None, 0
        self.stalled_since_ms = None
        view = memoryview(frame)
        try:
            self._handle(view[4:size])
        finally:
            view.release()
            self._server.buffers.give_back(frame)

    def _check_size(self, size: int) -> None:
        if not 8 <= size <= self._server.max_request_bytes:
            raise WireError(f"a frame of {size} bytes; 8 to {self._server.max_request_bytes} fit")

    def _handle(self, frame: memoryview) -> None:
        server, now_ms = self._server, self._timers.wall_ms
        if self._overtaken is not None:
            overtaken, self._overtaken = self._overtaken, None
            overtaken()
        if self._prefix_bytes:
            known = server.shapes.answer(frame, self._prefix_bytes, now_ms)
            if isinstance(known, bytes) and not self._slots:
                self._out.append(known)
                self._out_bytes += len(known)
                if self._out_bytes > server.queued_bytes_max:
                    self._pause()
                return
            if known is not None:
                self._promise(known if isinstance(known, Pending) else [known[4:]])
                return
        shapes = None if self.peer else server.shapes
        answer, context = dispatch(server.node, frame, self.host, now_ms, shapes, peer=self.peer)
        self._prefix_bytes, self._overtaken = context.prefix_bytes, context.overtaken
        if answer is None:
            self._pace(context)
        else:
            self._promise(answer, context)

    def _promise(
        self, answer: list[Chunk] | Pending[list[Chunk]], context: RequestContext | None = None
    ) -> None:
        """Queue an answer in its turn."""
        if isinstance(answer, Pending):
            slot = Slot(answer)
            self._slots.append(slot)
            answer.when_done(
                lambda chunks: self._fill(slot, chunks, context),
                lambda error: self._server.failed(self, error),
            )
            if not answer.done:
                self._pace()
            return
        if self._slots:
            slot = Slot()
            self._slots.append(slot)
            self._hold(slot, answer)
        else:
            self._queue(answer)
        self._pace(context)

    def _hold(self, slot: Slot, chunks: list[Chunk]) -> None:
        """Keep an answer until those before it are ready."""
        slot.chunks = chunks
        slot.size = _size_of(chunks)
        self._held_bytes += slot.size

    def _pace(self, context: RequestContext | None = None) -> None:
        """Read no more for now where a client is over its quota or behind with our answers."""
        if context is not None and context.throttle_ms and not self.peer:
            self._mute(context.throttle_ms)
        elif not self._has_room():
            self._pause()

    def _fill(self, slot: Slot, chunks: list[Chunk], context: RequestContext | None) -> None:
        if self.closed:
            return
        slots = self._slots
        if slots[0] is slot:
            slots.popleft()
            self._queue(chunks)
            while slots and (ready := slots[0].chunks) is not None:
                self._held_bytes -= slots.popleft().size
                self._queue(ready)
        else:
            self._hold(slot, chunks)
        self._pace(context)

    def _queue(self, chunks: list[Chunk]) -> None:
        if self.closed:
            return
        size, files = 0, False
        for chunk in chunks:
            if isinstance(chunk, FileSlice):
                size += chunk.length
                files = True
            else:
                size += len(chunk)
        if files:
            self._out.append(_LENGTH.pack(size))
            self._out.extend(chunks)
        else:
            self._out.append(b"".join((_LENGTH.pack(size), *chunks)))  # type: ignore[arg-type]
        self._out_bytes += size + 4
        if not self.dirty:
            self.dirty = True
            self._server.dirty.append(self)

    def flush(self) -> None:
        """Send what is queued, as far as the kernel takes it."""
        self.dirty = False
        if self.closed:
            return
        try:
            while self._out and self._send_some():
                pass
        except OSError as error:
            self._server.lost(self, error)
            return
        except Exception as error:  # noqa: BLE001 - as above; others are to be flushed, too
            self._server.failed(self, error)
            return
        if self._out:
            if self.stalled_since_ms is None:
                self.stalled_since_ms = self._server.monotonic_ms()
            self._set_writing(wanted=True)
            return
        self._out_bytes = 0
        if self._frame is None:
            self.stalled_since_ms = None
        if self._paused:
            self._resume()
        if self._writing:
            self._set_writing(wanted=False)

    def _send_some(self) -> bool:
        """Send one thing, or small ones together; return whether to go on."""
        out = self._out
        head = out[0]
        if len(out) == 1 and not isinstance(head, FileSlice):
            joined, count, more = head, 1, 0
        elif isinstance(head, FileSlice) and head.length >= self._server.sendfile_bytes:
            return self._send_file(head)
        else:
            joined, count, more = self._join()
        try:
            sent = self._socket.send(joined, more)
        except BlockingIOError:
            sent = 0
        if sent < len(joined):
            self._replace_front(count, memoryview(joined)[sent:])
            self._moved(sent)
            return False
        if count == len(out):
            out.clear()
            return False
        for _ in range(count):
            out.popleft()
        return True

    def _join(self) -> tuple[Buffer, int, int]:
        """Put small things together; return them, how many they are, MSG_MORE before a file."""
        parts: list[Buffer] = []
        size = 0
        for chunk in self._out:
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
            self._out.popleft()
        self._out.appendleft(rest)

    def _send_file(self, piece: FileSlice) -> bool:
        position, left = piece.position + self._sent, piece.length - self._sent
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
            raise ConnectionError(CUT_SHORT)
        self._moved(sent)
        self._sent += sent
        if self._sent < piece.length:
            return True
        self._sent = 0
        self._out.popleft()
        return True

    def _moved(self, sent: int) -> None:
        """A reader that is slow but reads has not stalled."""
        if sent and self._frame is None:
            self.stalled_since_ms = None
            self.last_progress_ms = self._timers.now_ms

    def patience_ms(self, stall_ms: int) -> int:
        """How long a stall may last: a large frame may take its time, a small one not."""
        return stall_ms + self._filled // SLOWEST_BYTES_PER_MS

    def _mute(self, duration_ms: int) -> None:
        """Read nothing for a while: the answer has told the client (KIP-219)."""
        self._muted += 1
        self._pause()
        self._server.node.timers.after(duration_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted -= 1
        if self._frame is not None:
            self.stalled_since_ms = self._server.monotonic_ms()  # it was us who did not read
        self._resume()

    @property
    def is_writing(self) -> bool:
        """Whether it waits for the kernel to have room."""
        return self._writing

    @property
    def waits_for_us(self) -> bool:
        """Whether it is the broker that does not read, so that nobody else is to blame."""
        return self._muted > 0

    def _has_room(self) -> bool:
        """Whether the client may ask for more, given what it has not been sent yet."""
        server = self._server
        return (
            self._out_bytes + self._held_bytes <= server.queued_bytes_max
            and len(self._slots) <= server.queued_answers_max
        )

    def _pause(self) -> None:
        if not self._paused and not self.closed:
            self._paused = True
            self._set_reading(wanted=False)

    def _resume(self) -> None:
        if not self._paused or self.closed or self._muted or not self._has_room():
            return
        if self._backlog is None:
            self._paused = False
            self._set_reading(wanted=True)
        elif not self._turn_is_due:
            self._turn_is_due = True
            self._server.in_turn(self._take_backlog)

    def _take_backlog(self) -> None:
        """Handle what was set aside, before anything newer is read."""
        self._turn_is_due = False
        if self.closed or self._muted or not self._has_room() or self._backlog is None:
            return
        self._paused = False
        self._guarded(self._take_more)
        if not self._paused and not self.closed:
            self._set_reading(wanted=True)

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

    def _set_reading(self, *, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            self._server.watch_reading(self, wanted=wanted)

    def _set_writing(self, *, wanted: bool) -> None:
        if self.closed or wanted == self._writing:
            return
        self._writing = wanted
        self._server.watch_writing(self, wanted=wanted)

    def close(self) -> None:
        """Let go of the socket and everything queued for it."""
        if self.closed:
            return
        self.closed = True
        self._server.forget(self, writing=self._writing, reading=self._reading)
        self._socket.close()
        self._out.clear()
        for slot in self._slots:
            if slot.pending is not None:
                slot.pending.abandon()
        self._slots.clear()
        self._held_bytes = 0
        self._frame = None
        self._backlog = None


def _size_of(chunks: list[Chunk]) -> int:
    return sum(chunk.length if isinstance(chunk, FileSlice) else len(chunk) for chunk in chunks)


def _read_all(piece: FileSlice) -> bytes:
    content = piece.file.read(piece.position, piece.length)
    if len(content) != piece.length:
        raise ConnectionError(CUT_SHORT)
    return content
