"""A frame of which only the beginning has arrived, in a buffer of its own.

The length that a client announces is not trusted: the buffer grows as the bytes arrive.
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
"""Takes a frame's length and its first bytes; raises `WireError` where it is not acceptable.

It is called with the length alone as soon as that has arrived, and again with the whole head.
"""


class PartialFrame:
    """A frame that was cut, from its first byte to its last."""

    __slots__ = ("_check", "_pool", "buffer", "filled", "size")

    def __init__(self, beginning: memoryview, pool: BufferPool, check: Check) -> None:
        self._check = check
        self._pool = pool
        self.size = HEAD_BYTES
        """How many bytes are to be received before the frame can go on: its head, then all."""
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
        """Receive more of this frame, and nothing of the next; return how many bytes came."""
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
        """Check the length as soon as it is there; allocate a buffer once the whole head is."""
        head = self.buffer
        if self.filled < HEAD_BYTES:
            if self.filled >= LENGTH_BYTES:
                self._check(_LENGTH.unpack_from(head)[0], b"")
            return
        self.buffer = self._allocate(head)
        self.buffer[:HEAD_BYTES] = head

    def _allocate(self, head: Buffer) -> bytearray:
        (size,) = _LENGTH.unpack_from(head)
        self._check(size, head[LENGTH_BYTES:HEAD_BYTES])
        self.size = size + LENGTH_BYTES
        return self._pool.take(min(self.size, FIRST_ALLOCATION_BYTES))
