"""A simulated machine with one broker. After a power cut its disk keeps synced data only.

It does by simulated time what `server/` does on an event loop: it receives and sends bytes over the
server's own connections (`sim/edge.py`), carries out effects after each event, and fires timers
when they are due. A defect that a real server would log and survive ends the simulation.

A machine may be paused: everything that would happen to the broker meanwhile happens when it
resumes. Its wall clock may be wrong and may jump. Its monotonic clock is always right.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random

from barnabas.effects import Address, Ask, Effect, Flush, MakeDurable, Notice, Remove, Scan
from barnabas.handlers.registry import serve_itself
from barnabas.metadata.features import LATEST_LEVEL
from barnabas.model.settings import (
    BrokerSettings,
    GroupSettings,
    Settings,
    ShareSettings,
    TransactionSettings,
)
from barnabas.model.steps import Call, Steps, finish, resume
from barnabas.node.chores.checkpointing import checkpoint
from barnabas.node.node import Node
from barnabas.server.edge_ports import AcceptedConnection
from barnabas.sim.edge import SimServer
from barnabas.sim.faults.cut_links import LinkFaults
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.lanes import Lanes
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.network import Link
from barnabas.sim.simulated_connections import Caller, draw_limits
from barnabas.sim.world import InvariantError, World
from barnabas.storage.changes import Sync
from barnabas.storage.flush import carry_out
from barnabas.storage.names import LOG_SUFFIX

START_MS = 1_700_000_000_000
CHECKPOINT_INTERVAL_MS = 10_000
STALL_MS_MAX = 8_000
LEAVE_PATIENCE_MS = 3_000
STEP_MS_MAX = 20

SESSION_MS = 6_000
SETTINGS = Settings(
    broker=BrokerSettings(data_dir="data", auto_create_topics=False),
    groups=GroupSettings(
        offsets_partitions=2,
        consumer_session_timeout_ms=SESSION_MS,
        min_session_timeout_ms=1_000,
        heartbeat_wait_ms=500,
    ),
    transactions=TransactionSettings(log_partitions=2, abort_check_interval_ms=1_000),
    share=ShareSettings(
        state_partitions=2, updates_per_snapshot=6, tidy_interval_ms=1_500, write_timeout_ms=600
    ),
)


class Host:
    """A machine with a broker."""

    def __init__(
        self,
        world: World,
        faults: Faults,
        *,
        name: str = "broker",
        settings: Settings = SETTINGS,
        link_faults: LinkFaults | None = None,
        neighbours: dict[Address, "Host"] | None = None,
    ) -> None:
        self.world = world
        self.faults = faults
        self.name = name
        self.settings = settings
        self.link_faults = LinkFaults(world) if link_faults is None else link_faults
        self.neighbours = {} if neighbours is None else neighbours
        """All brokers, including this one, by their inter-broker address."""
        self.disk = MemoryDisk()
        self.life = 0
        self.node: Node | None = None
        self.links: dict[Link, None] = {}
        self.invariants: list[Callable[[Node], None]] = []
        """Called after each event of the broker, to check invariants."""
        self.on_power_cut_in_sync: Callable[[], None] = lambda: None
        """Called when the power is to fail in the middle of a sync."""
        self.check_request: Callable[[Host, bytes], Callable[[bytes], None] | None] | None = None
        """Called with each request from another broker; the returned callback gets the response."""
        self.on_ask: Callable[[Host, Ask], None] = lambda *_: None
        """Called when the broker has sent a request to another broker."""
        self.prepare: Callable[[Node], None] = lambda _: None
        """Called with the node of each life before it starts."""
        self.skew_ms = 0
        """How far the wall clock is ahead."""
        self.first_level = LATEST_LEVEL
        """The feature level of a cluster that this broker forms."""
        self.damaged = False
        """Whether the data on its disk may be damaged."""
        self.accepts_clients = False
        """Whether clients can connect: the cluster must have unfenced the broker first."""
        self.paused = False
        self._backlog: deque[tuple[int, Callable[[], object]]] = deque()
        self._lanes = Lanes(self)
        self._server: SimServer
        self._callers: dict[Link, Caller] = {}
        self._edge = Random(f"{world.seed} {name}")
        """A separate random generator: how bytes arrive must not change other draws of a seed."""
        self._limits = draw_limits(self._edge, Random(f"{world.seed} {name} turns"))
        self._armed_ms: int | None = None

    def start(self) -> None:
        """Start a broker on the data on its disk, with some reserved space (see app.py)."""
        self.life += 1
        self.accepts_clients = False
        node = Node(self.settings, self.disk, Random(self.world.rng.getrandbits(64)))
        node.first_level = self.first_level
        serve_itself(node)
        self.prepare(node)
        node.timers.now_ms, node.timers.wall_ms = self.world.now_ms, self._wall_ms
        full_room, self.disk.room = self.disk.room, None
        node.start(self._wall_ms).when_done(self._accept_clients)
        self.disk.room = full_room
        self.node = node
        self._server = SimServer(node, self._limits, self._call_soon, self._closed)
        self._callers.clear()
        self._armed_ms = None
        self.world.note(self.name, f"starts its life {self.life}")
        node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
        self._after_event(node)

    def stop(self, then: Callable[[], None]) -> None:
        """Shut the broker down: hand over leadership, sync all files and write the clean shutdown
        marker.

        It waits for a limited time until others have taken over (see app.py).
        """
        node, life = self.node, self.life
        assert node is not None
        self.world.note(self.name, "stops")

        def end() -> None:
            if life != self.life:
                return
            if self.paused:
                self.world.after(LEAVE_PATIENCE_MS, end)
                return
            self.run_event(life, node.quorum.raft.resign)
            self._close(node)
            then()

        if node.is_alone:
            self._close(node)
            then()
        else:
            self.run_event(life, lambda: self._leave(node, lambda: self.world.after(0, end)))
            self.world.after(LEAVE_PATIENCE_MS, end)

    def _leave(self, node: Node, left: Callable[[], None]) -> None:
        node.membership.leave().when_done(lambda _: left())

    def _accept_clients(self, _: None) -> None:
        self.accepts_clients = True

    def _close(self, node: Node) -> None:
        for partition in node.partitions.values():
            partition.log.flush()
        with suppress(OSError):  # a full disk: the next start checks everything
            node.stop()

    def flip(self) -> None:
        """Flip a bit of a log, on the drive and for every reader."""
        rng, base = self.world.rng, f"{self.settings.broker.data_dir}/topics"
        folders = [f"{base}/{t}/{p}" for t in self.disk.list(base) for p in "0123"]
        paths = [f"{folder}/{name}" for folder in folders for name in self.disk.list(folder)]
        logs = [path for path in paths if path.endswith(LOG_SUFFIX) and self.disk.size(path)]
        if logs:
            path = rng.choice(logs)
            bit = rng.randrange(8 * self.disk.size(path))
            self.world.note(self.name, f"has bit {bit} of {path} flipped")
            self.damaged = True
            self.disk.flip(path, bit)

    def kill(self, *, power_cut: bool) -> None:
        """Kill the broker; a power cut also loses unsynced data."""
        self.world.note(self.name, "loses power" if power_cut else "is killed")
        self.life += 1
        self.node, self.accepts_clients = None, False
        if power_cut:
            self.disk.power_cut(self.world.rng)
        for link in list(self.links):
            link.reset()
        self.links.clear()
        self._callers.clear()
        self._lanes.close()
        self._backlog.clear()
        self.paused = False

    def pause(self) -> None:
        """Pause the process as SIGSTOP does: frames and timers wait."""
        self.world.note(self.name, "is paused")
        self.paused = True

    def resume(self) -> None:
        """Resume the process, and handle everything that waits."""
        if not self.paused:
            return
        self.world.note(self.name, "resumes")
        self.paused = False
        waiting, self._backlog = self._backlog, deque()
        for life, callback in waiting:
            self.run_event(life, callback)

    def run_event(self, life: int, callback: Callable[[], object]) -> None:
        """Run an event of the broker, unless it was restarted since."""
        node = self.node
        if node is None or life != self.life:
            return
        if self.paused:
            self._backlog.append((life, callback))
            return
        node.timers.now_ms, node.timers.wall_ms = self.world.now_ms, self._wall_ms
        callback()
        if life == self.life:
            self._after_event(node)

    def receive(self, link: Link, frame: bytes) -> None:
        """Handle one request."""

        def arrive() -> None:
            check_response = None
            if link.peer and self.check_request is not None:
                check_response = self.check_request(self, frame)
            caller = self._callers.get(link) or self._accept(link)
            caller.arrive(frame, check_response)

        self.run_event(self.life, arrive)

    def disconnect(self, link: Link) -> None:
        """Handle the end of a connection: its responses are not needed any more."""
        self.links.pop(link, None)

        def close() -> None:
            caller = self._callers.pop(link, None)
            if caller is not None:
                caller.connection.close()

        self.run_event(self.life, close)

    @property
    def _wall_ms(self) -> int:
        return START_MS + self.world.now_ms + self.skew_ms

    def delay_ms(self) -> int:
        """Draw the delay of a frame."""
        return self.world.rng.randint(0, self.faults.delay_ms_max)

    def _accept(self, link: Link) -> Caller:
        caller = Caller(link, self._server, self._edge, self._call_soon)
        self._callers[link] = caller
        return caller

    def _call_soon(self, callback: Callable[[], None]) -> None:
        life = self.life
        self.world.after(0, lambda: self.run_event(life, callback))

    def _closed(self, connection: AcceptedConnection, problem: str | Exception) -> None:
        """Handle a connection that the broker has closed; clients' must stay open."""
        if isinstance(problem, InvariantError):
            raise problem
        if not connection.peer or not isinstance(problem, str | OSError):
            cause = problem if isinstance(problem, Exception) else None
            raise InvariantError(f"the broker cannot serve a request: {problem}") from cause
        for link, caller in list(self._callers.items()):
            if caller.connection is connection:
                self.world.note(self.name, f"closes the connection of {link.name}: {problem}")
                del self._callers[link]
                self.links.pop(link, None)
                link.reset()

    def _after_event(self, node: Node) -> None:
        while self._server.dirty or node.outbox:
            self._server.flush()
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
                self.run_event(life, self.node.timers.fire)

        self.world.after(next_ms - self.world.now_ms, fire)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Flush():
                self._sync(effect)
            case MakeDurable():
                self._make_durable(effect)
            case Remove():
                self.world.after(effect.delay_ms, lambda: self._remove(effect))
            case Scan():
                self._scan(effect.steps, None)
            case Ask():
                self._lanes.ask(effect)
                self.on_ask(self, effect)
            case Notice():
                self.world.note(self.name, f"{effect.level}: {effect.event} {effect.facts}")
            case _:
                raise InvariantError(f"unexpected effect: {effect}")

    def _sync(self, flush: Flush) -> None:
        """Sync at one moment, and report it at a later one."""
        rng, life = self.world.rng, self.life
        duration_ms = rng.randint(0, self.faults.sync_ms_max)
        if rng.random() < self.faults.stall_chance:
            duration_ms = rng.randint(1_000, STALL_MS_MAX)
        synced_after_ms = rng.randint(0, duration_ms)
        if self.faults.cut_at_sync and rng.random() < self.faults.cut_at_sync:
            self.world.after(rng.randint(0, duration_ms), self.on_power_cut_in_sync)

        def sync() -> None:
            if life == self.life:
                carry_out(self.disk, flush.task)
                self.world.after(
                    duration_ms - synced_after_ms, lambda: self.run_event(life, flush.done)
                )

        self.world.after(synced_after_ms, sync)

    def _scan(self, steps: Steps[None], call: Call | None) -> None:
        """Run the next step of a scan at a random moment, and the following steps later."""
        life = self.life

        def step() -> None:
            try:
                following = resume(steps, call)
            except StopIteration:
                return
            self._scan(steps, following)

        self.world.after(self._edge.randint(0, STEP_MS_MAX), lambda: self.run_event(life, step))

    def _make_durable(self, effect: MakeDurable) -> None:
        """Sync each file and folder at a different moment, and report it later.

        The power may fail at any moment in between.
        """
        rng, life = self.world.rng, self.life
        left = [Sync(files=(file,)) for file in effect.sync.files]
        left += [Sync(folders=(folder,)) for folder in effect.sync.folders]

        def go_on() -> None:
            if life != self.life:
                return
            if not left:
                self.run_event(life, effect.done)
                return
            left.pop(0).carry_out(self.disk)
            self.world.after(rng.randint(0, self.faults.sync_ms_max), go_on)

        self.world.after(rng.randint(0, self.faults.sync_ms_max), go_on)

    def _remove(self, effect: Remove) -> None:
        for path in effect.paths:
            self.disk.remove_tree(path)
            self.disk.remove(path)

    def _checkpoint(self) -> None:
        assert self.node is not None
        full_room, self.disk.room = self.disk.room, None
        finish(checkpoint(self.node))()
        self.disk.room = full_room
        self.node.timers.after(CHECKPOINT_INTERVAL_MS, self._checkpoint)
