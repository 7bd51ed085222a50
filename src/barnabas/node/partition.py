"""One broker's copy of a partition: what may be appended, and what may be read.

The controller says who leads. A leader appends what producers send to the log at once; it can be
read once it is below the high watermark. Under `flush=ack` that follows the disk: a record that a
power cut could take back is neither acknowledged to acks=all nor shown to a consumer. Under
`flush=interval` it follows the log's end. Where there are other copies it follows those that are
in sync, too (`replication/in_sync.py`).

A follower's log is what its leader's is (`node/copying.py`), and its high watermark what it heard
of the leader's. Consumers may read from either.

Who reads committed records only reads up to the last stable offset, where the first transaction
begins of which it is not known, or not safe yet, how it ended.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.effects import Effect, Flush, MakeDurable, Notice
from barnabas.metadata.image import INTERNAL_TOPICS, PartitionImage
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import FileSlice
from barnabas.node import reading
from barnabas.node.append_failures import AppendFailures
from barnabas.node.checking import Checks
from barnabas.node.group_commit import GroupCommit
from barnabas.node.interests import Copier, Keeper, Waiting, Watcher
from barnabas.node.log_changes import LogChanges
from barnabas.node.refusals import Refusals
from barnabas.node.validation import checked, parse_header_or_refuse
from barnabas.node.verifications import Verifications
from barnabas.protocol.fetch import Diverging
from barnabas.protocol.markers import parse_marker
from barnabas.protocol.records import (
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
    stamp_append_time,
)
from barnabas.replication.divergence import divergence
from barnabas.replication.in_sync import InSync
from barnabas.storage.changes import Sync
from barnabas.storage.flush import FlushTask
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.producers import SentBatch
from barnabas.storage.trust import Allowance


class Appended(NamedTuple):
    """Where a batch is, and the high watermark that makes it safe."""

    base_offset: int
    append_time_ms: int
    required_offset: int


# As for headers: once a batch.
_new_appended = tuple.__new__

NOBODY = -1


class Partition:
    """One copy, which leads or follows."""

    __slots__ = (
        "__weakref__",
        "_alone",
        "_changes",
        "_commits",
        "_complained_of",
        "_flushing",
        "_follows_disk",
        "_outbox",
        "_refusals",
        "_stamps",
        "_waiting",
        "append_failures",
        "checks",
        "config",
        "copiers",
        "damaged_at",
        "high_watermark",
        "in_sync",
        "internal",
        "is_short",
        "keeper",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "leads",
        "log",
        "lost_records",
        "name",
        "placed",
        "retired",
        "topic_id",
        "verifications",
        "watchers",
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
        self.internal = name.topic in INTERNAL_TOPICS
        """Whether only the broker writes here."""
        self.topic_id = topic_id
        self.log = log
        self.placed = PartitionImage([], NOBODY)
        """Who holds and who leads it, as far as this copy was told."""
        self.leads = False
        self.leader_id, self.leader_epoch = NOBODY, -1
        self.in_sync: InSync | None = None
        """The other copies, where this one leads and there are any."""
        self.is_short = False
        """Whether it leads, and too few are in sync for acks=all."""
        self._alone = False
        self.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        """Below it, everything is committed."""
        self.leader_high_watermark = self.high_watermark
        """The last that a follower heard of."""
        self.watchers: dict[Watcher, None] = {}
        """Those who read what is committed."""
        self.copiers: dict[Copier, None] = {}
        """Followers, who read everything."""
        self.keeper: Keeper | None = None
        """Fills the log from a leader's, or has another replica lead where this one cannot."""
        self.lost_records = False
        """Whether the disk lost what this copy had acknowledged: it must not lead unless it is the
        last, until it has everything again."""
        self.damaged_at: int | None = None
        """The first offset from which stored records turned out to be damaged."""
        self.append_failures = AppendFailures(name, outbox)
        """Whether the disk refuses what is written here."""
        self._waiting: deque[Waiting] = deque()
        self.retired = self._flushing = False
        self._complained_of: tuple[str, int] | None = None
        self._outbox, self._commits = outbox, commits
        self._changes: LogChanges | None = None
        self._refusals = Refusals()
        self.checks = Checks(outbox)
        self.verifications = Verifications()
        """Producers whose transactional batches asked to be let in."""
        self._take_on(config)

    @property
    def replicas(self) -> Sequence[int]:
        """Who holds a copy."""
        return self.placed.replicas

    @property
    def isr(self) -> Sequence[int]:
        """Who is in sync, as the controller decided."""
        return self.placed.isr

    @property
    def is_unfit(self) -> bool:
        """Whether it should not begin to lead while others can: it lacks records, or room."""
        cannot_begin = self.damaged_at is not None or self.append_failures.are_refused
        return self.lost_records or (cannot_begin and not self.leads)

    def lead(self, placed: PartitionImage, me: int, now_ms: int) -> None:
        """Take the lead, or hear who else is in sync."""
        epochs = placed.leader_epoch, placed.partition_epoch
        if self.leads and epochs < (self.leader_epoch, self.placed.partition_epoch):
            return  # the controller's answer was faster than the image, and says more
        if not self.leads or placed.leader_epoch != self.leader_epoch:
            self.log.epochs.assign(placed.leader_epoch, self.log.end_offset)
            self.in_sync = None
        self.placed, self.leads = placed, True
        self.leader_id, self.leader_epoch = me, placed.leader_epoch
        self._alone = len(placed.replicas) == 1
        if self._alone:
            self.in_sync, self.is_short = None, False
        else:
            if self.in_sync is None:
                self.in_sync = InSync(me, self.log.end_offset)
            self.in_sync.place(placed.replicas, placed.isr, placed.partition_epoch, now_ms)
            self._count()
        self._maybe_flush()
        self._advance()

    def follow(self, placed: PartitionImage) -> None:
        """Give up the lead, or hear who else has it; whoever waits for an offset is told."""
        led = self.leads
        if placed.leader_epoch != self.leader_epoch:
            # An unclean election may have taken back what the last leader said.
            self.leader_high_watermark = self.high_watermark
        self.placed, self.leads, self._alone = placed, False, False
        self.leader_id, self.leader_epoch = placed.leader, placed.leader_epoch
        self.in_sync, self.is_short = None, False
        # An epoch in which this copy led and wrote nothing is no part of the log's history.
        self.log.epochs.truncate_end(self.log.end_offset)
        if led:
            self.verifications = Verifications()
            self._let_go()

    def agree(self, isr: Sequence[int], partition_epoch: int, now_ms: int) -> None:
        """Take on what the controller answered, which the image will say, too."""
        if self.in_sync is None or partition_epoch <= self.placed.partition_epoch:
            return
        self.placed = replace(self.placed, isr=list(isr), partition_epoch=partition_epoch)
        self.in_sync.place(self.placed.replicas, isr, partition_epoch, now_ms)
        self._count()
        self._advance()

    def fetched(self, replica: int, broker_epoch: int, offset: int, now_ms: int) -> None:
        """Take note of how far a follower is, if it is one and its log agrees."""
        if self.in_sync is None or not self.log.start_offset <= offset <= self.log.end_offset:
            return
        if self.in_sync.fetched(replica, broker_epoch, offset, self.log.end_offset, now_ms):
            self._advance()

    def diverges(self, last_epoch: int, offset: int) -> Diverging | None:
        """Return where the log leaves that of someone who has it up to an offset, if it does."""
        return divergence(self.log.epochs, self.log.end_offset, last_epoch, offset)

    def hear(self, high_watermark: int) -> None:
        """Take note of the leader's high watermark, as a follower."""
        self.leader_high_watermark = high_watermark
        if self.lost_records and high_watermark <= self.log.end_offset:
            self.lost_records = False
        self._advance()

    def has_copied(self, size: int) -> None:
        """Have what a follower appended made as safe as the topic wants it."""
        if self._follows_disk:
            self._commits.appended(self, size)
        else:
            self._commits.left_unsynced(self)

    def has_cut(self) -> None:
        """Go along with a follower's log that was cut."""
        end_offset = self.log.end_offset
        if end_offset < self.high_watermark:
            facts = {"partition": str(self.name), "from": end_offset, "to": self.high_watermark}
            self._outbox.append(Notice("error", "gave up records that had been committed", facts))
            self.high_watermark = end_offset
        self.leader_high_watermark = self.high_watermark

    @property
    def is_synced(self) -> bool:
        """Whether everything in the log is as safe as the topic wants it."""
        return not self._follows_disk or self.log.flushed_offset >= self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed may read: before it, every transaction has ended."""
        first_unstable = self.log.producers.first_unstable
        if first_unstable >= self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log.start_offset)

    def open_transaction(self, producer_id: int) -> int | None:
        """Return where the open transaction of a producer begins, if it has one here."""
        producer = self.log.producers.by_id.get(producer_id)
        if producer is None or producer.transaction_start < 0:
            return None
        return producer.transaction_start

    def producer_epoch(self, producer_id: int) -> int | None:
        """Return the last epoch of a producer that was seen here, if any is remembered."""
        producer = self.log.producers.by_id.get(producer_id)
        return None if producer is None else producer.epoch

    def configure(self, config: TopicConfig) -> None:
        """Take on another configuration from the next append on."""
        self._take_on(config)
        self.log.settings = log_settings(config)
        self._count()
        self._commits.left_unsynced(self)  # what waits for a sync may wait for the clock now
        self._maybe_flush()
        self._advance()

    def _take_on(self, config: TopicConfig) -> None:
        """Keep a configuration, with what every append asks of it looked up once."""
        self.config = config
        self._stamps = config.stamps_on_append
        self._follows_disk = config.flush_on_ack

    def _count(self) -> None:
        """Find out whether enough are in sync."""
        if self.in_sync is not None:
            self.in_sync.min_isr = self.config.min_insync_replicas
            self.is_short = self.in_sync.is_short

    def check_replicas(self) -> None:
        """Refuse what must reach more copies than are in sync."""
        if self.is_short:
            assert self.in_sync is not None
            needed = self.in_sync.effective_min_isr
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"{len(self.isr)} are in sync and {needed} must be"
            )

    def append(
        self, records: memoryview, now_ms: int, already_checked: memoryview | None = None
    ) -> Appended:
        """Write a producer's batch; raise the `ApiError` with which it is refused.

        Raises `MustWaitError` where it must be checked in line first (`node/checking.py`).
        """
        if not self.leads:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        header = parse_header_or_refuse(records)
        batch = already_checked or checked(records, header, self.config, now_ms, self.checks.line)
        if batch is not records:
            records, header = batch, parse_header(batch)
        if header.producer_id >= 0:
            sent = self._sent_before(header)
            if sent is not None:
                return Appended(sent.first_offset, -1, sent.last_offset + 1)
        append_time_ms = -1
        if self._stamps:
            stamp_append_time(records, now_ms)
            append_time_ms = now_ms
            header = header._replace(max_timestamp=now_ms)
        try:
            base_offset = self._write(records, header)
        except ApiError as error:
            self._refusals.note(header, error.code, self._commits.now_ms)
            raise
        if self._refusals.by_id or self.verifications.by_id:
            self._refusals.written(header)
            self.verifications.forget(header.producer_id)
        if self._follows_disk:
            self._commits.appended(self, header.size)
        else:
            self._commits.left_unsynced(self)
            self._advance()
        if self.copiers:
            self._wake_copiers()
        return _new_appended(Appended, (base_offset, append_time_ms, self.log.end_offset))

    def _sent_before(self, header: BatchHeader) -> SentBatch | None:
        """Return the batch that this one repeats; raise where it does not follow, and why."""
        producers = self.log.producers
        overtakes = False
        try:
            sent = producers.check(header)
            if sent is None and self.verifications.by_id:
                overtakes = True
                self.verifications.check(header, producers)
            return sent  # noqa: TRY300
        except ApiError as error:
            code = None
            if overtakes or producers.is_early(header):
                code = self._refusals.reason(header, self._commits.now_ms)
            if code is None:
                raise
            raise ApiError(code, "a batch before this one was refused") from error

    def excuse(self) -> None:
        """Take it that whoever led before refused what is missing here."""
        self._refusals.took_lead(self._commits.now_ms)

    def note_refusal(self, header: BatchHeader, code: ErrorCode) -> None:
        """Remember a batch that is refused for now: those behind it are refused alike."""
        self._refusals.note(header, code, self._commits.now_ms)

    def refuse_while_short(self, records: memoryview) -> None:
        """Refuse a producer's batch that must reach more copies than are in sync."""
        try:
            self.check_replicas()
        except ApiError as error:
            header = parse_header_or_refuse(records)
            self._refusals.note(header, error.code, self._commits.now_ms)
            raise

    def append_own(self, batch: bytearray) -> None:
        """Write a batch that this broker made, which always is for all in-sync copies.

        Raises `ApiError` where the disk refuses, where somebody else leads, where too few copies
        are in sync, or where it is part of a transaction of a producer whose epoch was raised
        since.
        """
        if not self.leads:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.check_replicas()
        header = parse_header(batch)
        if header.attributes & TRANSACTIONAL:
            self.log.producers.check_epoch(header)
        self._write(memoryview(batch), header)
        if self._follows_disk:
            self._commits.appended(self, header.size)
        else:
            self._commits.left_unsynced(self)
            self._advance()
        if self.copiers:
            self._wake_copiers()

    def append_marker(self, batch: bytearray, transaction_version: int) -> int:
        """Write the end of a transaction; return the high watermark that makes it safe."""
        header = parse_header(batch)
        marker = parse_marker(batch, header)
        self.log.producers.check_marker(header, marker, transaction_version)
        self.append_own(batch)
        self.verifications.forget(header.producer_id)
        self.checks.transaction_ended(header.producer_id)
        return self.log.end_offset

    def when_safe(
        self, offset: int, action: Callable[[], None], gone: Callable[[], None] | None = None
    ) -> None:
        """Call the action once everything below the offset may be acknowledged."""
        if self.high_watermark >= offset:
            action()
        else:
            self._waiting.append(Waiting(offset, action, gone))

    def read(
        self,
        offset: int,
        limit_bytes: int,
        allowance: Allowance | None = None,
        *,
        committed_only: bool,
        at_least_one: bool,
    ) -> FileSlice | None:
        """Return what a consumer may see from an offset on."""
        if self.high_watermark <= offset <= self.log.end_offset:
            return None  # caught up; or appended, but not yet for anybody to see
        upper = self.last_stable_offset if committed_only else self.high_watermark
        return reading.read(self, offset, limit_bytes, upper, allowance, at_least_one=at_least_one)

    def read_to_copy(
        self,
        offset: int,
        limit_bytes: int,
        allowance: Allowance | None = None,
        *,
        at_least_one: bool,
    ) -> FileSlice | None:
        """Return what a follower may copy from an offset on: everything there is."""
        upper = self.log.end_offset
        return reading.read(self, offset, limit_bytes, upper, allowance, at_least_one=at_least_one)

    def found_damage(self, offset: int) -> None:
        """Take note that stored records from an offset on are damaged, and have that seen to."""
        if self.damaged_at is None or offset < self.damaged_at:
            self.damaged_at = offset
        if self.keeper is not None:
            self.keeper.damaged()

    def aborted(self, offset: int, piece: FileSlice | None) -> tuple[tuple[int, int], ...]:
        """Return producer and first offset of aborted transactions that overlap what was read."""
        return () if piece is None else reading.aborted(self, offset, piece)

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leader than this one."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def changes(self) -> LogChanges:
        """What is done to the log's files; made when it is first needed."""
        if self._changes is None:
            self._changes = LogChanges(self.log, self._outbox)
        return self._changes

    def delete_before(self, offset: int) -> Pending[None]:
        """Make records below an offset unreadable; followers hear of it once that is safe."""
        return self.changes.delete_before(offset).map(self._tell_copiers)

    def _tell_copiers(self, _: None) -> None:
        for copier in self.copiers:
            copier.on_committed()

    def retire(self) -> None:
        """Stop serving for good: the topic is deleted.

        Consumers look again and find it gone; producers that wait are told on timeout.
        """
        self.retired = True
        self._flushing = True  # no more syncs: the files are going away
        if self._changes is not None:
            self._changes.close()
        if self.keeper is not None:
            self.keeper.retired()
            self.keeper = None  # they hold each other, and with them open files
        self._let_go()

    def _let_go(self) -> None:
        """Have everybody look again who reads, and tell those who wait for what was written."""
        reading: list[Watcher] = [*self.watchers, *self.copiers]
        waiting, self._waiting = self._waiting, deque()
        for watcher in reading:
            if self.retired:
                watcher.on_retired()
            else:
                watcher.on_progress()
        if self.retired:
            self.watchers.clear()
            self.copiers.clear()
        for each in waiting:
            if each.gone is not None:
                each.gone()

    def flush(self, *, urgent: bool = True) -> None:
        """Sync what is not synced yet, whatever the policy; not urgent where no client waits."""
        task = None if self._flushing else self.log.begin_flush()
        if task is None:
            return
        self._flushing = True
        if urgent:
            self._outbox.append(Flush(task, lambda: self._flushed(task)))
        else:
            safe = Sync(task.files, task.folders)
            self._outbox.append(MakeDurable(safe, lambda: self._flushed(task)))

    def _maybe_flush(self) -> None:
        if self._follows_disk and self.log.flushed_offset < self.log.end_offset:
            self.flush()

    def _flushed(self, task: FlushTask) -> None:
        if self.retired:
            return
        self._flushing = False
        self.log.finish_flush(task)
        self._maybe_flush()
        self._advance()
        if self.keeper is not None and self.is_synced:
            self.keeper.synced()

    def _write(self, records: memoryview, header: BatchHeader) -> int:
        try:
            base_offset = self.log.append(records, header, self.leader_epoch)
        except OSError as error:
            raise self.append_failures.refused(error, self.keeper) from error
        if self.append_failures.are_refused:
            self.append_failures.ended(self.keeper)
        return base_offset

    def complain(self, event: str, offset: int, error: Exception) -> None:
        """Tell the operator of a bad place once, not for each consumer that tries it again."""
        if (event, offset) == self._complained_of:
            return
        self._complained_of = (event, offset)
        facts = {"partition": str(self.name), "offset": offset, "problem": str(error)}
        self._outbox.append(Notice("error", event, facts))

    def _advance(self) -> None:
        """Move the high watermark, answer producers, wake consumers."""
        log = self.log
        safe = log.flushed_offset if self._follows_disk else log.end_offset
        if not self._alone:
            safe = self._agreed(safe)
        if safe <= self.high_watermark:
            return
        self.high_watermark = safe
        if log.producers.ended:
            log.producers.settle(safe)
        waiting = self._waiting
        while waiting and waiting[0].offset <= safe:
            waiting.popleft().action()
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.on_progress()
        if self.copiers:
            for copier in self.copiers:
                copier.on_committed()

    def _agreed(self, safe: int) -> int:
        """Return up to where not this copy alone, but all that count have the log."""
        if self.in_sync is not None:
            return self.in_sync.high_watermark(safe)
        return min(self.leader_high_watermark, self.log.end_offset)

    def _wake_copiers(self) -> None:
        for copier in list(self.copiers):
            copier.on_progress()


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
