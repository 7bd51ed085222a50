"""Decides which log is compacted next: an overdue one, else the dirtiest, each once a round.

To find it, every compacted partition is looked at, in pieces of bounded work, each an event of
its own. The first of the ranking is cleaned, and then all are looked at again.

A partition that was cleaned waits until the round is over, that is until no other qualifies. A
partition that qualifies therefore waits for at most one compaction of each of the others, even if a
busy one is soon dirty again. Within a round overdue logs come first (`max.compaction.lag.ms`),
then those with the largest share of bytes that were never cleaned, as in Kafka.
"""

from collections.abc import Callable
from heapq import nlargest
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from barnabas.effects import Notice
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.storage.compacting import compaction

PIECE = 500
"""How much is looked at in one event, in segments; about a millisecond."""
LOOK_COST = 10
"""The cost of looking at a compacted partition, in segments."""
READ_COST = 20
"""The cost of reading up to where a log is clean."""
SEAL_COST = 500
"""The cost of sealing a segment: some small files are written."""
RANKED_MAX = 10


class _Found(NamedTuple):
    """A partition that is worth cleaning."""

    overdue: bool
    ratio: float
    partition: Partition

    def urgency(self) -> tuple[bool, float]:
        """Return what partitions are ranked by."""
        return self.overdue, self.ratio


class CleaningOrder:
    """The search for the partition that needs compaction most, one at a time."""

    def __init__(
        self,
        node: Node,
        wall_clock_ms: Callable[[], int],
        prepare: Callable[[Partition], bool],
    ) -> None:
        """`prepare` is called for each compacted partition, and tells whether to go on with it."""
        self._node = node
        self._now_ms = wall_clock_ms
        self._prepare = prepare
        self._served: WeakSet[Partition] = WeakSet()
        """The partitions that were cleaned in this round."""
        self._clean_upto: WeakKeyDictionary[Partition, tuple[int, int]] = WeakKeyDictionary()
        """Up to where each log is clean, as it was read, and its number of truncations then."""
        self._left: list[Partition] = []
        self._found: list[_Found] = []
        self._looking = False

    def look(self, begin: Callable[[list[Partition]], None]) -> None:
        """Look at all partitions, and call back with the most urgent ones, those first."""
        if not self._looking:
            self._looking = True
            self._left = list(self._node.partitions.values())
            self._found = []
            self._go_on(begin)

    def plan(self, partition: Partition) -> compaction.CleaningPlan | None:
        """Return what to clean in a log, if it is dirty enough."""
        return compaction.plan(
            partition.log,
            _urgency(partition),
            delete_retention_ms=partition.config.delete_retention_ms,
            now_ms=self._now_ms(),
            upto=partition.last_stable_offset,
        )

    def begun(self, partition: Partition) -> None:
        """Record that a partition is being cleaned: others come first from now on."""
        self._served.add(partition)

    def cleaned(self, partition: Partition) -> None:
        """Record that a log is clean up to another offset than before."""
        self._clean_upto.pop(partition, None)

    def _go_on(self, begin: Callable[[list[Partition]], None]) -> None:
        self._looking = False  # if a look fails, the next turn starts again
        cost = 0
        while self._left and cost < PIECE:
            partition = self._left.pop()
            try:
                cost += self._look_at(partition)
            except OSError as error:
                facts = {"partition": str(partition.name), "problem": str(error)}
                event = "cannot decide whether to compact a log"
                self._node.outbox.append(Notice("error", event, facts))
        if self._left:
            self._looking = True
            self._node.timers.after(1, lambda: self._go_on(begin))
        else:
            begin(self._ranked())

    def _ranked(self) -> list[Partition]:
        waiting = [found for found in self._found if found.partition not in self._served]
        if not waiting:
            self._served.clear()
            waiting = self._found
        self._found = []
        return [found.partition for found in nlargest(RANKED_MAX, waiting, key=_Found.urgency)]

    def _look_at(self, partition: Partition) -> int:
        """Remember a partition if it is worth cleaning; return what the look has cost."""
        if partition.retired or not partition.config.compacts:
            return 1
        segments_before = len(partition.log.segments)
        if not self._prepare(partition):
            return LOOK_COST
        segments = len(partition.log.segments)
        read_cost = READ_COST if partition not in self._clean_upto else 0
        dirt = compaction.dirt_in(
            partition.log,
            _urgency(partition),
            now_ms=self._now_ms(),
            upto=partition.last_stable_offset,
            clean_upto=self._read_clean_upto(partition) if segments > 1 else 0,
        )
        if dirt is not None:
            self._found.append(_Found(dirt.overdue, dirt.ratio, partition))
        return LOOK_COST + read_cost + segments + SEAL_COST * (segments - segments_before)

    def _read_clean_upto(self, partition: Partition) -> int:
        """Read up to where a log is clean, unless that is known."""
        log = partition.log
        known = self._clean_upto.get(partition)
        if known is None or known[0] != log.truncations:  # a truncation removes the file
            known = self._clean_upto[partition] = log.truncations, compaction.read_checkpoint(log)
        return known[1]


def _urgency(partition: Partition) -> compaction.Urgency:
    config = partition.config
    return compaction.Urgency(
        config.min_cleanable_dirty_ratio,
        config.min_compaction_lag_ms,
        config.max_compaction_lag_ms,
    )
