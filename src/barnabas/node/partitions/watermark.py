"""A partition's high watermark, and the requests and readers that wait for it to move.

Records below the high watermark are committed: consumers may read them, and acks=all is answered.
The leader role and the follower role decide how far it may move (`leader_role.py`,
`follower_role.py`).

A read_committed consumer reads up to the last stable offset. Below it, every transaction has ended,
and the marker that ended it is committed.
"""

from collections import deque
from collections.abc import Callable

from barnabas.node.partitions.partition_listeners import FollowerWatcher, Waiting, Watcher
from barnabas.storage.log import Log


class Watermark:
    """The high watermark of one replica."""

    __slots__ = ("_log", "_waiting", "followers", "high", "watchers")

    def __init__(self, log: Log, high_watermark: int) -> None:
        self._log = log
        self.high = min(max(high_watermark, log.start_offset), log.end_offset)
        """The high watermark: every record below it is committed."""
        self.watchers: dict[Watcher, None] = {}
        """Fetches of consumers, which read committed records."""
        self.followers: dict[FollowerWatcher, None] = {}
        """Fetch sessions of followers, which read up to the end of the log."""
        self._waiting: deque[Waiting] = deque()

    @property
    def last_stable(self) -> int:
        """The last stable offset, up to which a read_committed consumer may read."""
        first_unstable = self._log.producers.first_unstable
        if first_unstable >= self.high:
            return self.high
        return max(first_unstable, self._log.start_offset)

    def when_safe(
        self, offset: int, action: Callable[[], None], cancelled: Callable[[], None] | None = None
    ) -> None:
        """Call the action once every record below the offset is committed.

        `cancelled` is called instead if this broker stops leading the partition before that, or
        the partition is deleted.
        """
        if self.high >= offset:
            action()
        else:
            self._waiting.append(Waiting(offset, action, cancelled))

    def advance(self, offset: int) -> None:
        """Raise the high watermark to an offset, answer producers, and wake consumers."""
        if offset <= self.high:
            return
        self.high = offset
        producers = self._log.producers
        if producers.ended:
            producers.settle(offset)
        waiting = self._waiting
        while waiting and waiting[0].offset <= offset:
            waiting.popleft().action()
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.on_progress()
        if self.followers:
            self.tell_followers()

    def wake_followers(self) -> None:
        """Tell followers that the leader has appended records."""
        for follower in list(self.followers):
            follower.on_progress()

    def tell_followers(self) -> None:
        """Have the next fetch response of each follower carry the high watermark and log start."""
        for follower in self.followers:
            follower.on_committed()

    def wake_readers(self) -> None:
        """Have consumers and followers read again."""
        for reader in [*self.watchers, *self.followers]:
            reader.on_progress()

    def cancel_waiting(self) -> None:
        """Have all readers read again, and cancel waiting requests: another broker leads now."""
        waiting, self._waiting = self._waiting, deque()
        self.wake_readers()
        _cancel(waiting)

    def close(self) -> None:
        """Detach all readers and cancel waiting requests: the topic is deleted."""
        waiting, self._waiting = self._waiting, deque()
        for reader in [*self.watchers, *self.followers]:
            reader.on_retired()
        self.watchers.clear()
        self.followers.clear()
        _cancel(waiting)


def _cancel(waiting: deque[Waiting]) -> None:
    for each in waiting:
        if each.cancelled is not None:
            each.cancelled()
