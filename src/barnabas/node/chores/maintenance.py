"""Periodic work of a broker: syncs, retention, compaction, expiry of producers.

Each chore looks at every partition, decides in memory, and leaves the slow part to the edge as an
effect. A chore schedules its own next turn.
"""

from collections.abc import Callable
from itertools import islice

from barnabas.effects import Clean, Notice, Remove
from barnabas.node.chores.cleaning_order import CleaningOrder
from barnabas.node.chores.scrubbing import Scrubbing
from barnabas.node.node import Node
from barnabas.node.partitions.flusher import Flusher
from barnabas.node.partitions.partition import Partition
from barnabas.storage import retention
from barnabas.storage.compacting import compaction
from barnabas.storage.sweeping import CLEANING_FOLDER
from barnabas.storage.trimming import drop_segments

FLUSH_TICK_MS = 100
UNSYNCED_SEGMENTS_MAX = 32
"""Sealed segments stay open until they are synced, and the open files of a process are limited."""
CLEAN_AGAIN_AFTER_MS = 10 * 60_000
"""How long a log that could not be compacted is skipped."""
FLUSHED_AN_EVENT = 50
"""How many partitions begin a sync within one event; each may open some small files."""
RETAINED_AN_EVENT = 20
"""How many partitions one event looks at."""
ROLLED_AN_EVENT = 1
"""How many of them may start a new segment, which makes some files, or start to drop some."""
DROPPING_AT_ONCE = 50
"""How many partitions drop segments at a time: others wait for the same disk."""
DROPPED_AN_EVENT = 10
"""How many segments of a partition are dropped in one event; each has up to four files."""


class Maintenance:
    """The chores of one node."""

    def __init__(self, node: Node, wall_clock_ms: Callable[[], int]) -> None:
        self._node = node
        self._now_ms = wall_clock_ms
        self._cleaning: Partition | None = None
        self._order = CleaningOrder(node, wall_clock_ms, self._prepare_to_clean)
        self._to_retain: list[Partition] = []
        """Partitions that this round of retention has not handled yet."""
        self._retains_soon = False
        self._dropping = 0
        self.scrubbing = Scrubbing(node)
        self._flushed_ms: dict[Flusher, int] = {}
        self._to_flush: dict[Flusher, None] = {}
        self._clean_again_ms: dict[Partition, int] = {}

    def start(self) -> None:
        """Schedule every chore."""
        storage = self._node.settings.storage
        self._every(FLUSH_TICK_MS, self.flush)
        self._every(storage.retention_check_interval_ms, self.retain)
        self._every(storage.compaction_check_interval_ms, self.compact)
        if storage.scrub_interval_ms:
            self._every(storage.scrub_interval_ms, self.scrubbing.check_all)
        if storage.verify_on_start:
            self._node.local.on_opened = self.scrubbing.check
            self.scrubbing.check_all()

    def flush(self) -> None:
        """Sync the partitions under `flush=interval` that are due."""
        if self._to_flush:
            return  # the last round is not over yet
        now_ms, unsynced = self._node.timers.now_ms, self._node.commits.unsynced
        for flusher in list(unsynced):
            log = flusher.log
            if flusher.is_stopped or log.is_synced:
                del unsynced[flusher]
                self._flushed_ms.pop(flusher, None)
                continue
            first_ms = self._flushed_ms.setdefault(flusher, now_ms)
            waiting = log.end_offset - log.flushed_offset
            due = now_ms - first_ms >= flusher.config.flush_ms
            due |= log.unsynced.file_count >= UNSYNCED_SEGMENTS_MAX
            if due or waiting >= flusher.config.flush_messages:
                del self._flushed_ms[flusher]
                self._to_flush[flusher] = None
        self._flush_some()

    def _flush_some(self) -> None:
        """Begin a few syncs, and continue in another event."""
        for flusher in list(islice(self._to_flush, FLUSHED_AN_EVENT)):
            del self._to_flush[flusher]
            flusher.flush(urgent=False)
        if self._to_flush:
            self._node.timers.after(1, self._flush_some)

    def retain(self) -> None:
        """Drop segments past their retention, and producers that have not written for long.

        One event of the loop handles a few partitions. If the last round is not over yet, it
        continues.
        """
        if not self._to_retain:
            self._to_retain = list(reversed(self._node.partitions.values()))
        if not self._retains_soon:
            self._retain_some()

    def _retain_some(self) -> None:
        self._retains_soon = False
        now_ms, busy = self._now_ms(), 0
        for _ in range(RETAINED_AN_EVENT):
            is_enough = self._dropping >= DROPPING_AT_ONCE or busy >= ROLLED_AN_EVENT
            if not self._to_retain or is_enough:
                break
            busy += self._retain_one(self._to_retain.pop(), now_ms)
        self._retain_soon()

    def _retain_soon(self) -> None:
        """Continue in another event, unless enough partitions wait for the disk."""
        if not self._to_retain:
            self._forget_deleted()
        elif not self._retains_soon and self._dropping < DROPPING_AT_ONCE:
            self._retains_soon = True
            self._node.timers.after(1, self._retain_some)

    def _retain_one(self, partition: Partition, now_ms: int) -> bool:
        """Look at one partition; tell whether files were written."""
        if partition.retired:
            return False
        segment, dropping = partition.log.active, self._dropping
        silence_ms = self._node.settings.storage.producer_id_expiration_ms
        partition.log.producers.expire(now_ms - silence_ms)
        partition.leader.verifications.expire(self._node.timers.now_ms - silence_ms)
        try:
            self._roll(partition, now_ms)
        except OSError as error:
            self._report(partition, "cannot begin a new segment", error)
        if partition.log.change is None:
            self._drop_expired(partition, now_ms)
        return partition.log.active is not segment or self._dropping > dropping

    def compact(self) -> None:
        """Look for the log that needs compaction most, and start to clean it; one at a time."""
        if self._cleaning is None:
            self._order.look(self._clean_first)

    def _prepare_to_clean(self, partition: Partition) -> bool:
        """Seal the active segment if it is due; tell whether the log may be cleaned now."""
        if self._clean_again_ms.get(partition, 0) > self._node.timers.now_ms:
            return False
        try:
            self._roll(partition, self._now_ms())
        except OSError as error:
            self._wait_to_clean(partition)
            self._report(partition, "cannot begin a new segment", error)
            return False
        return True

    def _clean_first(self, ranked: list[Partition]) -> None:
        """Clean the first of the partitions that the disk has room for."""
        for partition in ranked:
            is_there = self._node.partitions.get(partition.name) is partition
            if is_there and self._cleaning is None and self._clean(partition):
                return

    def _roll(self, partition: Partition, now_ms: int) -> None:
        """Seal the active segment if it is due, even if no producer writes to it."""
        log, config = partition.log, partition.config
        keeps_time = config.retention_ms if config.deletes else retention.UNLIMITED
        if retention.active_overdue(log, now_ms=now_ms) or retention.active_expired(
            log, retention_ms=keeps_time, now_ms=now_ms
        ):
            log.roll()
            self._node.commits.left_unsynced(partition.flusher)

    def _drop_expired(self, partition: Partition, now_ms: int) -> None:
        log, config = partition.log, partition.config
        keeps_time = config.retention_ms if config.deletes else retention.UNLIMITED
        keeps_size = config.retention_bytes if config.deletes else retention.UNLIMITED
        expired = retention.expired(
            log,
            retention_ms=keeps_time,
            retention_bytes=keeps_size,
            now_ms=now_ms,
            upto=partition.high_watermark,
        )
        if not expired:
            return
        before_offset = log.segments[min(expired, DROPPED_AN_EVENT)].base_offset
        retired: list[str] = []

        def over() -> None:
            self._dropping -= 1
            self._remove(retired, partition.config.file_delete_delay_ms)
            self._retain_soon()

        def dropped(count: int) -> None:
            facts = {"partition": str(partition.name), "segments": count}
            self._node.outbox.append(Notice("info", "dropped old segments", facts))
            over()
            if expired > DROPPED_AN_EVENT and not partition.retired:
                self._drop_expired(partition, self._now_ms())

        def failed(error: OSError) -> None:
            if not partition.retired:
                self._report(partition, "cannot drop old segments", error)
            over()

        self._dropping += 1
        partition.changes.start(drop_segments(log, before_offset, retired), dropped, failed)

    def _clean(self, partition: Partition) -> bool:
        """Have a log cleaned; return False if there is nothing to do, or no room for it."""
        work = self._order.plan(partition)
        if work is None:
            return False
        free_bytes = self._node.disk.space(work.folder)[1]
        if free_bytes < work.room_bytes:
            self._wait_to_clean(partition)
            facts = {
                "partition": str(partition.name),
                "needed_bytes": work.room_bytes,
                "free_bytes": free_bytes,
            }
            self._node.outbox.append(Notice("error", "no room to compact a log", facts))
            return False
        self._cleaning = partition
        self._order.begun(partition)
        self._node.outbox.append(Clean(work, lambda done: self._cleaned(partition, done)))
        return True

    def _wait_to_clean(self, partition: Partition) -> None:
        """Skip a log for a while, so that it does not keep the others from compaction."""
        self._clean_again_ms[partition] = self._node.timers.now_ms + CLEAN_AGAIN_AFTER_MS

    def _discard_output(self, partition: Partition) -> None:
        """Remove the output of a compaction that the log cannot use."""
        self._remove([f"{partition.log.folder}/{CLEANING_FOLDER}"], 0)

    def _cleaned(self, partition: Partition, done: compaction.Cleaned | None) -> None:
        if self._node.partitions.get(partition.name) is not partition:
            self._cleaning = None
            return
        self._wait_to_clean(partition)
        if done is None:
            self._cleaning = None
            return

        def swapped(retired: list[str]) -> None:
            self._cleaning = None
            self._swapped(partition, done, retired)

        def failed(error: OSError) -> None:
            self._cleaning = None
            if not partition.retired:
                self._report(partition, "cannot swap in a compacted log", error)
                self._discard_output(partition)

        partition.changes.start(compaction.apply(partition.log, done), swapped, failed)

    def _swapped(self, partition: Partition, done: compaction.Cleaned, retired: list[str]) -> None:
        self._order.cleaned(partition)
        if not retired:  # the log was truncated or lost segments meanwhile
            self._discard_output(partition)
            return
        if done.lacked_room:
            rest = {"partition": str(partition.name)}
            self._node.outbox.append(Notice("error", "no room to compact all of a log", rest))
        else:
            self._clean_again_ms.pop(partition, None)
        self._remove(retired, partition.config.file_delete_delay_ms)
        facts = {
            "partition": str(partition.name),
            "records_before": done.records_before,
            "records_after": done.records_after,
        }
        self._node.outbox.append(Notice("info", "compacted a log", facts))
        self.compact()

    def _remove(self, paths: list[str], delay_ms: int) -> None:
        if paths:
            self._node.outbox.append(Remove(tuple(paths), delay_ms))

    def _report(self, partition: Partition, event: str, error: OSError) -> None:
        facts = {"partition": str(partition.name), "problem": str(error)}
        self._node.outbox.append(Notice("error", event, facts))

    def _forget_deleted(self) -> None:
        """Forget partitions whose topics are deleted."""
        for partition in [each for each in self._clean_again_ms if each.retired]:
            del self._clean_again_ms[partition]

    def _every(self, interval_ms: int, chore: Callable[[], None]) -> None:
        def turn() -> None:
            self._node.timers.after(interval_ms, turn)
            chore()

        self._node.timers.after(interval_ms, turn)
