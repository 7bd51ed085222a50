"""Group commit: decides when a partition's appends are synced.

While a sync is running, whatever is appended waits for the next one, so the slower a disk is, the
more appends share a sync. With a linger time, the first append also waits for others, unless
enough bytes are waiting already.

Under `flush=interval` a timer starts the syncs (`node/chores/maintenance.py`). It looks only at
logs with unsynced records: of ten thousand partitions most have nothing to sync.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.model.timers import Timers

if TYPE_CHECKING:
    from barnabas.node.partitions.flusher import Flusher


class GroupCommit:
    """The policy that all partitions of a node share."""

    def __init__(self, timers: Timers, linger_ms: int, batch_bytes: int) -> None:
        self.timers = timers
        self._linger_ms = linger_ms
        self._batch_bytes = batch_bytes
        self._waiting: dict[Flusher, int] = {}
        self.unsynced: dict[Flusher, None] = {}
        """The logs that the timer may have to sync."""

    def appended(self, flusher: "Flusher", size: int) -> None:
        """Sync a log now, or after the linger time."""
        if self._linger_ms <= 0:
            flusher.flush()
            return
        waiting = self._waiting.get(flusher)
        if waiting is None:
            self.timers.after(self._linger_ms, self._flush_later(flusher))
        self._waiting[flusher] = (waiting or 0) + size
        if self._waiting[flusher] >= self._batch_bytes:
            flusher.flush()

    def left_unsynced(self, flusher: "Flusher") -> None:
        """Have the timer sync a log."""
        self.unsynced[flusher] = None

    def _flush_later(self, flusher: "Flusher") -> Callable[[], None]:
        def flush() -> None:
            self._waiting.pop(flusher, None)
            flusher.flush()

        return flush
