"""Waiting for records: the long poll of Fetch, as a part that other requests can use.

`RecordWait` is the wait itself: a look, which is repeated whenever a partition moves, and a
deadline, at which it looks for the last time. Fetch passes its own look and its own watchers of
partitions (those of a fetch session outlive the request). Other users call `wait_for_records`:

    waiting = wait_for_records(timers, [Position(partition, 42)], min_bytes=1, timeout_ms=500)
    waiting.when_done(...)      READY, TIMED_OUT or LOST
    waiting.abandon()           cancels the wait
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.partitions.partition import Partition
from barnabas.storage.trust import Allowance

MAX_BYTES = 1 << 20


class Look(Protocol):
    """Checks whether a wait is over, and ends it if so; the last look always ends it."""

    def __call__(self, *, at_last: bool = False) -> None:
        """Look."""


class Holder(Protocol):
    """Keeps the wait of its current request, so that its watchers of partitions find it."""

    wait: "RecordWait | None"


class RecordWait:
    """One wait: until a look ends it, or the deadline passes."""

    __slots__ = ("__weakref__", "_holder", "_timer", "_timers", "wake")

    def __init__(
        self, timers: Timers, timeout_ms: int, look: Look, holder: Holder | None = None
    ) -> None:
        self.wake: Look = look
        """Call this when a partition moves. It is the look itself, which saves a Python call."""
        self._timers = timers
        self._holder = holder
        if holder is not None:
            holder.wait = self
        self._timer = timers.after(timeout_ms, self.expire)

    def expire(self) -> None:
        """Look for the last time now."""
        self.wake(at_last=True)

    def shorten(self, timeout_ms: int) -> None:
        """Wait no longer than this from now on."""
        timers = self._timers
        if self._timer.deadline_ms > timers.now_ms + timeout_ms:
            self._timer.cancel()
            self._timer = timers.after(timeout_ms, self.expire)

    def stop(self) -> None:
        """End the wait. The request and its wait no longer refer to each other after that."""
        self._timer.cancel()
        self.wake = _ended
        # The next request of a fetch session may already wait; it keeps its own wait.
        if self._holder is not None and self._holder.wait is self:
            self._holder.wait = None


def _ended(*, at_last: bool = False) -> None:
    """Ignore a partition that moves after the end of a wait."""
    del at_last


class Position(NamedTuple):
    """Where to read a partition from."""

    partition: Partition
    offset: int


class Ended(Enum):
    """Why a wait for records ended."""

    READY = 0
    """There are enough bytes to read."""
    TIMED_OUT = 1
    LOST = 2
    """A partition was deleted, its leadership changed, or it cannot be read: the caller finds out
    which when it reads."""


def wait_for_records(
    timers: Timers,
    positions: Sequence[Position],
    *,
    min_bytes: int,
    timeout_ms: int,
    committed_only: bool = False,
) -> Pending[Ended]:
    """Wait until partitions have `min_bytes` in all to read up to their high watermarks.

    With `committed_only` the last stable offset is the limit. The answer may be there at once;
    abandoning it cancels the wait.
    """
    return _PartitionsWait(timers, positions, min_bytes, timeout_ms, committed_only).begin()


class _PartitionsWait:
    """A wait on partitions that only this wait watches."""

    __slots__ = ("_committed_only", "_epochs", "_min_bytes", "_pending", "_positions", "_wait")

    def __init__(
        self,
        timers: Timers,
        positions: Sequence[Position],
        min_bytes: int,
        timeout_ms: int,
        committed_only: bool,
    ) -> None:
        self._positions = positions
        self._epochs = [position.partition.leader_epoch for position in positions]
        self._min_bytes = min_bytes
        self._committed_only = committed_only
        self._pending: Pending[Ended] = Pending()
        self._wait = RecordWait(timers, timeout_ms, self._look)

    def begin(self) -> Pending[Ended]:
        """Watch the partitions, and look for the first time."""
        self._pending.on_abandoned = self._stop
        for partition, _ in self._positions:
            partition.watermark.watchers[self] = None
        self._look()
        return self._pending

    def on_progress(self) -> None:
        """Look again: a high watermark or a last stable offset moved."""
        self._wait.wake()

    def on_retired(self) -> None:
        """Look again: a partition was deleted."""
        self._wait.wake()

    def _look(self, *, at_last: bool = False) -> None:
        ended = self._state()
        if ended is None and at_last:
            ended = Ended.TIMED_OUT
        if ended is not None:
            self._stop()
            self._pending.complete(ended)

    def _state(self) -> Ended | None:
        size, allowance = 0, Allowance()
        for (partition, offset), epoch in zip(self._positions, self._epochs, strict=True):
            if partition.retired or partition.leader_epoch != epoch:
                return Ended.LOST
            try:
                found = partition.read(
                    offset,
                    max(self._min_bytes, MAX_BYTES),
                    allowance,
                    committed_only=self._committed_only,
                    at_least_one=True,
                )
            except ApiError:
                return Ended.LOST
            size += 0 if found is None else found.length
        return Ended.READY if size >= self._min_bytes else None

    def _stop(self) -> None:
        self._wait.stop()
        for partition, _ in self._positions:
            partition.watermark.watchers.pop(self, None)
