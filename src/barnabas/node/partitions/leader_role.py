"""What a replica does as the leader: append batches, and keep count of the in-sync replicas.

A leader appends what producers send to its log at once. The records are committed once every
in-sync replica has them (`replication/in_sync.py`), this one included: under `flush=ack` a replica
has what it has synced, under `flush=interval` what it has appended.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.metadata.image import PartitionImage
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.timers import Timers
from barnabas.node.coordination.verifications import Verifications
from barnabas.node.partitions.batch_checking import Checks
from barnabas.node.partitions.batch_validation import checked, parse_header_or_refuse
from barnabas.node.partitions.flusher import Flusher
from barnabas.node.partitions.rejected_batches import Refusals
from barnabas.node.partitions.replica_health import ReplicaHealth
from barnabas.node.partitions.watermark import Watermark
from barnabas.node.topic_traffic import TopicTraffic
from barnabas.protocol.markers import parse_marker
from barnabas.protocol.records import (
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
    stamp_append_time,
)
from barnabas.replication.in_sync import InSync
from barnabas.storage.log import Log
from barnabas.storage.producers import SentBatch


class Appended(NamedTuple):
    """Where a batch is in the log, and the high watermark at which it is committed."""

    base_offset: int
    append_time_ms: int
    required_offset: int


# Does the same as `Appended._make` without an attribute lookup: this runs once for each batch.
_new_appended = tuple.__new__


class LeaderRole:
    """One replica as the leader; it refuses appends while another broker leads."""

    __slots__ = (
        "_checks",
        "_config",
        "_epoch",
        "_flusher",
        "_health",
        "_log",
        "_refusals",
        "_stamps",
        "_timers",
        "_watermark",
        "in_sync",
        "is_under_min_isr",
        "traffic",
        "verifications",
    )

    def __init__(
        self,
        log: Log,
        config: TopicConfig,
        watermark: Watermark,
        flusher: Flusher,
        health: ReplicaHealth,
        checks: Checks,
        timers: Timers,
    ) -> None:
        self._log = log
        self._watermark = watermark
        self._flusher = flusher
        self._health = health
        self._checks = checks
        self._timers = timers
        self._epoch: int | None = None
        """The leader epoch; None while another broker leads."""
        self.in_sync: InSync | None = None
        """The followers; None if there are none, and while another broker leads."""
        self.is_under_min_isr = False
        """Whether fewer replicas are in sync than acks=all needs."""
        self._refusals = Refusals()
        self.verifications = Verifications()
        """Producers that wait for the coordinator to add this partition to their transaction."""
        self.traffic: TopicTraffic | None = None
        """The numbers of the topic; None where nothing is counted."""
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Apply another topic configuration, from the next append on."""
        self._config = config
        self._stamps = config.stamps_on_append
        self._check_min_isr()

    def lead(self, placed: PartitionImage, me: int, now_ms: int) -> None:
        """Become the leader in an epoch, or apply the replicas and the ISR of the same epoch."""
        end_offset = self._log.end_offset
        if placed.leader_epoch != self._epoch:
            self._log.epochs.assign(placed.leader_epoch, end_offset)
            self._epoch, self.in_sync = placed.leader_epoch, None
        if len(placed.replicas) == 1:
            self.in_sync, self.is_under_min_isr = None, False
            return
        if self.in_sync is None:
            self.in_sync = InSync(me, end_offset)
        self.set_isr(placed.replicas, placed.isr, placed.partition_epoch, now_ms)

    def set_isr(
        self, replicas: Sequence[int], isr: Sequence[int], partition_epoch: int, now_ms: int
    ) -> None:
        """Apply the replicas and the ISR that the controller decided on."""
        assert self.in_sync is not None
        self.in_sync.place(replicas, isr, partition_epoch, now_ms)
        self._check_min_isr()

    def _check_min_isr(self) -> None:
        if self.in_sync is not None:
            self.in_sync.min_isr = self._config.min_insync_replicas
            self.is_under_min_isr = self.in_sync.is_under_min_isr

    def resign(self) -> None:
        """Stop leading."""
        if self._epoch is not None:
            self.verifications = Verifications()
        self._epoch, self.in_sync, self.is_under_min_isr = None, None, False

    def fetched(self, replica: int, broker_epoch: int, offset: int, now_ms: int) -> None:
        """Record the offset that a follower fetches from, where the log has it."""
        log = self._log
        if self.in_sync is None or not log.start_offset <= offset <= log.end_offset:
            return
        if self.in_sync.fetched(replica, broker_epoch, offset, log.end_offset, now_ms):
            self.advance()

    def advance(self) -> None:
        """Raise the high watermark to the offset up to which every in-sync replica has the log."""
        log = self._log
        safe = log.flushed_offset if self._flusher.on_ack else log.end_offset
        self._watermark.advance(safe if self.in_sync is None else self.in_sync.high_watermark(safe))

    def append(
        self, records: memoryview, now_ms: int, already_checked: memoryview | None = None
    ) -> Appended:
        """Append a producer's batch; raise the `ApiError` with which it is refused.

        Raises `MustWaitError` if the batch must first be checked in its partition's queue
        (`node/partitions/batch_checking.py`).
        """
        if self._epoch is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        header = parse_header_or_refuse(records)
        batch = already_checked or checked(
            records, header, self._config, now_ms, self._checks.queue
        )
        if batch is not records:
            records, header = batch, parse_header(batch)
        if header.producer_id >= 0:
            sent = self._sent_before(header)
            if sent is not None:
                if self.traffic is not None:
                    self.traffic.produces += 1
                return Appended(sent.first_offset, -1, sent.last_offset + 1)
        append_time_ms = -1
        if self._stamps:
            stamp_append_time(records, now_ms)
            append_time_ms = now_ms
            header = header._replace(max_timestamp=now_ms)
        try:
            base_offset = self._log.append(records, header, self._epoch)
        except OSError as error:
            failure = self._refused_by_disk(error)
            self.note_refusal(header, failure.code)
            raise failure from error
        if self._refusals.by_id or self.verifications.by_id:
            self._refusals.written(header)
            self.verifications.forget(header.producer_id)
        size, traffic = len(records), self.traffic
        if traffic is not None:
            traffic.produces += 1
            traffic.messages_in += header.last_offset_delta + 1
            traffic.bytes_in += size
        self._appended(size)
        return _new_appended(Appended, (base_offset, append_time_ms, self._log.end_offset))

    def append_own(self, batch: bytearray) -> None:
        """Append a batch that this broker made, always with the guarantees of acks=all.

        Raises `ApiError` if the disk refuses, if another broker leads, if too few replicas are in
        sync, or if the batch belongs to a transaction of a producer whose epoch was
        raised since.
        """
        if self._epoch is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.check_min_isr()
        header = parse_header(batch)
        if header.attributes & TRANSACTIONAL:
            self._log.producers.check_epoch(header)
        try:
            self._log.append(memoryview(batch), header, self._epoch)
        except OSError as error:
            raise self._refused_by_disk(error) from error
        if self.traffic is not None:
            self.traffic.messages_in += header.last_offset_delta + 1
            self.traffic.bytes_in += len(batch)
        self._appended(len(batch))

    def _refused_by_disk(self, error: OSError) -> ApiError:
        """Record that the disk refused an append; return the error for the client."""
        if self.traffic is not None:
            self.traffic.storage_errors += 1
        return self._health.append_refused(error)

    def append_marker(self, batch: bytearray, transaction_version: int) -> int:
        """Append a transaction marker; return the high watermark at which it is committed."""
        header = parse_header(batch)
        marker = parse_marker(batch, header)
        self._log.producers.check_marker(header, marker, transaction_version)
        self.append_own(batch)
        self.verifications.forget(header.producer_id)
        self._checks.transaction_ended(header.producer_id)
        return self._log.end_offset

    def _appended(self, size: int) -> None:
        """Have appended bytes synced, replicated and committed."""
        if self._health.append_failures.are_refused:
            self._health.append_accepted()
        self._flusher.appended(size)
        if not self._flusher.on_ack:
            self.advance()
        if self._watermark.followers:
            self._watermark.wake_followers()

    def _sent_before(self, header: BatchHeader) -> SentBatch | None:
        """Return the batch that this one repeats; raise if its sequence does not follow."""
        producers = self._log.producers
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
                code = self._refusals.reason(header, self._timers.now_ms)
            if code is None:
                raise
            raise ApiError(code, "a batch before this one was refused") from error

    def excuse_missing_batches(self) -> None:
        """Assume for a while that the previous leader refused batches that are missing here."""
        self._refusals.took_lead(self._timers.now_ms)

    def note_refusal(self, header: BatchHeader, code: ErrorCode) -> None:
        """Remember a batch that is refused for now: batches that follow it get the same error."""
        self._refusals.note(header, code, self._timers.now_ms)

    def check_min_isr(self) -> None:
        """Raise `ApiError` if fewer replicas are in sync than acks=all needs."""
        if self.is_under_min_isr:
            assert self.in_sync is not None
            needed, count = self.in_sync.effective_min_isr, len(self.in_sync.isr)
            message = f"{count} replicas are in sync, and min.insync.replicas needs {needed}"
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, message)

    def refuse_under_min_isr(self, records: memoryview) -> None:
        """Refuse a producer's acks=all batch where too few replicas are in sync."""
        try:
            self.check_min_isr()
        except ApiError as error:
            self.note_refusal(parse_header_or_refuse(records), error.code)
            raise
