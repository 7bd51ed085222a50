"""Token buckets: how much of something may be used, and how long a client pauses after that.

Kafka measures a rate over 11 windows of one second, of which the last is still open. So a client
that was idle may use ten seconds of its quota at once. A bucket does the same without windows: it
holds ten seconds of the quota and fills at the quota's rate. The level may go below zero. The pause
is the time until it is back at zero.

Times are those of the monotonic clock, so a change of the wall clock has no effect.
"""

from collections.abc import Hashable
from weakref import WeakValueDictionary

WINDOW_S = 10
"""The content of a full bucket, in seconds of its rate."""
BUCKETS_MAX = 10_000
"""Beyond this number, buckets that no client holds are dropped, the oldest first. Such a bucket is
most likely full again, like a new one."""


class Bucket:
    """An amount that is used up and fills again."""

    __slots__ = ("__weakref__", "_level", "_then_ms", "rate")

    def __init__(self, rate: float, now_ms: int) -> None:
        self.rate = rate
        """The rate at which it fills, per second."""
        self._level = rate * WINDOW_S
        self._then_ms = now_ms

    def set_rate(self, rate: float, now_ms: int) -> None:
        """Fill at another rate from now on. A negative level stays."""
        if rate != self.rate:
            self._settle(now_ms)
            self.rate = rate
            self._level = min(self._level, rate * WINDOW_S)

    def use(self, amount: float, now_ms: int) -> int:
        """Take an amount out; return how long the client must pause."""
        level = self._settle(now_ms) - amount
        self._level = level
        return 0 if level >= 0 else int(-level * 1000 / self.rate) + 1

    def debt_ms(self, now_ms: int) -> int:
        """Return how long the client must still pause for its earlier use."""
        level = self._settle(now_ms)
        return 0 if level >= 0 else int(-level * 1000 / self.rate) + 1

    def room(self, now_ms: int) -> float:
        """Return how much may be used at once without a pause; negative after too much use."""
        return self._settle(now_ms)

    def _settle(self, now_ms: int) -> float:
        passed_ms = now_ms - self._then_ms
        if passed_ms > 0:
            filled = self._level + passed_ms * self.rate / 1000
            self._level = min(self.rate * WINDOW_S, filled)
            self._then_ms = now_ms
        return self._level


class BucketTable:
    """The buckets of all clients that share a kind of quota.

    All sessions that ask for a key get the same bucket while one of them holds it, and a while
    longer.
    """

    def __init__(self) -> None:
        self._held: WeakValueDictionary[Hashable, Bucket] = WeakValueDictionary()
        self._recent: dict[Hashable, Bucket] = {}
        """The buckets; the least recently requested one is first."""

    def __len__(self) -> int:
        return len(self._recent)

    def find(self, key: Hashable, rate: float, now_ms: int) -> Bucket:
        """Return the bucket of a key, which fills at this rate from now on."""
        bucket = self._held.get(key)
        if bucket is None:
            bucket = self._held[key] = Bucket(rate, now_ms)
        else:
            bucket.set_rate(rate, now_ms)
        self._recent.pop(key, None)
        if len(self._recent) >= BUCKETS_MAX:
            del self._recent[next(iter(self._recent))]
        self._recent[key] = bucket
        return bucket
