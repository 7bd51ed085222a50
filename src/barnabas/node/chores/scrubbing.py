"""Checks all stored records for damage, also those that no client reads.

A separate process reads all files and returns the positions of damage. The logs are in use
meanwhile: one that is truncated and written again may look damaged at that moment. So the broker
checks each position again before it counts.
"""

from barnabas.effects import Notice, Verify
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.storage.segment import Segment

GATHER_MS = 1000
"""Many logs are opened at the same time; those opened meanwhile are checked together."""


class Scrubbing:
    """The search for damage on one node, one pass at a time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[Partition, None] = {}
        self._under_way = False
        self.scrubbed_bytes = 0
        """How much was read to look for damage."""

    def check_all(self) -> None:
        """Have every stored checksum checked."""
        for partition in self._node.partitions.values():
            self.check(partition)

    def check(self, partition: Partition) -> None:
        """Have what is stored of one partition checked soon."""
        if not self._waiting and not self._under_way:
            self._node.timers.after(GATHER_MS, self._begin)
        self._waiting[partition] = None

    def _begin(self) -> None:
        logs = [partition.log for partition in self._waiting if not partition.retired]
        self._waiting.clear()
        segments = [segment for log in logs for segment in log.segments if segment.size]
        self._under_way = bool(segments)
        if segments:
            files = tuple((segment.paths[0], segment.size) for segment in segments)
            size = sum(size for _, size in files)
            self._node.outbox.append(Verify(files, lambda damage: self._checked(damage, size)))

    def _checked(self, damage: list[tuple[str, int]], size: int) -> None:
        self._under_way = False
        self.scrubbed_bytes += size
        if self._waiting:
            self._node.timers.after(GATHER_MS, self._begin)
        by_path = dict(damage)
        for partition in list(self._node.partitions.values()):
            damaged = [
                segment
                for segment in partition.log.segments
                if segment.is_damaged_near(by_path.get(segment.paths[0]))
            ]
            for segment in damaged:
                self._report(partition, segment, by_path[segment.paths[0]])
            if damaged:
                # The place in the segment is unknown: no checksum covers the offsets.
                start = max(damaged[0].base_offset, partition.log.start_offset)
                partition.health.found_damage(start)
        facts = {"damaged": len(damage)}
        self._node.outbox.append(Notice("info", "checked all stored records", facts))

    def _report(self, partition: Partition, segment: Segment, byte: int) -> None:
        segment.trust.forget(segment)
        facts = {"partition": str(partition.name), "file": segment.paths[0], "byte": byte}
        self._node.outbox.append(Notice("error", "found damage", facts))
