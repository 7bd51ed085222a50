"""An edge without threads: carries out a node's effects at once, on any disk, and counts them."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from barnabas.effects import (
    Ask,
    AuditLine,
    Clean,
    Effect,
    Flush,
    MakeDurable,
    Notice,
    Remove,
    Scan,
    Verify,
)
from barnabas.handlers.registry import serve_itself
from barnabas.metadata.metadata_records import TopicCreated, TopicDeleted
from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Disk
from barnabas.model.settings import BrokerSettings, Settings
from barnabas.model.steps import finish
from barnabas.node.chores.maintenance import Maintenance
from barnabas.node.node import Node
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.compacting.compaction import clean
from barnabas.storage.flush import carry_out
from barnabas.storage.walk import first_damage

START_MS = 1_000_000


class Edge:
    """A node with its chores and its effects, driven by a test."""

    def __init__(self, disk: Disk, settings: Settings | None = None) -> None:
        self.disk = disk
        self.now_ms = START_MS
        if isinstance(disk, MemoryDisk):
            disk.wall_clock_ms = lambda: self.now_ms
        self.notices: list[Notice] = []
        self.held: list[Flush | MakeDurable] = []
        self.hold_syncs = False
        broker = BrokerSettings(data_dir="data")
        self.node = Node(settings or Settings(broker=broker), disk, Random(1))
        serve_itself(self.node)
        self.maintenance = Maintenance(self.node, lambda: self.now_ms)

    def start(self) -> "Edge":
        """Load everything."""
        self.node.start(self.now_ms)
        self.settle()
        return self

    def stop(self) -> None:
        """Flush and close as `BrokerProcess` does."""
        for partition in self.node.partitions.values():
            partition.log.flush()
        self.node.stop()

    def create(
        self, name: str, config: Mapping[str, str] | None = None, number: int = 1
    ) -> TopicCreated:
        """Create a topic of one partition, with configs and an id made from a number."""
        record = TopicCreated(
            name=name,
            topic_id=f"{number:032x}",
            replicas=[[self.node.node_id]],
            config=dict(config or {}),
        )
        self.node.commit([record], self.now_ms)
        self.settle()
        return record

    def delete(self, record: TopicCreated) -> None:
        """Delete a topic."""
        self.node.commit([TopicDeleted(topic_id=record.topic_id)], self.now_ms)
        self.settle()

    def settle(self) -> None:
        """Carry out effects until there are none."""
        while self.node.outbox:
            effects: Sequence[Effect] = self.node.outbox[:]
            self.node.outbox.clear()
            for effect in effects:
                self._carry_out(effect)

    def release(self) -> None:
        """Report the held syncs, which were carried out before."""
        held, self.held = self.held, []
        for sync in held:
            sync.done()
        self.settle()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and fire the timers that are due."""
        self.now_ms += duration_ms
        timers = self.node.timers
        timers.now_ms, timers.wall_ms = timers.now_ms + duration_ms, self.now_ms
        timers.fire()
        self.settle()

    def do(self, chore: Callable[[], object]) -> None:
        """Run one chore and its effects."""
        chore()
        self.settle()

    def notices_of(self, event: str) -> list[Notice]:
        """Return the notices of a kind."""
        return [notice for notice in self.notices if notice.event == event]

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Flush() | MakeDurable():
                self._sync(effect)
            case Remove():
                for path in effect.paths:
                    self.disk.remove_tree(path)
                    self.disk.remove(path)
            case Clean():
                try:
                    effect.done(clean(self.disk, effect.plan))
                except (OSError, CorruptBatchError):
                    effect.done(None)
            case Verify():
                found = ((path, first_damage(self.disk, path, size)) for path, size in effect.files)
                effect.done([(path, byte) for path, byte in found if byte is not None])
            case Scan():
                finish(effect.steps)
            case Ask():
                effect.done(None)
            case Notice() | AuditLine():
                assert isinstance(effect, Notice), "these tests have no audit log"
                self.notices.append(effect)

    def _sync(self, effect: Flush | MakeDurable) -> None:
        if isinstance(effect, Flush):
            carry_out(self.disk, effect.task)
        else:
            effect.sync.carry_out(self.disk)
        if self.hold_syncs:
            self.held.append(effect)
        else:
            effect.done()
