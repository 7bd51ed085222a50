"""Limits how fast out-of-sync replicas catch up, which leaves bandwidth for those in sync."""


class Throttle:
    """A rate in bytes a second, shared by all replicas that catch up; 0 is no limit."""

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        """The present rate."""
        self._paid_until_ms = 0.0

    def limit(self, bytes_per_second: int) -> None:
        """Set another rate, and forget how much was used under the old one."""
        if bytes_per_second != self.bytes_per_second:
            self.bytes_per_second = bytes_per_second
            self._paid_until_ms = 0.0

    def delay_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next fetch."""
        if self.bytes_per_second <= 0:
            return 0
        return max(0, round(self._paid_until_ms - now_ms))

    def use(self, size: int, now_ms: int) -> None:
        """Count bytes that were fetched."""
        if self.bytes_per_second > 0:
            start_ms = max(self._paid_until_ms, float(now_ms))
            self._paid_until_ms = start_ms + size * 1000 / self.bytes_per_second
