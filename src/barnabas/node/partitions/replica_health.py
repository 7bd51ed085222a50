"""What is wrong with one replica: damaged or lost records, and a disk that refuses appends.

A replica with a problem should not lead while another in-sync replica can. The listener acts on
problems: a leader has another replica elected, a follower fetches damaged records again.
"""

from barnabas.effects import Effect, Notice
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.node.partitions.append_failures import AppendFailures
from barnabas.node.partitions.partition_listeners import ReplicaListener


class ReplicaHealth:
    """The known problems of one replica."""

    __slots__ = (
        "_name",
        "_outbox",
        "_reported",
        "append_failures",
        "damaged_at",
        "listener",
        "lost_records",
    )

    def __init__(self, name: TopicPartition, outbox: list[Effect]) -> None:
        self._name = name
        self._outbox = outbox
        self._reported: tuple[str, int] | None = None
        self.listener: ReplicaListener | None = None
        self.lost_records = False
        """Whether the disk lost records that this replica had acknowledged. It must not lead,
        unless it is the last replica, until it has them again."""
        self.damaged_at: int | None = None
        """The first offset at which stored records are known to be damaged."""
        self.append_failures = AppendFailures(name, outbox)

    @property
    def may_lack_records(self) -> bool:
        """Whether records that this replica had acknowledged may be lost or damaged."""
        return self.lost_records or self.damaged_at is not None

    def found_damage(self, offset: int) -> None:
        """Record that stored records from an offset on are damaged, and have it handled."""
        if self.damaged_at is None or offset < self.damaged_at:
            self.damaged_at = offset
        if self.listener is not None:
            self.listener.damaged()

    def append_refused(self, error: OSError) -> ApiError:
        """Record that the disk refused an append of the leader; return the error for the client."""
        failure = self.append_failures.refused(error)
        if self.listener is not None:
            self.listener.append_refused()
        return failure

    def append_accepted(self) -> None:
        """Record that the disk accepts the leader's appends again."""
        self.append_failures.ended()
        if self.listener is not None:
            self.listener.append_accepted()

    def report_once(self, event: str, offset: int, error: Exception) -> None:
        """Log a problem at an offset once, not for every consumer that reads there."""
        if (event, offset) == self._reported:
            return
        self._reported = (event, offset)
        facts = {"partition": str(self._name), "offset": offset, "problem": str(error)}
        self._outbox.append(Notice("error", event, facts))
