"""Who wants to hear of a partition, and of what."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Watcher(Protocol):
    """Whoever wants to know that there is more to read."""

    def on_retired(self) -> None:
        """Hear that the partition is gone from here, and look again."""

    def on_progress(self) -> None:
        """Hear that the high watermark moved; the last stable offset may have, too."""


class Copier(Watcher, Protocol):
    """A follower, who wants to know that there is more to copy."""

    def on_committed(self) -> None:
        """Hear that the high watermark moved, which can wait until there is more to say."""


class Keeper(Protocol):
    """Whoever looks after a copy in its role."""

    def synced(self) -> None:
        """Hear that the log is as safe as its topic wants it, up to its end."""

    def damaged(self) -> None:
        """Hear that stored records are damaged, from `damaged_at` on."""

    def append_refused(self) -> None:
        """Hear that the disk refused what the leader was to append."""

    def append_taken(self) -> None:
        """Hear that the disk took an append after it had refused one."""

    def retired(self) -> None:
        """Hear that the copy is not wanted any more."""


class Waiting(NamedTuple):
    """Whoever waits for an offset to become safe."""

    offset: int
    action: Callable[[], None]
    gone: Callable[[], None] | None
    """Called instead where the partition goes away before, which `retired` then says, or
    somebody else leads it."""
