"""One partition as its leader sees it: what may be appended, and what may be read.

Records are appended to the log at once and can be read once they are below the high watermark.
Under `flush=ack` that follows the disk: a record that a power cut could take back is neither
acknowledged to acks=all nor shown to a consumer. Under `flush=interval` it follows the log's end.

Who reads committed records only reads up to the last stable offset, where the first transaction
begins of which it is not known, or not safe yet, how it ended.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.effects import Effect, Flush, Notice
from barnabas.metadata.image import INTERNAL_TOPICS
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.ports import FileSlice
from barnabas.node.group_commit import GroupCommit
from barnabas.node.validation import checked
from barnabas.protocol.markers import parse_marker
from barnabas.protocol.records import (
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
    stamp_append_time,
)
from barnabas.storage.flush import FlushTask
from barnabas.storage.log import Log, LogSettings


class Watcher(Protocol):
    """Whoever wants to know that there is more to read."""

    def on_progress(self) -> None:
        """Hear that the high watermark moved; the last stable offset may have, too."""


class Appended(NamedTuple):
    """Where a batch is, and the high watermark that makes it safe."""

    base_offset: int
    append_time_ms: int
    required_offset: int


class Waiting(NamedTuple):
    """Whoever waits for an offset to become safe."""

    offset: int
    action: Callable[[], None]
    gone: Callable[[], None] | None
    """Called instead where the partition goes away before."""


class Partition:
    """The leader's side of one partition."""

    __slots__ = (
        "_commits",
        "_complained_of",
        "_flushing",
        "_follows_disk",
        "_outbox",
        "_stamps",
        "_storage_failed",
        "_waiting",
        "config",
        "high_watermark",
        "internal",
        "leader_epoch",
        "log",
        "name",
        "retired",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        config: TopicConfig,
        leader_epoch: int,
        outbox: list[Effect],
        commits: GroupCommit,
    ) -> None:
        self.name = name
        self.internal = name.topic in INTERNAL_TOPICS
        """Whether only the broker writes here."""
        self.topic_id = topic_id
        self.log = log
        self._take_on(config)
        self.leader_epoch = leader_epoch
        self.high_watermark = log.end_offset
        log.epochs.assign(leader_epoch, log.end_offset)
        self.watchers: dict[Watcher, None] = {}
        self._waiting: deque[Waiting] = deque()
        self.retired = False
        self._flushing = False
        self._storage_failed = False
        self._complained_of: tuple[str, int] | None = None
        self._outbox = outbox
        self._commits = commits

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
        self._maybe_flush()
        self._advance()

    def _take_on(self, config: TopicConfig) -> None:
        """Keep a configuration, with what every append asks of it looked up once."""
        self.config = config
        self._stamps = config.stamps_on_append
        self._follows_disk = config.flush_on_ack

    def append(self, records: memoryview, now_ms: int) -> Appended:
        """Write a producer's batch; raise the `ApiError` with which it is refused."""
        header = parse_header_or_refuse(records)
        batch = checked(records, header, self.config, now_ms)
        if batch is not records:
            records, header = batch, parse_header(batch)
        if header.producer_id >= 0:
            sent = self.log.producers.check(header)
            if sent is not None:
                return Appended(sent.first_offset, -1, sent.last_offset + 1)
        append_time_ms = -1
        if self._stamps:
            stamp_append_time(records, now_ms)
            append_time_ms = now_ms
            header = header._replace(max_timestamp=now_ms)
        base_offset = self._write(records, header)
        if self._follows_disk:
            self._commits.appended(self, header.size)
        else:
            self._advance()
        return Appended(base_offset, append_time_ms, self.log.end_offset)

    def append_own(self, batch: bytearray) -> None:
        """Write a batch that this broker made.

        Raises `ApiError` where the disk refuses, or where it is part of a transaction of a
        producer whose epoch was raised since.
        """
        header = parse_header(batch)
        if header.attributes & TRANSACTIONAL:
            self.log.producers.check_epoch(header)
        self._write(memoryview(batch), header)
        if self._follows_disk:
            self._commits.appended(self, header.size)
        else:
            self._advance()

    def append_marker(self, batch: bytearray, transaction_version: int) -> int:
        """Write the end of a transaction; return the high watermark that makes it safe."""
        header = parse_header(batch)
        marker = parse_marker(batch, header)
        self.log.producers.check_marker(header, marker, transaction_version)
        self.append_own(batch)
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
        self, offset: int, limit_bytes: int, *, committed_only: bool, at_least_one: bool
    ) -> FileSlice | None:
        """Return what a consumer may see from an offset on."""
        if self.high_watermark <= offset <= self.log.end_offset:
            return None  # caught up; or appended, but not yet for anybody to see
        upper = self.last_stable_offset if committed_only else self.high_watermark
        try:
            return self.log.read(offset, limit_bytes, upper, at_least_one=at_least_one)
        except CorruptBatchError as error:
            self._complain("stored records are damaged", offset, error)
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        except OSError as error:
            self._complain("the disk refused a read", offset, error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def aborted(self, offset: int, piece: FileSlice | None) -> tuple[tuple[int, int], ...]:
        """Return producer and first offset of aborted transactions that overlap what was read."""
        if piece is None:
            return ()
        try:
            found = self.log.aborted_in(offset, piece)
        except OSError as error:
            self._complain("the disk refused a read", offset, error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return tuple((entry.producer_id, entry.first_offset) for entry in found)

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leader than this one."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def delete_before(self, offset: int) -> None:
        """Make records below an offset unreadable."""
        try:
            self.log.advance_start(offset)
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused: {error}") from error

    def retire(self) -> None:
        """Stop serving for good: the topic is deleted.

        Consumers look again and find it gone; producers that wait are told on timeout.
        """
        for watcher in list(self.watchers):
            watcher.on_progress()
        self.watchers.clear()
        waiting, self._waiting = self._waiting, deque()
        self.retired = True
        self._flushing = True  # no more syncs: the files are going away
        for each in waiting:
            if each.gone is not None:
                each.gone()

    def flush(self) -> None:
        """Sync what is not synced yet, whatever the policy."""
        if self._flushing:
            return
        task = self.log.begin_flush()
        if task is not None:
            self._flushing = True
            self._outbox.append(Flush(task, lambda: self._flushed(task)))

    def _maybe_flush(self) -> None:
        if self._follows_disk and self.log.flushed_offset < self.log.end_offset:
            self.flush()

    def _flushed(self, task: FlushTask) -> None:
        self._flushing = False
        self.log.finish_flush(task)
        self._maybe_flush()
        self._advance()

    def _write(self, records: memoryview, header: BatchHeader) -> int:
        try:
            base_offset = self.log.append(records, header, self.leader_epoch)
        except OSError as error:
            if not self._storage_failed:
                self._storage_failed = True
                facts = {"partition": str(self.name), "problem": str(error)}
                self._outbox.append(Notice("error", "the disk refused an append", facts))
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused: {error}") from error
        if self._storage_failed:
            self._storage_failed = False
            facts = {"partition": str(self.name)}
            self._outbox.append(Notice("info", "the disk takes appends again", facts))
        return base_offset

    def _complain(self, event: str, offset: int, error: Exception) -> None:
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
        if safe <= self.high_watermark:
            return
        self.high_watermark = safe
        if log.producers.ended:
            log.producers.settle(safe)
        waiting = self._waiting
        while waiting and waiting[0].offset <= safe:
            waiting.popleft().action()
        for watcher in list(self.watchers):
            watcher.on_progress()


def parse_header_or_refuse(records: memoryview) -> BatchHeader:
    """Read the header of what a producer sent, if it can have one."""
    if len(records) < 61:
        raise ApiError(ErrorCode.INVALID_RECORD, "the records are shorter than a batch header")
    return parse_header(records)


def log_settings(config: TopicConfig) -> LogSettings:
    """Return the part of a topic's configuration that shapes its logs."""
    return LogSettings(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        index_interval_bytes=config.index_interval_bytes,
    )
