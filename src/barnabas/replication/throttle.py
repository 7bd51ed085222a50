"""How fast copies that are out of sync may catch up, so that they leave room for those in sync."""


class Throttle:
    """A budget of bytes a second, shared by everything that catches up; 0 is no limit."""

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        """The budget that holds now."""
        self._paid_until_ms = 0.0

    def limit(self, bytes_per_second: int) -> None:
        """Take on another budget; what was used under the old one is forgotten."""
        if bytes_per_second != self.bytes_per_second:
            self.bytes_per_second = bytes_per_second
            self._paid_until_ms = 0.0

    def delay_ms(self, now_ms: int) -> int:
        """Return how long to wait before more is asked for."""
        if self.bytes_per_second <= 0:
            return 0
        return max(0, round(self._paid_until_ms - now_ms))

    def use(self, size: int, now_ms: int) -> None:
        """Pay for what came, with time."""
        if self.bytes_per_second > 0:
            start_ms = max(self._paid_until_ms, float(now_ms))
            self._paid_until_ms = start_ms + size * 1000 / self.bytes_per_second
