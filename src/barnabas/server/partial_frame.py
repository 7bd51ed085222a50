"""A frame of which only the beginning has arrived, in its own buffer.

The length that a client announces is not trusted: the buffer grows as the bytes arrive. If there is
a limit for all buffers, the whole length is reserved first, and the frame may have to wait for that
(`buffered_memory.py`).
"""

from collections.abc import Callable
from struct import Struct

from barnabas.model.ports import Buffer
from barnabas.server.buffers import BufferPool

_LENGTH = Struct(">i")
LENGTH_BYTES = 4
HEAD_BYTES = 6
"""The length and the first two bytes of the content: for Kafka, the API key."""
FIRST_ALLOCATION_BYTES = 1024 * 1024

Check = Callable[[int, Buffer], None]
"""Takes a frame's length and its first bytes; raises `WireError` if it is not acceptable.

It is called with the length alone as soon as that has arrived, and again with the whole head.
"""

Reserve = Callable[[int, int], bool]
"""Takes the length of a frame, and how much of it has arrived; returns whether to continue."""


class PartialFrame:
    """A frame that arrives in parts, from its first byte to its last."""

    __slots__ = ("_check", "_pool", "_reserve", "buffer", "filled", "is_granted", "size")

    def __init__(
        self, beginning: memoryview, pool: BufferPool, check: Check, reserve: Reserve
    ) -> None:
        self._check = check
        self._pool = pool
        self._reserve = reserve
        self.is_granted = True
        """Whether it may be read: there is a buffer for it, or its head has not arrived yet."""
        self.size = HEAD_BYTES
        """How many bytes must arrive before the next step: the head, then the whole frame."""
        if len(beginning) < HEAD_BYTES:
            self.buffer = bytearray(HEAD_BYTES)
        else:
            self.buffer = self._allocate(beginning)
        self.filled = len(beginning)
        self.buffer[: self.filled] = beginning

    @property
    def is_whole(self) -> bool:
        """Whether all of it has arrived."""
        return self.filled == self.size > HEAD_BYTES

    def receive(self, receive: Callable[[memoryview], int]) -> int:
        """Receive more of this frame, and nothing of the next; return how many bytes arrived."""
        room = min(len(self.buffer), self.size)
        if self.filled == room:
            self.buffer.extend(bytes(min(room, self.size - room)))
            room = min(len(self.buffer), self.size)
        with memoryview(self.buffer)[self.filled : room] as view:
            count = receive(view)
        self.filled += count
        if count and self.size == HEAD_BYTES:
            self._read_head()
        return count

    def _read_head(self) -> None:
        """Check the length as soon as it arrives; allocate a buffer once the head is complete."""
        head = self.buffer
        if self.filled < HEAD_BYTES:
            if self.filled >= LENGTH_BYTES:
                self._check(_LENGTH.unpack_from(head)[0], b"")
            return
        self.buffer = self._allocate(head)
        self.buffer[:HEAD_BYTES] = head

    def go_on(self) -> None:
        """Allocate a buffer, after the frame had to wait for that."""
        beginning = self.buffer
        self.buffer = self._pool.take(min(self.size, FIRST_ALLOCATION_BYTES))
        self.buffer[: self.filled] = beginning
        self.is_granted = True

    def _allocate(self, head: Buffer) -> bytearray:
        (size,) = _LENGTH.unpack_from(head)
        self._check(size, head[LENGTH_BYTES:HEAD_BYTES])
        self.size = size + LENGTH_BYTES
        if not self._reserve(self.size, len(head)):
            self.is_granted = False
            return bytearray(len(head))
        return self._pool.take(min(self.size, FIRST_ALLOCATION_BYTES))
