"""One broker's replica of a partition: its role, and what clients may read from it.

The controller decides which replica leads. The parts of a replica are:

    leader      appends batches and counts in-sync replicas      leader_role.py
    follower    follows the leader's high watermark              follower_role.py
    watermark   the high watermark and what waits for it         watermark.py
    flusher     syncs the log to disk                            flusher.py
    health      damaged records and a disk that refuses appends  replica_health.py

Both roles always exist, and one of them is active. How a follower's log gets its records is in
`follower_log.py`. Consumers may read from the leader and from followers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas.effects import Effect
from barnabas.metadata.image import INTERNAL_TOPICS, PartitionImage
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import FileSlice
from barnabas.node.partitions import log_reading as reading
from barnabas.node.partitions.batch_checking import Checks
from barnabas.node.partitions.flusher import Flusher
from barnabas.node.partitions.follower_role import FollowerRole
from barnabas.node.partitions.group_commit import GroupCommit
from barnabas.node.partitions.leader_role import LeaderRole
from barnabas.node.partitions.log_changes import LogChanges
from barnabas.node.partitions.replica_health import ReplicaHealth
from barnabas.node.partitions.watermark import Watermark
from barnabas.node.topic_traffic import TopicTraffic
from barnabas.protocol.fetch import Diverging
from barnabas.replication.divergence import divergence
from barnabas.replication.in_sync import InSync
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.trust import Allowance

NO_LEADER = -1


class Partition:
    """One replica, which leads or follows."""

    __slots__ = (
        "__weakref__",
        "_changes",
        "_outbox",
        "checks",
        "config",
        "flusher",
        "follower",
        "health",
        "internal",
        "leader",
        "leader_epoch",
        "leader_id",
        "leads",
        "log",
        "name",
        "placed",
        "retired",
        "topic_id",
        "traffic",
        "watermark",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        config: TopicConfig,
        outbox: list[Effect],
        commits: GroupCommit,
        high_watermark: int = 0,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.internal = name.topic in INTERNAL_TOPICS
        """Whether only the broker writes here."""
        self.log = log
        self.config = config
        self.placed = PartitionImage([], NO_LEADER)
        """The replicas, the ISR and the leader, as the controller last decided."""
        self.leads = self.retired = False
        self.leader_id, self.leader_epoch = NO_LEADER, -1
        self.checks = Checks(outbox)
        self.health = ReplicaHealth(name, outbox)
        self.watermark = Watermark(log, high_watermark)
        self.flusher = Flusher(log, config, outbox, commits, self._flushed)
        self.leader = LeaderRole(
            log,
            config,
            self.watermark,
            self.flusher,
            self.health,
            self.checks,
            commits.timers,
        )
        self.follower = FollowerRole(name, log, self.watermark, self.health, outbox)
        self._changes: LogChanges | None = None
        self._outbox = outbox
        self.traffic: TopicTraffic | None = None
        """The numbers of the topic; None where nothing is counted."""

    def count_in(self, traffic: TopicTraffic) -> None:
        """Add what goes through this replica to the numbers of its topic."""
        self.traffic = self.leader.traffic = traffic

    @property
    def replicas(self) -> Sequence[int]:
        """The brokers that have a replica."""
        return self.placed.replicas

    @property
    def isr(self) -> Sequence[int]:
        """The in-sync replicas, as the controller decided."""
        return self.placed.isr

    @property
    def in_sync(self) -> InSync | None:
        """The followers, if this replica leads and there are any."""
        return self.leader.in_sync

    @property
    def high_watermark(self) -> int:
        """The offset below which every record is committed."""
        return self.watermark.high

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which a read_committed consumer may read."""
        return self.watermark.last_stable

    @property
    def is_unfit(self) -> bool:
        """Whether another replica should lead if one can: this one lacks records, or disk space."""
        health = self.health
        cannot_begin = health.damaged_at is not None or health.append_failures.are_refused
        return health.lost_records or (cannot_begin and not self.leads)

    def lead(self, placed: PartitionImage, me: int, now_ms: int) -> None:
        """Become the leader, or apply other replicas or another ISR."""
        epochs = placed.leader_epoch, placed.partition_epoch
        if self.leads and epochs < (self.leader_epoch, self.placed.partition_epoch):
            return  # the controller's response, which was applied before, is newer than the image
        self.placed, self.leads = placed, True
        self.leader_id, self.leader_epoch = me, placed.leader_epoch
        self.leader.lead(placed, me, now_ms)
        self.flusher.flush_if_due()
        self.leader.advance()

    def follow(self, placed: PartitionImage) -> None:
        """Become a follower, or follow another leader; cancel requests that wait on a leader."""
        led = self.leads
        if placed.leader_epoch != self.leader_epoch:
            self.follower.forget_leader()
        self.placed, self.leads = placed, False
        self.leader_id, self.leader_epoch = placed.leader, placed.leader_epoch
        self.leader.resign()
        # An epoch in which this replica led and wrote nothing is not part of the log's history.
        self.log.epochs.truncate_end(self.log.end_offset)
        if led:
            self.watermark.cancel_waiting()

    def apply_isr_change(self, isr: Sequence[int], partition_epoch: int, now_ms: int) -> None:
        """Apply the ISR from the controller's response, before the image has it."""
        if self.in_sync is None or partition_epoch <= self.placed.partition_epoch:
            return
        self.placed = replace(self.placed, isr=list(isr), partition_epoch=partition_epoch)
        self.leader.set_isr(self.placed.replicas, isr, partition_epoch, now_ms)
        self.leader.advance()

    def configure(self, config: TopicConfig) -> None:
        """Apply another topic configuration, from the next append on."""
        self.config = config
        self.log.settings = log_settings(config)
        self.leader.configure(config)
        self.flusher.configure(config)
        self._advance()

    def _advance(self) -> None:
        role = self.leader if self.leads else self.follower
        role.advance()

    def _flushed(self) -> None:
        """Continue after a sync."""
        self._advance()
        listener = self.health.listener
        if listener is not None and self.flusher.is_synced:
            listener.synced()

    def diverges(self, last_epoch: int, offset: int) -> Diverging | None:
        """Return where this log diverges from that of a replica or consumer, if it does."""
        return divergence(self.log.epochs, self.log.end_offset, last_epoch, offset)

    def when_safe(
        self, offset: int, action: Callable[[], None], cancelled: Callable[[], None] | None = None
    ) -> None:
        """Call the action once every record below the offset is committed."""
        self.watermark.when_safe(offset, action, cancelled)

    def read(
        self,
        offset: int,
        limit_bytes: int,
        allowance: Allowance | None = None,
        *,
        committed_only: bool,
        at_least_one: bool,
    ) -> FileSlice | None:
        """Return the batches that a consumer may read from an offset on."""
        watermark = self.watermark
        if watermark.high <= offset <= self.log.end_offset:
            return None  # the consumer has caught up, or the records are not committed yet
        upper = watermark.last_stable if committed_only else watermark.high
        return reading.read(self, offset, limit_bytes, upper, allowance, at_least_one=at_least_one)

    def read_for_follower(
        self,
        offset: int,
        limit_bytes: int,
        allowance: Allowance | None = None,
        *,
        at_least_one: bool,
    ) -> FileSlice | None:
        """Return the batches that a follower may fetch from an offset on: all that there are."""
        upper = self.log.end_offset
        return reading.read(self, offset, limit_bytes, upper, allowance, at_least_one=at_least_one)

    def aborted(self, offset: int, piece: FileSlice | None) -> tuple[tuple[int, int], ...]:
        """Return producer and first offset of aborted transactions that overlap what was read."""
        return () if piece is None else reading.aborted(self, offset, piece)

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leader than this replica does."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def changes(self) -> LogChanges:
        """The changes to the log's files; created when first needed."""
        if self._changes is None:
            self._changes = LogChanges(self.log, self._outbox)
        return self._changes

    def delete_before(self, offset: int) -> Pending[None]:
        """Delete records below an offset; followers learn of it once that is durable."""
        return self.changes.delete_before(offset).map(lambda _: self.watermark.tell_followers())

    def retire(self) -> None:
        """Stop serving: the topic is deleted.

        Consumers read again and get an error; producers that wait get an error at their timeout.
        """
        self.retired = True
        self.flusher.stop()
        if self._changes is not None:
            self._changes.close()
        if self.health.listener is not None:
            self.health.listener.retired()
            self.health.listener = None  # a reference cycle would keep the log's files open
        self.watermark.close()


def log_settings(config: TopicConfig) -> LogSettings:
    """Return the part of a topic's configuration that shapes its logs."""
    return LogSettings(
        segment_bytes=config.segment_bytes,
        segment_ms=config.seal_after_ms,
        segment_jitter_ms=config.segment_jitter_ms,
        index_interval_bytes=config.index_interval_bytes,
        index_bytes=config.segment_index_bytes,
        compacts=config.compacts,
    )
