"""Group commit: when a partition's appends are synced.

While a sync is under way, whatever is appended waits for the next, so syncs are shared most where
they are dearest. With a linger the first one, too, waits a moment for company, unless enough
bytes wait already.

Under `flush=interval` a partition waits for the clock (`node/maintenance.py`), which looks at those
that wait and at no others: of ten thousand partitions most have nothing to sync.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.model.timers import Timers

if TYPE_CHECKING:
    from barnabas.node.partition import Partition


class Flushable(Protocol):
    """What can be synced."""

    def flush(self) -> None:
        """Start a sync of everything appended so far, unless one is under way."""


class GroupCommit:
    """The policy that all partitions of a node share."""

    def __init__(self, timers: Timers, linger_ms: int, batch_bytes: int) -> None:
        self._timers = timers
        self._linger_ms = linger_ms
        self._batch_bytes = batch_bytes
        self._waiting: dict[Flushable, int] = {}
        self.unsynced: dict[Partition, None] = {}
        """Who waits for the clock."""

    @property
    def now_ms(self) -> int:
        """The monotonic clock."""
        return self._timers.now_ms

    def appended(self, partition: Flushable, size: int) -> None:
        """Sync the partition now, or soon."""
        if self._linger_ms <= 0:
            partition.flush()
            return
        waiting = self._waiting.get(partition)
        if waiting is None:
            self._timers.after(self._linger_ms, self._flush_later(partition))
        self._waiting[partition] = (waiting or 0) + size
        if self._waiting[partition] >= self._batch_bytes:
            partition.flush()

    def left_unsynced(self, partition: "Partition") -> None:
        """Leave it to the clock when a partition is synced."""
        self.unsynced[partition] = None

    def _flush_later(self, partition: Flushable) -> Callable[[], None]:
        def flush() -> None:
            self._waiting.pop(partition, None)
            partition.flush()

        return flush
