"""A follower's side of a partition: its log becomes what its leader's is, batch by batch.

Offsets, epochs and what is known of producers follow from the batches. Each is checked before it
is written: what is damaged on its way here is fetched again. Where stored records turn out to
be damaged, everything from there on is given up and fetched again, too: the leader notices by the
fetch that this copy is not what it was, and no longer counts it.
"""

from barnabas.effects import Effect, Notice, Remove
from barnabas.model.errors import CorruptBatchError
from barnabas.node.partition import Partition
from barnabas.protocol.fetch import Diverging
from barnabas.protocol.records import BatchHeader, batches, verify
from barnabas.protocol.replica_fetch import Copied
from barnabas.replication.divergence import common_end
from barnabas.replication.following import Fetcher, Key
from barnabas.storage.log import Log


class LocalCopy:
    """One copy during one leader epoch, between its partition and its fetcher."""

    __slots__ = (
        "_fetcher",
        "_is_held",
        "_me",
        "_moves_start",
        "_outbox",
        "_partition",
        "_told_high_watermark",
        "_told_start",
        "key",
        "leader_epoch",
    )

    def __init__(
        self, partition: Partition, fetcher: Fetcher, me: int, outbox: list[Effect]
    ) -> None:
        self._partition = partition
        self._fetcher = fetcher
        self._me = me
        self._is_held = False
        self._outbox = outbox
        self.key: Key = (partition.topic_id, partition.name.partition)
        self.leader_epoch = partition.leader_epoch
        self._moves_start = False
        self._told_high_watermark = self._told_start = 0

    def begin(self) -> None:
        """Fill the partition's log from here on, unless the disk refuses what is appended."""
        self._partition.keeper = self
        self._repair()
        self._is_held = self._partition.append_failures.are_refused
        if not self._is_held:
            self._follow()

    @property
    def is_held(self) -> bool:
        """Whether it still waits until the disk takes writes again."""
        return self._is_held and self._partition.keeper is self

    def go_on(self) -> None:
        """Follow, for the disk takes writes again."""
        self._is_held = False
        self._partition.append_failures.ended()
        self._follow()

    def _follow(self) -> None:
        self._fetcher.follow(self)
        self.placed()

    def placed(self) -> None:
        """Hear who is in sync now."""
        if not self.is_in_sync:
            self._fetcher.out_of_sync(self.key)

    def end(self) -> None:
        """Fill it no more."""
        self._partition.keeper = None
        self._fetcher.forget(self.key)

    def synced(self) -> None:
        """Let the leader know."""
        if not self._moves_start:
            self._fetcher.synced(self.key)

    def damaged(self) -> None:
        """Give up everything from the damage on, and have it fetched again."""
        self._repair()
        if not self._is_held:
            self._fetcher.follow(self)

    def append_refused(self) -> None:
        """Nothing is to be done: only a leader is told of this."""

    def append_taken(self) -> None:
        """Nothing is to be done: only a leader is told of this."""

    def retired(self) -> None:
        """Let go."""
        self.end()

    @property
    def is_in_sync(self) -> bool:
        """Whether the controller counts it among those in sync."""
        return self._me in self._partition.isr

    @property
    def is_synced(self) -> bool:
        """Whether everything in the log is as safe as the topic wants it, its start too."""
        return self._partition.is_synced and not self._moves_start

    @property
    def bounds(self) -> tuple[int, int]:
        """Where the log starts and ends."""
        log = self._partition.log
        return log.start_offset, log.end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, -1 where there is none."""
        return self._partition.log.epochs.last

    @property
    def high_watermark(self) -> int:
        """The last that was heard of the leader's."""
        return self._partition.leader_high_watermark

    def take(self, told: Copied) -> None:
        """Append what the leader sent, and hear how far it is."""
        headers: list[BatchHeader] = []
        try:
            for header, batch in batches(told.records):
                verify(batch, header)
                headers.append(header)
        finally:  # what comes before damage is good
            self._append(told.records, headers)
        if told.records and not headers:
            raise CorruptBatchError("an answer holds no whole batch")
        self._told_high_watermark = told.high_watermark
        self._told_start = told.log_start_offset
        self._follow_start()
        if not self._moves_start:
            self._partition.hear(told.high_watermark)

    def _append(self, records: memoryview, headers: list[BatchHeader]) -> None:
        if not headers:
            return
        log, first = self._partition.log, headers[0]
        if first.base_offset < log.end_offset:
            self._begin_within(first)
        end_offset = log.end_offset
        if first.base_offset < end_offset <= first.last_offset:
            # No batch ends there: the last one here lies about its offset.
            self._partition.found_damage(first.base_offset)
            raise CorruptBatchError(f"no batch of the leader's ends at {end_offset}")
        failures = self._partition.append_failures
        try:
            log.append_copied(records, headers)
        except OSError as error:
            failures.refused(error, None)
            raise
        else:
            if failures.are_refused:
                failures.ended()
        finally:
            if log.end_offset > end_offset:
                self._partition.has_copied(len(records))

    def cut(self, diverging: Diverging) -> None:
        """Give up what the leader does not have."""
        log = self._settled_log()
        end_offset = common_end(log.epochs, log.end_offset, diverging)
        facts = {"partition": str(self._partition.name), "from": log.end_offset, "to": end_offset}
        self._outbox.append(Notice("info", "cut a log to what its leader has", facts))
        self._cut(end_offset)

    def start_over(self, told: Copied) -> None:
        """Go on where the leader's log starts now, if this one ends before that or is empty."""
        log = self._settled_log()
        if log.start_offset < log.end_offset and log.end_offset >= told.log_start_offset:
            problem = f"the log ends at {log.end_offset}, the leader's begins before that"
            raise CorruptBatchError(problem)
        self._remove(log.restart_at(told.log_start_offset))
        self._begin_at(told.log_start_offset)

    def _repair(self) -> None:
        """Give up everything from damage on, to fetch it again."""
        offset = self._partition.damaged_at
        if offset is None:
            return
        log = self._settled_log()
        self._partition.damaged_at, self._partition.lost_records = None, True
        facts = {"partition": str(self._partition.name), "offset": offset}
        self._outbox.append(Notice("warning", "fetches damaged records again", facts))
        segment_start, end_offset = log.sound_before(offset)
        try:
            self._cut(end_offset)
        except CorruptBatchError:
            self._cut(segment_start)  # not even the batch before the damage can be found

    def _cut(self, end_offset: int) -> None:
        log = self._partition.log
        if end_offset <= log.start_offset:
            paths = log.restart_at(end_offset)
        else:
            paths = log.truncate(end_offset, min(self._partition.high_watermark, end_offset))
        self._remove(paths)
        self._partition.has_cut()
        if log.damaged_from is not None:
            self._partition.damaged_at, log.damaged_from = log.damaged_from, None
            self._repair()

    def _begin_within(self, header: BatchHeader) -> None:
        """Make room for a batch whose first records the leader has deleted, where it is the first.

        A log starts within a batch where records were deleted up to there.
        """
        log = self._settled_log()
        if log.start_offset == log.end_offset <= header.last_offset:
            self._remove(log.restart_at(header.base_offset))
            self._begin_at(header.base_offset)

    def _settled_log(self) -> Log:
        """Return the log with no change under way: it is about to be truncated."""
        log = self._partition.log
        log.finish_change()
        return log

    def _begin_at(self, offset: int) -> None:
        """Count from where the leader's log starts: it starts below its high watermark."""
        self._partition.high_watermark = self._partition.leader_high_watermark = offset

    def _follow_start(self) -> None:
        """Have the log start where the leader's does, as far as that is committed.

        The high watermark is heard once that is safe: a follower may hold records below the
        leader's start that the leader never had, and no consumer must see them.
        """
        log, start_offset = self._partition.log, self._told_start
        committed = min(self._told_high_watermark, log.end_offset)
        upper = max(self._partition.high_watermark, committed)
        if log.start_offset < start_offset <= upper and not self._moves_start:
            self._moves_start = True
            deleted = self._partition.delete_before(start_offset)
            deleted.when_done(lambda _: self._moved(), lambda _: self._start_moved())

    def _moved(self) -> None:
        """Go on, to where the leader's log starts by now."""
        self._moves_start = False
        if self._partition.keeper is self:
            self._follow_start()
        if not self._moves_start:
            self._start_moved()

    def _start_moved(self) -> None:
        """Hear what waited; where the disk refused, the next answer says it again."""
        self._moves_start = False
        if self._partition.keeper is self:
            self._partition.hear(self._told_high_watermark)
            if self.is_synced:
                self._fetcher.synced(self.key)

    def _remove(self, paths: list[str]) -> None:
        if paths:
            delay_ms = self._partition.config.file_delete_delay_ms
            self._outbox.append(Remove(tuple(paths), delay_ms))
