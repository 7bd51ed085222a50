"""The interfaces through which a partition reports progress and problems."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Watcher(Protocol):
    """A reader that waits for more records."""

    def on_retired(self) -> None:
        """Detach from the partition, which is deleted, and read again."""

    def on_progress(self) -> None:
        """Read again: the high watermark or the last stable offset moved."""


class FollowerWatcher(Watcher, Protocol):
    """The fetch session of a follower, which waits for more records to replicate."""

    def on_committed(self) -> None:
        """Include the partition in the next response: its high watermark or log start moved."""


class ReplicaListener(Protocol):
    """The part of a broker that handles what happens to a replica in its present role."""

    def synced(self) -> None:
        """Continue: the log is as durable as the topic's `flush` setting asks for."""

    def damaged(self) -> None:
        """Handle damaged records, from `ReplicaHealth.damaged_at` on."""

    def append_refused(self) -> None:
        """Handle a disk that refused what the leader was to append."""

    def append_accepted(self) -> None:
        """Handle the first append that the disk accepted after it had refused one."""

    def retired(self) -> None:
        """Release the replica, which this broker no longer has."""


class Waiting(NamedTuple):
    """A request that waits until the records below an offset are committed."""

    offset: int
    action: Callable[[], None]
    cancelled: Callable[[], None] | None
    """Called instead of the action where the partition is deleted, or another broker leads it."""
