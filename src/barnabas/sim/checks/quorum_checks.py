"""Checks the metadata quorum after every event.

- An epoch has one leader. No node goes back to an earlier epoch, not even after a power cut.
- While a node runs, its high watermark never decreases. Committed records are the same everywhere.
- A leader and every in-sync replica are alive, except the last in-sync replica.
- Responses to clients name only leaders from committed metadata, each with its epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.metadata.image import NO_LEADER, Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import decode
from barnabas.node.node import Node
from barnabas.protocol.records import BatchHeader, records
from barnabas.sim.checks.history_checks import History
from barnabas.sim.host import Host
from barnabas.sim.world import InvariantError

Named = tuple[bytes, int, int, int]
"""Topic id, partition, leader epoch, leader."""


@dataclass(slots=True)
class Seen:
    """A node as of the last check."""

    life: int = -1
    epoch: int = -1
    high_watermark: int = -1


class Quorum:
    """Compares the nodes of a quorum, including observers."""

    def __init__(self) -> None:
        self.history = History("metadata")
        self.image = Image()
        """The image of all committed metadata."""
        self.on_change: Callable[[PartitionImage | None, PartitionImage], None] = lambda *_: None
        """Called for each partition that changed, once the change is committed."""
        self.on_join: Callable[[bytes, int, list[int]], None] = lambda *_: None
        """Called with topic id, partition and the replicas that joined the ISR, once that is
        committed.
        """
        self._partitions: dict[tuple[bytes, int], PartitionImage] = {}
        self._leaders: dict[int, str] = {}
        self._named: set[Named] = set()
        self._seen: dict[str, Seen] = {}

    def check(self, host: Host, node: Node) -> None:
        """Check what changed at a node."""
        raft, epoch = node.quorum.raft, node.quorum.raft.elections.epoch
        seen = self._seen.setdefault(host.name, Seen())
        if seen.life != host.life:
            seen.life, seen.high_watermark = host.life, -1
        if epoch != seen.epoch:
            if epoch < seen.epoch:
                raise InvariantError(f"{host.name} goes back from epoch {seen.epoch} to {epoch}")
            seen.epoch = epoch
        if raft.elections.is_leader:
            leader = self._leaders.setdefault(epoch, host.name)
            if leader != host.name:
                raise InvariantError(
                    f"{leader} and {host.name} both lead the quorum in epoch {epoch}"
                )
        if raft.high_watermark != seen.high_watermark:
            self._compare(host.name, node, seen)

    def check_answer(self, host: Host, topic: Any) -> None:  # noqa: ANN401 - of a Metadata answer
        """Compare a topic in a Metadata response with the committed metadata."""
        for part in topic.partitions:
            named = (topic.topic_id, part.partition_index, part.leader_epoch, part.leader_id)
            if part.leader_id >= 0 and named not in self._named:
                raise InvariantError(
                    f"{host.name} names a leader that was never committed: {named}"
                )

    def in_sync(self, topic_id: bytes, number: int) -> list[tuple[int, int]]:
        """Return the in-sync replicas in committed metadata, each with its broker epoch."""
        topic = self.image.topic_by_id(topic_id)
        isr = [] if topic is None else topic.partitions[number].isr
        found = [self.image.brokers.get(broker) for broker in isr]
        return [(each.node_id, each.broker_epoch) for each in found if each is not None]

    def _compare(self, who: str, node: Node, seen: Seen) -> None:
        raft = node.quorum.raft
        if raft.high_watermark < seen.high_watermark:
            raise InvariantError(
                f"the quorum's high watermark at {who} went back from {seen.high_watermark} to "
                f"{raft.high_watermark}"
            )
        start = max(raft.log.start_offset, seen.high_watermark)
        for header, batch in raft.log.batches(start, raft.high_watermark):
            is_new = header.base_offset >= self.history.end_offset
            self.history.compare(who, [header])
            if is_new:
                self._apply_batch(header, batch)
        seen.high_watermark = raft.high_watermark

    def _apply_batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            return
        for record in records(batch, header):
            self.image.replay(decode(record.key or b"", record.value or b""))
        for topic in self.image.topics.values():
            for number, placed in enumerate(topic.partitions):
                place = (topic.topic_id, number)
                before = self._partitions.get(place)
                if placed is not before:
                    self._partitions[place] = placed
                    self._named.add((*place, placed.leader_epoch, placed.leader))
                    self._report_joined(place, before, placed)
                    self.on_change(before, placed)
                self._check_placed(topic, number, placed)

    def _report_joined(
        self, place: tuple[bytes, int], before: PartitionImage | None, placed: PartitionImage
    ) -> None:
        joined = [] if before is None else [n for n in placed.isr if n not in before.isr]
        if joined:
            self.on_join(*place, joined)

    def _check_placed(self, topic: TopicImage, number: int, placed: PartitionImage) -> None:
        image = self.image
        absent = [n for n in placed.isr if not image.is_active(n)]
        if absent and len(placed.isr) > 1:
            raise InvariantError(
                f"{topic.name}-{number} has in-sync replicas that are not alive: {absent}"
            )
        if placed.leader != NO_LEADER and (absent or placed.leader not in placed.isr):
            raise InvariantError(f"{topic.name}-{number} has a leader that cannot lead: {placed}")
