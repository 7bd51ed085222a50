"""A simulated machine with one quorum member. After a power cut its disk keeps synced data only."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.effects import Address, Effect, Flush, MakeDurable, Notice, Remove
from barnabas.model.errors import StorageError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.settings import ClusterSettings
from barnabas.model.timers import Timers
from barnabas.protocol.message import Message
from barnabas.protocol.messages.vote import VoteRequest
from barnabas.raft.metadata_log import FOLDER
from barnabas.raft.metadata_snapshots import SUFFIX
from barnabas.raft.raft_machine import Raft
from barnabas.raft.voters import Voter
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.raft.raft_committed import CheckingListener, CommittedHistory
from barnabas.sim.world import InvariantError, World
from barnabas.storage.flush import carry_out

if TYPE_CHECKING:
    from barnabas.sim.raft.raft_network import RaftNetwork

START_MS = 1_700_000_000_000
PORT = 9000

HANDLERS = {
    "VoteRequest": "handle_vote",
    "BeginQuorumEpochRequest": "handle_begin_quorum_epoch",
    "EndQuorumEpochRequest": "handle_end_quorum_epoch",
    "FetchRequest": "handle_fetch",
    "FetchSnapshotRequest": "handle_fetch_snapshot",
    "UpdateRaftVoterRequest": "handle_update_voter",
}


def address_of(node_id: int) -> Address:
    """Return the address of a simulated node."""
    return Address("sim", PORT + node_id)


class RaftHost:
    """A node that can be started, killed and wiped."""

    def __init__(
        self,
        world: World,
        network: "RaftNetwork",
        history: CommittedHistory,
        node_id: int,
        bootstrap: list[Voter],
        snapshot_after: int,
    ) -> None:
        self.world = world
        self.node_id = NodeId(node_id)
        self.disk = MemoryDisk()
        self.life = 0
        self.raft: Raft | None = None
        self.listener: CheckingListener
        self.sync_ms_max = 5
        self.on_vote: Callable[[], None] = lambda: None
        """Called after a Vote request was answered, when the vote on disk matters most."""
        self._network = network
        self._history = history
        self._bootstrap = bootstrap
        self._settings = ClusterSettings(
            host="sim",
            port=PORT + node_id,
            election_timeout_ms=200,
            fetch_timeout_ms=200,
            snapshot_after_records=snapshot_after,
        )
        self._outbox: list[Effect] = []
        self._timers = Timers()
        self._armed_ms: int | None = None
        self._high_watermark = 0

    @property
    def leads(self) -> bool:
        """Whether the member runs and leads the quorum."""
        return self.raft is not None and self.raft.elections.is_leader

    @property
    def is_active(self) -> bool:
        """Whether the member runs and is the active leader."""
        return self.raft is not None and self.raft.elections.is_active

    def start(self) -> None:
        """Start on what the disk holds; raises `StorageError` if the member refuses to."""
        self.life += 1
        self._outbox, self._timers = [], Timers()
        self._armed_ms = None
        self._high_watermark = 0
        self._set_clock()
        self.listener = CheckingListener(self.node_id, self._history)
        raft = Raft(
            me=self.node_id,
            disk=self.disk,
            data_folder="data",
            bootstrap=self._bootstrap,
            settings=self._settings,
            timers=self._timers,
            outbox=self._outbox,
            rng=Random(self.world.rng.getrandbits(64)),
            listener=self.listener,
            ask=self._ask,
        )
        raft.open()
        self.raft = raft
        self.world.note(f"node {self.node_id}", f"starts its life {self.life}")
        raft.start()
        self._after_event()

    def kill(self, *, power_cut: bool) -> None:
        """Kill the member; a power cut also loses unsynced data."""
        how = "loses power" if power_cut else "is killed"
        self.world.note(f"node {self.node_id}", how)
        self.life += 1
        self.raft = None
        if power_cut:
            self.disk.power_cut(self.world.rng)

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        self.world.note(f"node {self.node_id}", "loses its disk")
        assert self.raft is None
        self.disk = MemoryDisk()

    def run_event(self, life: int, callback: Callable[[], object]) -> None:
        """Run an event of the member, unless it was restarted since."""
        if self.raft is None or life != self.life:
            return
        self._set_clock()
        callback()
        if life == self.life:
            self._after_event()

    def receive(self, request: Message, reply: Callable[[Any], None]) -> None:
        """Handle one request of another node."""

        def handle() -> None:
            try:
                answer = getattr(self.raft, HANDLERS[type(request).__name__])(request)
            except (OSError, StorageError):
                return  # the member halted, or the disk refused a write
            if isinstance(answer, Pending):
                answer.when_done(reply)
            else:
                reply(answer)

        self.run_event(self.life, handle)
        if isinstance(request, VoteRequest):
            self.on_vote()

    def damage_snapshot(self) -> bool:
        """Flip a bit of the newest snapshot, if there is one."""
        folder = f"data/{FOLDER}"
        names = [name for name in self.disk.list(folder) if name.endswith(SUFFIX)]
        if not names:
            return False
        path = f"{folder}/{names[-1]}"
        self.disk.flip(path, self.world.rng.randrange(self.disk.size(path) * 8))
        self.world.note(f"node {self.node_id}", f"has a bit flipped in {names[-1]}")
        return True

    def _set_clock(self) -> None:
        self._timers.now_ms = self.world.now_ms
        self._timers.wall_ms = START_MS + self.world.now_ms

    def _ask(
        self,
        address: Address,
        request: Message,
        timeout_ms: int,
        done: Callable[[Any | None], None],
    ) -> None:
        life = self.life
        target = address.port - PORT
        self._network.ask(
            (self.node_id, target),
            request,
            timeout_ms,
            lambda answer: self.run_event(life, lambda: done(answer)),
        )

    def _after_event(self) -> None:
        while self._outbox:
            effects = self._outbox[:]
            self._outbox.clear()
            for effect in effects:
                self._carry_out(effect)
        self._check()
        next_ms = self._timers.next_ms
        if next_ms is not None and (self._armed_ms is None or next_ms < self._armed_ms):
            self._arm(next_ms)

    def _check(self) -> None:
        raft = self.raft
        assert raft is not None
        if raft.elections.is_leader:
            self._history.leads(self.node_id, raft.elections.epoch)
        if raft.high_watermark < self._high_watermark:
            raise InvariantError(f"the high watermark of {self.node_id} went back")
        if raft.end_offset < raft.high_watermark:
            raise InvariantError(f"{self.node_id} truncated its log below its high watermark")
        self._high_watermark = raft.high_watermark

    def _arm(self, next_ms: int) -> None:
        self._armed_ms, life = next_ms, self.life

        def fire() -> None:
            if life == self.life and self._armed_ms == next_ms:
                self._armed_ms = None
                self.run_event(life, self._timers.fire)

        self.world.after(next_ms - self.world.now_ms, fire)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Flush():
                self._sync(effect)
            case MakeDurable():
                self._make_durable(effect)
            case Remove():
                self.world.after(effect.delay_ms, lambda: self._remove(effect))
            case Notice():
                self.world.note(f"node {self.node_id}", f"{effect.event} {effect.facts}")
            case _:
                raise InvariantError(f"unexpected effect: {effect}")

    def _sync(self, flush: Flush) -> None:
        rng, life = self.world.rng, self.life
        duration_ms = rng.randint(0, self.sync_ms_max)
        synced_after_ms = rng.randint(0, duration_ms)

        def sync() -> None:
            if life == self.life:
                carry_out(self.disk, flush.task)
                self.world.after(
                    duration_ms - synced_after_ms, lambda: self.run_event(life, flush.done)
                )

        self.world.after(synced_after_ms, sync)

    def _make_durable(self, effect: MakeDurable) -> None:
        """Sync at one moment, and report it later; a power cut may come before or in between."""
        rng, life = self.world.rng, self.life

        def sync() -> None:
            if life == self.life:
                effect.sync.carry_out(self.disk)
                later_ms = rng.randint(0, self.sync_ms_max)
                self.world.after(later_ms, lambda: self.run_event(life, effect.done))

        self.world.after(rng.randint(0, self.sync_ms_max), sync)

    def _remove(self, effect: Remove) -> None:
        for path in effect.paths:
            self.disk.remove(path)
