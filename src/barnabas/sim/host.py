"""One machine and the broker on it. The disk outlives the broker, as far as it was synced.

What `server/` does on an event loop happens here by the world's clock: frames come in, answers go
out in the order of the requests, effects are carried out after each event, timers fire when due.
A mistake of the broker's that a real server would log and survive ends the simulation.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random

from barnabas.effects import Effect, Flush, Notice, Remove
from barnabas.handlers.registry import Answer, dispatch, serve_itself
from barnabas.handlers.shapes import Shapes
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.model.settings import (
    BrokerSettings,
    GroupSettings,
    Settings,
    TransactionSettings,
)
from barnabas.node.node import Node
from barnabas.sim.faults import Faults
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.network import Link, Slot
from barnabas.sim.world import InvariantError, World
from barnabas.storage.flush import carry_out

START_MS = 1_700_000_000_000
CHECKPOINT_INTERVAL_MS = 10_000
STALL_MS_MAX = 8_000

SESSION_MS = 6_000
SETTINGS = Settings(
    broker=BrokerSettings(data_dir="data", auto_create_topics=False),
    groups=GroupSettings(
        offsets_partitions=2, consumer_session_timeout_ms=SESSION_MS, min_session_timeout_ms=1_000
    ),
    transactions=TransactionSettings(log_partitions=2, abort_check_interval_ms=1_000),
)


class Host:
    """A machine with a broker."""

    def __init__(self, world: World, faults: Faults) -> None:
        self.world = world
        self.faults = faults
        self.disk = MemoryDisk()
        self.life = 0
        self.node: Node | None = None
        self.links: dict[Link, None] = {}
        self.invariants: list[Callable[[Node], None]] = []
        """What must hold after each event of the broker's."""
        self.on_bad_sync: Callable[[], None] = lambda: None
        """Called where the power is to go in the middle of a sync."""
        self._shapes: Shapes
        self._armed_ms: int | None = None

    def start(self) -> None:
        """Start a broker on what the disk holds; a little room is kept for that (see app.py)."""
        self.life += 1
        node = Node(SETTINGS, self.disk, Random(self.world.rng.getrandbits(64)))
        serve_itself(node)
        node.timers.now_ms, node.timers.wall_ms = self.world.now_ms, self._wall_ms
        full_room, self.disk.room = self.disk.room, None
        node.start(self._wall_ms)
        self.disk.room = full_room
        self.node = node
        self._shapes = Shapes(node)
        self._armed_ms = None
        self.world.note("broker", f"starts its life {self.life}")
        node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
        self._after_event(node)

    def stop(self) -> None:
        """Do what a broker does before it ends by itself: sync everything, leave a marker."""
        assert self.node is not None
        self.world.note("broker", "stops")
        for partition in self.node.partitions.values():
            partition.log.flush()
        with suppress(OSError):  # a full disk: the next start checks everything
            self.node.stop()

    def kill(self, *, power_cut: bool) -> None:
        """End the broker without a word; with the power goes what was not synced."""
        self.world.note("broker", "loses power" if power_cut else "is killed")
        self.life += 1
        self.node = None
        if power_cut:
            self.disk.power_cut(self.world.rng)
        for link in list(self.links):
            link.reset()
        self.links.clear()

    def act(self, life: int, callback: Callable[[], object]) -> None:
        """Have something happen to the broker, unless it is another one by now."""
        node = self.node
        if node is None or life != self.life:
            return
        node.timers.now_ms, node.timers.wall_ms = self.world.now_ms, self._wall_ms
        callback()
        if life == self.life:
            self._after_event(node)

    def receive(self, link: Link, frame: bytes) -> None:
        """Handle one request."""
        self.act(self.life, lambda: self._handle(link, frame))

    def hang_up(self, link: Link) -> None:
        """Hear that a connection is closed: nobody wants its answers any more."""
        self.links.pop(link, None)

        def abandon() -> None:
            slots, link.slots[:] = link.slots[:], []
            for slot in slots:
                if slot.pending is not None:
                    slot.pending.abandon()

        self.act(self.life, abandon)

    @property
    def _wall_ms(self) -> int:
        return START_MS + self.world.now_ms

    def _handle(self, link: Link, frame: bytes) -> None:
        assert self.node is not None
        content = memoryview(bytearray(frame))
        try:
            answer = self._answer(link, content)
        except WireError as error:
            raise InvariantError(f"the broker cannot read a request: {error}") from error
        if answer is None:
            return
        slot = Slot(answer if isinstance(answer, Pending) else None)
        link.slots.append(slot)
        if isinstance(answer, Pending):
            answer.when_done(lambda chunks: link.fill(slot, chunks), _fail)
        else:
            link.fill(slot, answer)

    def _answer(self, link: Link, content: memoryview) -> Answer:
        assert self.node is not None
        if link.prefix_bytes:
            known = self._shapes.answer(content, link.prefix_bytes, self._wall_ms)
            if isinstance(known, bytes):
                return [known[4:]]
            if known is not None:
                return known
        answer, context = dispatch(self.node, content, link.name, self._wall_ms, self._shapes)
        link.prefix_bytes = context.prefix_bytes
        return answer

    def _after_event(self, node: Node) -> None:
        while node.outbox:
            effects = node.outbox[:]
            node.outbox.clear()
            for effect in effects:
                self._carry_out(effect)
        for invariant in self.invariants:
            invariant(node)
        next_ms = node.timers.next_ms
        if next_ms is not None and (self._armed_ms is None or next_ms < self._armed_ms):
            self._arm(next_ms)

    def _arm(self, next_ms: int) -> None:
        self._armed_ms, life = next_ms, self.life

        def fire() -> None:
            if life == self.life and self._armed_ms == next_ms and self.node is not None:
                self._armed_ms = None
                self.act(life, self.node.timers.fire)

        self.world.after(next_ms - self.world.now_ms, fire)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Flush():
                self._sync(effect)
            case Remove():
                self.world.after(effect.delay_ms, lambda: self._remove(effect))
            case Notice():
                self.world.note("broker", f"{effect.level}: {effect.event} {effect.facts}")
            case _:
                raise InvariantError(f"the simulation does not expect {effect}")

    def _sync(self, flush: Flush) -> None:
        """Sync at some moment, and say so at a later one."""
        rng, life = self.world.rng, self.life
        duration_ms = rng.randint(0, self.faults.sync_ms_max)
        if rng.random() < self.faults.stall_chance:
            duration_ms = rng.randint(1_000, STALL_MS_MAX)
        synced_after_ms = rng.randint(0, duration_ms)
        if self.faults.cut_at_sync and rng.random() < self.faults.cut_at_sync:
            self.world.after(rng.randint(0, duration_ms), self.on_bad_sync)

        def sync() -> None:
            if life == self.life:
                carry_out(self.disk, flush.task)
                self.world.after(duration_ms - synced_after_ms, lambda: self.act(life, flush.done))

        self.world.after(synced_after_ms, sync)

    def _remove(self, effect: Remove) -> None:
        for path in effect.paths:
            self.disk.remove_tree(path)
            self.disk.remove(path)

    def _checkpoint(self) -> None:
        assert self.node is not None
        full_room, self.disk.room = self.disk.room, None
        self.node.checkpoint()()
        self.disk.room = full_room
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)


def _fail(error: Exception) -> None:
    raise error
