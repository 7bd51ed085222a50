"""Quotas: a client that goes over its rate is slowed down, not refused (KIP-13, KIP-219).

A bucket for each client id holds what it may still use; it fills at the quota's rate up to one
second's worth. Going below zero costs the time that it takes to fill back to zero: the answer
is sent at once and says so, and then the connection is not read for as long.

A bucket belongs to the client id, not to a connection: a client that connects again still has its
debt to wait for. Times are those of the monotonic clock, so a step of the calendar changes nothing.
"""

BUCKETS_MAX = 10_000
"""Beyond it the client id that was used the longest ago is forgotten: most likely its bucket is
full again, which is what a new one would be."""


class Quota:
    """Bytes a second for every client id of its own."""

    def __init__(self, bytes_per_second: int) -> None:
        self.limits = bytes_per_second > 0
        self.burst_bytes = bytes_per_second
        """The most that a bucket holds: what a client that was idle may use at once."""
        self._rate = bytes_per_second
        self._buckets: dict[str, tuple[float, int]] = {}
        """Level and when it was that, the client id that was used the longest ago first."""

    def use(self, client_id: str | None, size: int, now_ms: int) -> int:
        """Take bytes out of a client's bucket; return for how long it must pause."""
        if not self.limits or size <= 0:
            return 0
        key = client_id or ""
        level = self._level(key, now_ms) - size
        self._buckets.pop(key, None)
        if len(self._buckets) >= BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = (level, now_ms)
        return self._pause_ms(level)

    def debt_ms(self, client_id: str | None, now_ms: int) -> int:
        """Return for how long a client must still pause for what it used before."""
        if not self.limits:
            return 0
        return self._pause_ms(self._level(client_id or "", now_ms))

    def _level(self, key: str, now_ms: int) -> float:
        level, then_ms = self._buckets.get(key, (float(self._rate), now_ms))
        return min(float(self._rate), level + (now_ms - then_ms) * self._rate / 1000)

    def _pause_ms(self, level: float) -> int:
        return 0 if level >= 0 else int(-level * 1000 / self._rate) + 1
