"""Limits the memory for the connections of clients: `performance.max_buffered_size`.

It counts all bytes that clients have sent and no handler has processed, and all that wait for
clients to read them. Slices of files are not counted: they wait in the page cache. A frame is
counted with its whole length from its first byte. So every frame that was begun can be finished,
and no connection waits for memory that another waiting one holds.

A frame that does not fit waits, and later frames wait behind it. The broker does not read its
connection meanwhile. If no frame is being read, the next one begins although it does not fit: it is
larger than the limit, or clients that do not read their answers hold the memory. So all clients are
served eventually, and the limit is exceeded by at most one frame.

Memory is tight once half of it is used. From then on connections first read only the length of a
frame, so that they hold a few bytes while they wait.

A TLS connection is counted with a fixed size, from its handshake to its end (`tls/tls_memory.py`).
A handshake for which there is no room does not begin until there is (`tls/handshakes.py`).

Connections of other brokers are not counted, and never wait.
"""

from collections import deque
from collections.abc import Callable

InTurn = Callable[[Callable[[], None]], None]
"""Runs a callback as a separate event."""


class WaitingFrame:
    """A frame that waits until there is memory for it."""

    __slots__ = ("_memory", "_proceed", "held_bytes", "is_cancelled", "is_granted", "size")

    def __init__(
        self, memory: "BufferedMemory", size: int, held_bytes: int, proceed: Callable[[], None]
    ) -> None:
        self._memory = memory
        self._proceed = proceed
        self.size = size
        self.held_bytes = held_bytes
        """How much of it has arrived already."""
        self.is_granted = False
        self.is_cancelled = False

    def proceed(self) -> None:
        """Continue, unless the connection was closed meanwhile."""
        if not self.is_cancelled:
            self._proceed()

    def cancel(self) -> None:
        """Stop waiting: the connection is closed."""
        self.is_cancelled = True
        if self.is_granted:
            self._memory.finish(self.size)
        else:
            self._memory.release(self.held_bytes)


class BufferedMemory:
    """Counts buffered bytes, and says which frame may begin."""

    def __init__(self, limit_bytes: int = 0, in_turn: InTurn | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._in_turn = in_turn
        self._waiting: deque[WaitingFrame] = deque()
        self._frames = 0
        """How many frames were begun and are being read."""
        self.used_bytes = 0
        self.is_tight = False
        """Whether connections must read lengths first."""

    @property
    def waiting(self) -> int:
        """How many frames wait for memory."""
        return len(self._waiting)

    def begin(self, size: int) -> bool:
        """Count a new frame; return False if it must wait."""
        if self._limit_bytes and (self._waiting or not self._fits(size)):
            return False
        self._frames += 1
        self.use(size)
        return True

    def has_room(self, size: int) -> bool:
        """Tell whether so many more bytes fit. Where nothing is used, anything fits."""
        limit_bytes = self._limit_bytes
        return not limit_bytes or not self.used_bytes or self.used_bytes + size <= limit_bytes

    def wait(self, size: int, held_bytes: int, proceed: Callable[[], None]) -> WaitingFrame:
        """Add a frame to the queue; it is counted before `proceed` is called."""
        frame = WaitingFrame(self, size, held_bytes, proceed)
        self._waiting.append(frame)
        self.use(held_bytes)
        return frame

    def finish(self, size: int) -> None:
        """Stop counting a frame."""
        self._frames -= 1
        self.release(size)

    def park(self) -> None:
        """Record that a frame is not read for now, because its client must pause."""
        self._frames -= 1
        self._admit()

    def unpark(self) -> None:
        """Record that such a frame is read again."""
        self._frames += 1

    def use(self, size: int) -> None:
        """Count bytes that must be kept even if they exceed the limit."""
        self.used_bytes += size
        self._note_tightness()

    def release(self, size: int) -> None:
        """Stop counting bytes."""
        self.used_bytes -= size
        self._admit()

    def _fits(self, size: int) -> bool:
        return not self._frames or self.used_bytes + size <= self._limit_bytes

    def _admit(self) -> None:
        """Start the waiting frames that fit now, in the order in which they arrived."""
        waiting = self._waiting
        while waiting:
            frame = waiting[0]
            if not frame.is_cancelled:
                if not self._fits(frame.size - frame.held_bytes):
                    break
                frame.is_granted = True
                self._frames += 1
                self.used_bytes += frame.size - frame.held_bytes
                assert self._in_turn is not None
                self._in_turn(frame.proceed)
            waiting.popleft()
        self._note_tightness()

    def _note_tightness(self) -> None:
        limit_bytes = self._limit_bytes
        self.is_tight = bool(limit_bytes) and (
            bool(self._waiting) or self.used_bytes * 2 > limit_bytes
        )


UNCOUNTED = BufferedMemory()
"""Used by connections of other brokers, instead of the server's."""
