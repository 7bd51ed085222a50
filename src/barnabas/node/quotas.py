"""Quotas: a client that goes over its rate is slowed down, not refused (KIP-13, KIP-219).

A bucket for each client id holds what it may still use; it fills at the quota's rate up to one
second's worth. Going below zero costs the time that it takes to fill back to zero: the answer
is sent at once and says so, and then the connection is not read for as long.
"""

IDLE_BUCKETS_MAX = 10_000


class Quota:
    """Bytes a second for every client id of its own."""

    def __init__(self, bytes_per_second: int) -> None:
        self.limits = bytes_per_second > 0
        self._rate = bytes_per_second
        self._buckets: dict[str, tuple[float, int]] = {}

    def use(self, client_id: str | None, size: int, now_ms: int) -> int:
        """Take bytes out of a client's bucket; return for how long it must pause."""
        if not self.limits or size <= 0:
            return 0
        key = client_id or ""
        level, then_ms = self._buckets.get(key, (float(self._rate), now_ms))
        level = min(self._rate, level + (now_ms - then_ms) * self._rate / 1000) - size
        if len(self._buckets) >= IDLE_BUCKETS_MAX:
            self._buckets.clear()
        self._buckets[key] = (level, now_ms)
        return 0 if level >= 0 else int(-level * 1000 / self._rate) + 1
