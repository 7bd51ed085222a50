"""Tracks the outcome of transactions while compaction reads a log, batch by batch.

It sees only decided transactions, since compaction stays below the last stable offset. Records of
aborted transactions are removed. A marker stays while any batch of its transaction is left, even an
empty one: for a read_committed consumer it ends the transaction.
"""

from collections import deque
from collections.abc import Iterable

from barnabas.protocol.records import BatchHeader
from barnabas.storage.aborted import Aborted


class Outcomes:
    """The transactions that one pass through a log has seen so far."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._coming = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborted: dict[int, Aborted] = {}
        self._left: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Process a batch of users' records; tell whether they were aborted."""
        if not header.is_transactional:
            return False
        self._left.add(header.producer_id)
        self._reach(header.last_offset)
        entry = self._aborted.get(header.producer_id)
        return entry is not None and header.base_offset < entry.last_offset

    def ends_something(self, header: BatchHeader) -> bool:
        """Process a marker; tell whether there was a batch of its transaction."""
        if header.producer_id not in self._left:
            return False
        self._left.remove(header.producer_id)
        return True

    def aborted_by(self, header: BatchHeader) -> Aborted | None:
        """Return the transaction that a marker aborts, if it aborts one."""
        self._reach(header.last_offset)
        entry = self._aborted.get(header.producer_id)
        return entry if entry is not None and entry.last_offset == header.base_offset else None

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            entry = self._coming.popleft()
            self._aborted[entry.producer_id] = entry
