"""One client's socket: bytes in become frames, answers become bytes out, in order.

Reading goes through one buffer that all connections share, since there is one thread: a frame
that arrives whole is handled where it lies, and only a cut one is moved to a buffer of its own.
An idle connection owns no buffer at all.

Answers leave in the order of the requests (a slot is kept for one that is pending), gathered
until the end of the event. Files are sent by sendfile where they are large enough to pay for it.
"""

import os
import socket
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING

from barnabas.handlers.context import RequestContext
from barnabas.handlers.registry import PRODUCE, dispatch
from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer, Chunk, FileSlice
from barnabas.node.pending import Pending

if TYPE_CHECKING:
    from barnabas.server.server import Server

_LENGTH = Struct(">i")
_API_KEY = Struct(">h")
MSG_MORE = getattr(socket, "MSG_MORE", 0)
FIRST_ALLOCATION_BYTES = 1024 * 1024
OTHER_REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""Only Produce carries data; a larger request of another kind is a mistake or an attack."""
QUEUED_BYTES_MAX = 1024 * 1024
QUEUED_ANSWERS_MAX = 1000
SENDFILE_BYTES_MAX = 1 << 30
JOIN_BYTES_MAX = 64 * 1024
SLOWEST_BYTES_PER_MS = 10


class Slot:
    """The place of one answer in the queue."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: list[Chunk] | None = None


class Connection:
    """One accepted socket, until it is closed."""

    __slots__ = (
        "__weakref__",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_muted",
        "_out",
        "_out_bytes",
        "_prefix_bytes",
        "_reading",
        "_sent",
        "_server",
        "_slots",
        "_socket",
        "_writing",
        "closed",
        "descriptor",
        "dirty",
        "host",
        "last_progress_ms",
        "stalled_since_ms",
    )

    def __init__(self, server: "Server", accepted: socket.socket, host: str, now_ms: int) -> None:
        self._server = server
        self._socket = accepted
        self.descriptor = accepted.fileno()
        self.host = host
        self.closed = False
        self.dirty = False
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0
        self._slots: deque[Slot] = deque()
        self._out: deque[Chunk] = deque()
        self._out_bytes = 0
        self._prefix_bytes = 0
        self._sent = 0
        self._muted = 0
        self._reading = True
        self._writing = False
        self.last_progress_ms = now_ms
        self.stalled_since_ms: int | None = None

    def on_readable(self) -> None:
        """Take what the kernel has, and handle every whole frame in it."""
        self.dirty = True  # so that answers gather until the end of this event
        try:
            if self._frame is None:
                self._read_shared()
            else:
                self._read_own()
        except WireError as error:
            self._server.refuse(self, str(error))
        except (ConnectionError, TimeoutError, OSError) as error:
            self._server.lost(self, error)
        except Exception as error:  # noqa: BLE001 - one request's bug must not hang its client
            self._server.failed(self, error)
        if self._out:
            self.flush()
        else:
            self.dirty = False

    def on_writable(self) -> None:
        """Go on where the kernel had no more room."""
        self.flush()

    def _read_shared(self) -> None:
        server = self._server
        shared = server.receive_buffer
        try:
            count = self._socket.recv_into(shared)
        except BlockingIOError:
            return
        if count == 0:
            self.close()
            return
        self.last_progress_ms = server.node.timers.now_ms
        position = 0
        while count - position >= 4:
            (size,) = _LENGTH.unpack_from(shared, position)
            if not 8 <= size <= server.max_request_bytes:
                self._check_size(size)
            end = position + 4 + size
            if end > count:
                break
            self._handle(shared[position + 4 : end])
            if self.closed:
                return
            position = end
        if position < count:
            self._keep(shared[position:count])

    def _keep(self, rest: memoryview) -> None:
        """Move the beginning of a frame into a buffer of its own."""
        if len(rest) < 4:
            self._frame = bytearray(4)
            self._frame_bytes = 4
        else:
            (size,) = _LENGTH.unpack_from(rest)
            self._frame_bytes = size + 4
            self._check_kind(rest, size)
            # A claim is not yet bytes: what is claimed is allocated as it arrives.
            self._frame = self._server.buffers.take(min(size + 4, FIRST_ALLOCATION_BYTES))
        self._frame[: len(rest)] = rest
        self._filled = len(rest)
        self.stalled_since_ms = self.last_progress_ms

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
            self.last_progress_ms = self._server.node.timers.now_ms
            self._filled += count
            if self._filled < self._frame_bytes:
                continue
            if self._frame_bytes == 4:
                self._learn_size()
                frame = self._frame
                assert frame is not None
                continue
            self._finish_frame(frame)
            return

    def _learn_size(self) -> None:
        assert self._frame is not None
        (size,) = _LENGTH.unpack_from(self._frame)
        self._check_size(size)
        self._frame_bytes = size + 4
        grown = self._server.buffers.take(min(size + 4, FIRST_ALLOCATION_BYTES))
        grown[:4] = self._frame[:4]
        self._frame = grown

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

    def _check_kind(self, rest: memoryview, size: int) -> None:
        if len(rest) >= 6 and size > OTHER_REQUEST_BYTES_MAX:
            (api_key,) = _API_KEY.unpack_from(rest, 4)
            if api_key != PRODUCE:
                raise WireError(f"{size} bytes for API {api_key}, which carries no data")

    def _handle(self, frame: memoryview) -> None:
        server = self._server
        now_ms = server.wall_clock_ms()
        if self._prefix_bytes:
            known = server.shapes.answer(frame, self._prefix_bytes, now_ms)
            if isinstance(known, bytes) and not self._slots:
                self._out.append(known)
                self._out_bytes += len(known)
                self._pace()
                return
            if known is not None:
                self._promise(known if isinstance(known, Pending) else [known[4:]])
                return
        answer, context = dispatch(server.node, frame, self.host, now_ms, server.shapes)
        self._prefix_bytes = context.prefix_bytes
        if answer is None:
            self._pace(context)
        else:
            self._promise(answer, context)

    def _promise(
        self, answer: list[Chunk] | Pending[list[Chunk]], context: RequestContext | None = None
    ) -> None:
        """Queue an answer in its turn."""
        if isinstance(answer, Pending):
            slot = Slot()
            self._slots.append(slot)
            answer.when_done(lambda chunks: self._fill(slot, chunks, context))
            if not answer.done:
                self._pace()
            return
        if self._slots:
            slot = Slot()
            slot.chunks = answer
            self._slots.append(slot)
        else:
            self._queue(answer)
        self._pace(context)

    def _pace(self, context: RequestContext | None = None) -> None:
        """Read no more for now where the client is over its quota or behind with our answers."""
        if context is not None and context.throttle_ms:
            self._mute(context.throttle_ms)
        elif self._out_bytes > QUEUED_BYTES_MAX or len(self._slots) > QUEUED_ANSWERS_MAX:
            self._set_reading(wanted=False)

    def _fill(self, slot: Slot, chunks: list[Chunk], context: RequestContext | None) -> None:
        slot.chunks = chunks
        slots = self._slots
        while slots and (ready := slots[0].chunks) is not None:
            slots.popleft()
            self._queue(ready)
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
        except (ConnectionError, TimeoutError, OSError) as error:
            self._server.lost(self, error)
            return
        if not self._out:
            self._out_bytes = 0
            if self._frame is None:
                self.stalled_since_ms = None
            if not self._reading and not self._muted:
                self._set_reading(wanted=True)
        elif self.stalled_since_ms is None:
            self.stalled_since_ms = self._server.monotonic_ms()
        if self._writing is not bool(self._out):
            self._set_writing(wanted=bool(self._out))

    def _send_some(self) -> bool:
        """Send one thing, or small ones together; return whether to go on."""
        out = self._out
        head = out[0]
        if isinstance(head, FileSlice) and head.length >= self._server.sendfile_bytes:
            return self._send_file(head)
        if len(out) == 1 and not isinstance(head, FileSlice):
            joined, count, more = head, 1, False
        else:
            joined, count, more = self._join()
        try:
            sent = self._socket.send(joined, MSG_MORE if more else 0)
        except BlockingIOError:
            sent = 0
        if sent < len(joined):
            self._replace_front(count, memoryview(joined)[sent:])
            self._moved(sent)
            return False
        for _ in range(count):
            out.popleft()
        return True

    def _join(self) -> tuple[Buffer, int, bool]:
        """Put small things together; return them, how many they are, whether a file follows."""
        parts: list[Buffer] = []
        size = 0
        for chunk in self._out:
            if isinstance(chunk, FileSlice):
                if chunk.length >= self._server.sendfile_bytes:
                    return (parts[0] if len(parts) == 1 else b"".join(parts)), len(parts), True
                parts.append(chunk.file.read(chunk.position, chunk.length))
            else:
                parts.append(chunk)
            size += len(parts[-1])
            if size >= JOIN_BYTES_MAX:
                break
        return (parts[0] if len(parts) == 1 else b"".join(parts)), len(parts), False

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
            raise ConnectionError("the file is shorter than what was promised of it")
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
            self.last_progress_ms = self._server.node.timers.now_ms

    def patience_ms(self, stall_ms: int) -> int:
        """How long a stall may last: a large frame may take its time, a small one not."""
        return stall_ms + self._filled // SLOWEST_BYTES_PER_MS

    def _mute(self, duration_ms: int) -> None:
        """Read nothing for a while: the answer has told the client (KIP-219)."""
        self._muted += 1
        self._set_reading(wanted=False)
        self._server.node.timers.after(duration_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted -= 1
        if not self._muted:
            self._set_reading(wanted=True)

    def _set_reading(self, *, wanted: bool) -> None:
        if self.closed or wanted == self._reading:
            return
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
        self._slots.clear()
        self._frame = None
