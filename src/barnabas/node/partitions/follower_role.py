"""What a replica does as a follower: it follows the leader's high watermark.

A follower's high watermark is the last one that its leader sent, as far as its own log reaches.
How the log gets its records is in `follower_log.py`.
"""

from barnabas.effects import Effect, Notice
from barnabas.model.ids import TopicPartition
from barnabas.node.partitions.replica_health import ReplicaHealth
from barnabas.node.partitions.watermark import Watermark
from barnabas.storage.log import Log


class FollowerRole:
    """One replica as a follower."""

    __slots__ = ("_health", "_log", "_name", "_outbox", "_watermark", "leader_high_watermark")

    def __init__(
        self,
        name: TopicPartition,
        log: Log,
        watermark: Watermark,
        health: ReplicaHealth,
        outbox: list[Effect],
    ) -> None:
        self._name = name
        self._log = log
        self._watermark = watermark
        self._health = health
        self._outbox = outbox
        self.leader_high_watermark = watermark.high
        """The last high watermark that the leader sent."""

    def forget_leader(self) -> None:
        """Forget the last leader's high watermark: an unclean election may have taken it back."""
        self.leader_high_watermark = self._watermark.high

    def set_leader_high_watermark(self, high_watermark: int) -> None:
        """Apply the high watermark that the leader sent."""
        self.leader_high_watermark = high_watermark
        if self._health.lost_records and high_watermark <= self._log.end_offset:
            self._health.lost_records = False
        self.advance()

    def advance(self) -> None:
        """Raise the high watermark as far as the leader's and the log allow."""
        self._watermark.advance(min(self.leader_high_watermark, self._log.end_offset))

    def truncated(self) -> None:
        """Lower the high watermark where the log was truncated below it."""
        end_offset, high_watermark = self._log.end_offset, self._watermark.high
        if end_offset < high_watermark:
            facts = {"partition": str(self._name), "from": end_offset, "to": high_watermark}
            self._outbox.append(Notice("error", "truncated below the high watermark", facts))
            self._watermark.high = end_offset
        self.forget_leader()

    def restarted_at(self, offset: int) -> None:
        """Set the high watermark to the start of the leader's log, from which this one continues.

        The leader's log starts below its high watermark.
        """
        self._watermark.high = self.leader_high_watermark = offset
