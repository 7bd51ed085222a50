"""Makes a follower's log equal to its leader's: appends, truncates, and repairs it.

Each batch is checked before it is written. Where stored records turn out to be damaged, the log is
truncated before them and they are fetched again. The leader learns from the fetch offset that this
replica lost records, and no longer counts it as in sync.
"""

from barnabas.effects import Effect, Notice, Remove
from barnabas.model.errors import CorruptBatchError
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.fetch import Diverging
from barnabas.protocol.records import BatchHeader, batches, verify
from barnabas.replication.divergence import common_end
from barnabas.storage.log import Log


class FollowerLog:
    """The log of one replica while it follows."""

    __slots__ = ("_outbox", "_partition")

    def __init__(self, partition: Partition, outbox: list[Effect]) -> None:
        self._partition = partition
        self._outbox = outbox

    def append(self, records: memoryview) -> None:
        """Append the batches that the leader sent, up to the first that is damaged.

        Raises `CorruptBatchError` if one is damaged, `OSError` if the disk refuses.
        """
        headers: list[BatchHeader] = []
        try:
            for header, batch in batches(records):
                verify(batch, header)
                headers.append(header)
        finally:
            if headers:
                self._append(records, headers)
        if records and not headers:
            raise CorruptBatchError("the leader's response holds no whole batch")

    def _append(self, records: memoryview, headers: list[BatchHeader]) -> None:
        partition, first = self._partition, headers[0]
        log, health = partition.log, partition.health
        if first.base_offset < log.end_offset:
            self._restart_within(first)
        end_offset = log.end_offset
        if first.base_offset < end_offset <= first.last_offset:
            # The last batch here has a wrong offset: no batch of the leader ends there.
            health.found_damage(first.base_offset)
            raise CorruptBatchError(f"no batch of the leader ends at {end_offset}")
        failures, traffic = health.append_failures, partition.traffic
        if traffic is not None:
            traffic.replication_bytes_in += len(records)
        try:
            log.append_replicated(records, headers)
        except OSError as error:
            failures.refused(error)
            if traffic is not None:
                traffic.storage_errors += 1
            raise
        else:
            if failures.are_refused:
                failures.ended()
        finally:
            if log.end_offset > end_offset:
                partition.flusher.appended(len(records))

    def truncate(self, diverging: Diverging) -> None:
        """Truncate the log to the point where its leader epochs diverge from the leader's."""
        log = self._settled_log()
        end_offset = common_end(log.epochs, log.end_offset, diverging)
        facts = {"partition": str(self._partition.name), "from": log.end_offset, "to": end_offset}
        self._outbox.append(Notice("info", "truncated a log that diverged from its leader", facts))
        self.truncate_to(end_offset)

    def restart_at(self, start_offset: int) -> None:
        """Continue at the start of the leader's log, which begins above the end of this one."""
        log = self._settled_log()
        if log.start_offset < log.end_offset and log.end_offset >= start_offset:
            problem = f"the log ends at {log.end_offset}, above the start of the leader's"
            raise CorruptBatchError(problem)
        self._restart_at(log, start_offset)

    def repair(self) -> None:
        """Truncate the log before damaged records, if there are any, to fetch them again."""
        health = self._partition.health
        if health.damaged_at is None:
            return
        log, offset = self._settled_log(), health.damaged_at
        health.damaged_at, health.lost_records = None, True
        facts = {"partition": str(self._partition.name), "offset": offset}
        self._outbox.append(Notice("warning", "fetching damaged records again", facts))
        segment_start, end_offset = log.sound_before(offset)
        try:
            self.truncate_to(end_offset)
        except CorruptBatchError:
            self.truncate_to(segment_start)  # the batch before the damage cannot be found either

    def truncate_to(self, end_offset: int) -> None:
        """Remove all records from an offset on, and repair what else turns out to be damaged."""
        partition = self._partition
        log = partition.log
        if end_offset <= log.start_offset:
            paths = log.restart_at(end_offset)
        else:
            paths = log.truncate(end_offset, min(partition.high_watermark, end_offset))
        self._remove(paths)
        partition.follower.truncated()
        if log.damaged_from is not None:
            partition.health.damaged_at, log.damaged_from = log.damaged_from, None
            self.repair()

    def _restart_within(self, header: BatchHeader) -> None:
        """Restart an empty log at the first batch, of which the leader deleted some records.

        A log starts within a batch where records were deleted up to there.
        """
        log = self._settled_log()
        if log.start_offset == log.end_offset <= header.last_offset:
            self._restart_at(log, header.base_offset)

    def _restart_at(self, log: Log, offset: int) -> None:
        self._remove(log.restart_at(offset))
        self._partition.follower.restarted_at(offset)

    def _settled_log(self) -> Log:
        """Return the log with no change to its files in progress: it is about to be truncated."""
        log = self._partition.log
        log.finish_change()
        return log

    def _remove(self, paths: list[str]) -> None:
        if paths:
            delay_ms = self._partition.config.file_delete_delay_ms
            self._outbox.append(Remove(tuple(paths), delay_ms))
