"""One member of a metadata quorum for dialogues: a test catches its requests and answers them.

    member = RaftMember(1, count=3).start()
    member.pass_time(2_000)
    for asked in member.asked(VoteRequest): ...

Nothing happens by itself: time passes in `pass_time`, and syncs are done in `sync`.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

from barnabas.effects import Address, Effect, Flush, MakeDurable, Notice
from barnabas.model.ids import NodeId
from barnabas.model.settings import ClusterSettings
from barnabas.model.timers import Timers
from barnabas.protocol.message import Message
from barnabas.raft.metadata_snapshots import Pair
from barnabas.raft.raft_machine import Raft
from barnabas.raft.voters import NO_DIRECTORY, Voter
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.flush import carry_out

M = TypeVar("M", bound=Message)

PORT = 9000
DATA = "data"


def voters(count: int) -> list[Voter]:
    """Return voters in the format of the settings."""
    return [Voter(NodeId(n), NO_DIRECTORY, Address("h", PORT + n)) for n in range(1, count + 1)]


class RecordingListener:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.records: list[Pair] = []
        self.events: list[str] = []
        self.end_offset = 0

    def load_snapshot(self, records: Iterable[Pair]) -> None:
        """Clear the records and load a snapshot."""
        self.records = list(records)
        self.events.append("snapshot")

    def committed(self, records: Sequence[Pair], end_offset: int) -> None:
        """Record a batch."""
        self.records += records
        self.end_offset = end_offset

    def became_active(self, epoch: int) -> None:
        """Record the call."""
        self.events.append(f"active {epoch}")

    def resigned(self) -> None:
        """Record the call."""
        self.events.append("resigned")

    def leader_changed(self) -> None:
        """Record the call."""
        self.events.append("leader changed")

    def snapshot(self) -> Iterable[Pair]:
        """Return all records as the snapshot."""
        return list(self.records)


class Asked:
    """A pending request."""

    def __init__(self, node_id: int, request: Message, done: Callable[[Any | None], None]) -> None:
        self.node_id = node_id
        self.request: Any = request
        self.answer = done


class RaftMember:
    """A member, its disk and its environment, which a test controls."""

    def __init__(
        self,
        node_id: int = 1,
        *,
        count: int = 3,
        disk: MemoryDisk | None = None,
        snapshot_after: int = 20_000,
        seed: int = 1,
    ) -> None:
        self.node_id = NodeId(node_id)
        self.disk = disk or MemoryDisk()
        self.seed = seed
        self.timers = Timers()
        self.outbox: list[Effect] = []
        self.listener = RecordingListener()
        self.sent: list[Asked] = []
        settings = ClusterSettings(
            host="h",
            port=PORT + node_id,
            election_timeout_ms=1_000,
            fetch_timeout_ms=1_000,
            snapshot_after_records=snapshot_after,
        )
        self.raft = Raft(
            me=self.node_id,
            disk=self.disk,
            data_folder=DATA,
            bootstrap=voters(count),
            settings=settings,
            timers=self.timers,
            outbox=self.outbox,
            rng=Random(seed + node_id),
            listener=self.listener,
            ask=self._ask,
        )

    def start(self) -> "RaftMember":
        """Open the member and start it."""
        self.raft.open()
        self.raft.start()
        return self

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and fire the timers that are due."""
        end = self.timers.now_ms + milliseconds
        while (due := self.timers.next_ms) is not None and due <= end:
            self.timers.now_ms = self.timers.wall_ms = due
            self.timers.fire()
        self.timers.now_ms = self.timers.wall_ms = end

    def asked(self, cls: type[M]) -> list[Asked]:
        """Return the requests of a kind that were sent since the last call."""
        found = [asked for asked in self.sent if isinstance(asked.request, cls)]
        self.sent = [asked for asked in self.sent if not isinstance(asked.request, cls)]
        return found

    def sync(self) -> None:
        """Carry out the requested syncs, and those that follow from them."""
        while syncs := [each for each in self.outbox if isinstance(each, Flush | MakeDurable)]:
            self.outbox[:] = [each for each in self.outbox if each not in syncs]
            for effect in syncs:
                if isinstance(effect, Flush):
                    carry_out(self.disk, effect.task)
                else:
                    effect.sync.carry_out(self.disk)
                effect.done()

    def notices(self) -> list[str]:
        """Return the log events."""
        return [effect.event for effect in self.outbox if isinstance(effect, Notice)]

    def _ask(
        self,
        address: Address,
        request: Message,
        timeout_ms: int,
        done: Callable[[Any | None], None],
    ) -> None:
        del timeout_ms
        self.sent.append(Asked(address.port - PORT, request, done))
