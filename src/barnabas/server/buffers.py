"""Receive buffers that are used again: a frame lives for a moment, its pages cost more."""

KEPT_MAX = 8
KEPT_BYTES_MAX = 16 * 1024 * 1024
"""The largest that is kept: what brokers copy from each other at once comes to about that."""
KEPT_TOTAL_BYTES_MAX = 64 * 1024 * 1024


class BufferPool:
    """A handful of buffers by size, in powers of two."""

    def __init__(self) -> None:
        self._free: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least this size; what it holds is not defined."""
        rounded = 1 << max(12, (size - 1).bit_length())
        free = self._free.get(rounded)
        if not free:
            return bytearray(rounded)
        self._kept_bytes -= rounded
        return free.pop()

    def give_back(self, buffer: bytearray) -> None:
        """Keep a buffer for the next taker, or let it go."""
        size = len(buffer)
        if size > KEPT_BYTES_MAX or size & (size - 1):
            return
        free = self._free.setdefault(size, [])
        if len(free) < KEPT_MAX and self._kept_bytes + size <= KEPT_TOTAL_BYTES_MAX:
            free.append(buffer)
            self._kept_bytes += size
