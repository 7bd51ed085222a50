"""A replica that follows: connects its partition with the fetcher that fetches from the leader.

The fetcher (`replication/following.py`) asks it where to continue and gives it what the leader
sent. The partition tells it when the log is synced, and when records are damaged.
"""

from barnabas.effects import Effect
from barnabas.node.partitions.follower_log import FollowerLog
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.fetch import Diverging
from barnabas.protocol.replica_fetch_codec import Copied
from barnabas.replication.following import Fetcher, Key


class FollowerReplica:
    """One replica during one leader epoch."""

    __slots__ = (
        "_fetcher",
        "_is_held",
        "_leader_high_watermark",
        "_leader_start",
        "_log",
        "_me",
        "_moves_start",
        "_partition",
        "key",
        "leader_epoch",
    )

    def __init__(
        self, partition: Partition, fetcher: Fetcher, me: int, outbox: list[Effect]
    ) -> None:
        self._partition = partition
        self._log = FollowerLog(partition, outbox)
        self._fetcher = fetcher
        self._me = me
        self._is_held = False
        self.key: Key = (partition.topic_id, partition.name.partition)
        self.leader_epoch = partition.leader_epoch
        self._moves_start = False
        """Whether the start of the log is being moved to that of the leader's."""
        self._leader_high_watermark = self._leader_start = 0

    def begin(self) -> None:
        """Start to follow, unless the disk refuses appends."""
        self._partition.health.listener = self
        self._log.repair()
        self._is_held = self._partition.health.append_failures.are_refused
        if not self._is_held:
            self._follow()

    @property
    def is_held(self) -> bool:
        """Whether it waits until the disk accepts writes again."""
        return self._is_held and self._partition.health.listener is self

    def resume(self) -> None:
        """Follow, because the disk accepts writes again."""
        self._is_held = False
        self._partition.health.append_failures.ended()
        self._follow()

    def _follow(self) -> None:
        self._fetcher.follow(self)
        self.isr_changed()

    def isr_changed(self) -> None:
        """Have the fetcher repeat the fetch offset while this replica is out of sync."""
        if not self.is_in_sync:
            self._fetcher.out_of_sync(self.key)

    def end(self) -> None:
        """Stop following."""
        self._partition.health.listener = None
        self._fetcher.forget(self.key)

    def synced(self) -> None:
        """Have the fetcher tell the leader how far the log is synced."""
        if not self._moves_start:
            self._fetcher.synced(self.key)

    def damaged(self) -> None:
        """Truncate the log before the damaged records, and have them fetched again."""
        self._log.repair()
        if not self._is_held:
            self._fetcher.follow(self)

    def append_refused(self) -> None:
        """Do nothing: this concerns leaders only."""

    def append_accepted(self) -> None:
        """Do nothing: this concerns leaders only."""

    def retired(self) -> None:
        """Stop following a partition that this broker no longer has."""
        self.end()

    @property
    def is_in_sync(self) -> bool:
        """Whether the controller counts this replica as in sync."""
        return self._me in self._partition.isr

    @property
    def is_synced(self) -> bool:
        """Whether the log is as durable as the topic's `flush` setting asks for, its start too."""
        return self._partition.flusher.is_synced and not self._moves_start

    @property
    def bounds(self) -> tuple[int, int]:
        """The start and end offsets of the log."""
        log = self._partition.log
        return log.start_offset, log.end_offset

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last batch, -1 if there is none."""
        return self._partition.log.epochs.last

    @property
    def high_watermark(self) -> int:
        """The last high watermark of the leader that this replica applied."""
        return self._partition.follower.leader_high_watermark

    def apply(self, fetched: Copied) -> None:
        """Append what the leader sent, and apply its high watermark and log start offset."""
        self._log.append(fetched.records)
        self._leader_high_watermark = fetched.high_watermark
        self._leader_start = fetched.log_start_offset
        self._follow_start()
        if not self._moves_start:
            self._partition.follower.set_leader_high_watermark(fetched.high_watermark)

    def truncate(self, diverging: Diverging) -> None:
        """Truncate the log to the point where its leader epochs diverge from the leader's."""
        self._log.truncate(diverging)

    def restart(self, fetched: Copied) -> None:
        """Continue at the start of the leader's log, which no longer has the fetch offset."""
        self._log.restart_at(fetched.log_start_offset)

    def _follow_start(self) -> None:
        """Move the start of the log to that of the leader's, as far as it is committed.

        The leader's high watermark is applied once that is durable. A follower may have records
        below the leader's start that the leader never had, and no consumer must read them.
        """
        log, start_offset = self._partition.log, self._leader_start
        committed = min(self._leader_high_watermark, log.end_offset)
        upper = max(self._partition.high_watermark, committed)
        if log.start_offset < start_offset <= upper and not self._moves_start:
            self._moves_start = True
            deleted = self._partition.delete_before(start_offset)
            deleted.when_done(lambda _: self._start_moved(), lambda _: self._finish_start())

    def _start_moved(self) -> None:
        """Continue if the leader's log starts higher now; otherwise finish."""
        self._moves_start = False
        if self._partition.health.listener is self:
            self._follow_start()
        if not self._moves_start:
            self._finish_start()

    def _finish_start(self) -> None:
        """Apply the leader's high watermark, also where the disk refused to move the start.

        The leader's next response repeats its log start offset.
        """
        self._moves_start = False
        if self._partition.health.listener is self:
            self._partition.follower.set_leader_high_watermark(self._leader_high_watermark)
            if self.is_synced:
                self._fetcher.synced(self.key)
