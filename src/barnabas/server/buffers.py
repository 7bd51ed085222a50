"""A pool of receive buffers: reusing one is cheaper than allocating memory for each frame."""

KEPT_MAX = 8
KEPT_BYTES_MAX = 16 * 1024 * 1024
"""The largest buffer that is kept: about the size of one replica fetch."""
KEPT_TOTAL_BYTES_MAX = 64 * 1024 * 1024


class BufferPool:
    """A few buffers of each size, in powers of two."""

    def __init__(self, limit_bytes: int = 0) -> None:
        """Set the limit for all buffered bytes; 0 means none."""
        self._kept_max = min(KEPT_TOTAL_BYTES_MAX, limit_bytes // 8 or KEPT_TOTAL_BYTES_MAX)
        self._free: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least this size; its content is undefined."""
        rounded = 1 << max(12, (size - 1).bit_length())
        free = self._free.get(rounded)
        if not free:
            return bytearray(rounded)
        self._kept_bytes -= rounded
        return free.pop()

    def give_back(self, buffer: bytearray) -> None:
        """Keep a buffer for the next `take`, or drop it."""
        size = len(buffer)
        if size > KEPT_BYTES_MAX or size & (size - 1):
            return
        free = self._free.setdefault(size, [])
        if len(free) < KEPT_MAX and self._kept_bytes + size <= self._kept_max:
            free.append(buffer)
            self._kept_bytes += size
