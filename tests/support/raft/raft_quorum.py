"""A few members of a quorum that talk to each other over a perfect network, for tests.

    quorum = RaftQuorum(3)
    leader = quorum.elect()

`settle` answers requests in the order they were sent, and carries out syncs at once. Nodes in
`isolated` neither send nor receive.
"""

from barnabas.model.pending import Pending
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.raft.raft_host import HANDLERS
from tests.support.raft.raft_member import Asked, RaftMember

ROUNDS_MAX = 1_000


class RaftQuorum:
    """Members by id; the settings name the first `count` of them as voters."""

    def __init__(self, count: int, *, spares: int = 0, snapshot_after: int = 20_000) -> None:
        self.count = count
        self.snapshot_after = snapshot_after
        self.isolated: set[int] = set()
        self.members: dict[int, RaftMember] = {}
        for node_id in range(1, count + spares + 1):
            self.restart(node_id)

    def restart(self, node_id: int, *, wiped: bool = False) -> RaftMember:
        """Restart a node on its disk."""
        old = self.members.get(node_id)
        disk = MemoryDisk() if old is None or wiped else old.disk
        seed = 1 if old is None else old.seed + 1
        member = RaftMember(
            node_id, count=self.count, disk=disk, snapshot_after=self.snapshot_after, seed=seed
        )
        member.timers.now_ms = member.timers.wall_ms = self.now_ms
        self.members[node_id] = member
        return member.start()

    @property
    def now_ms(self) -> int:
        """The time, which is the same on all clocks."""
        return max((member.timers.now_ms for member in self.members.values()), default=0)

    @property
    def leader(self) -> RaftMember | None:
        """The active leader of the latest epoch."""
        listener = [member for n, member in self.members.items() if n not in self.isolated]
        active = [member for member in listener if member.raft.elections.is_active]
        return max(active, key=lambda member: member.raft.elections.epoch, default=None)

    def elect(self) -> RaftMember:
        """Let time pass until a leader is elected."""
        for _ in range(ROUNDS_MAX):
            self.pass_time(20)
            if self.leader is not None:
                return self.leader
        raise AssertionError("no leader was elected")

    def pass_time(self, milliseconds: int, step_ms: int = 20) -> None:
        """Let time pass for all members."""
        for _ in range(0, milliseconds, step_ms):
            for member in self.members.values():
                member.pass_time(step_ms)
            self.settle()

    def settle(self) -> None:
        """Sync and deliver messages until no member has anything to do before more time passes."""
        for _ in range(ROUNDS_MAX):
            busy = False
            for node_id, member in list(self.members.items()):
                member.sync()
                sent, member.sent = member.sent, []
                for asked in sent:
                    busy = True
                    self._deliver(node_id, asked)
            if not busy:
                return
        raise AssertionError("the members never stop sending")

    def _deliver(self, sender: int, asked: Asked) -> None:
        def answered(response: Message) -> None:
            reached = not {sender, asked.node_id} & self.isolated
            asked.answer(_over_the_wire(response) if reached else None)

        if {sender, asked.node_id} & self.isolated:
            asked.answer(None)
            return
        target = self.members[asked.node_id].raft
        request = _over_the_wire(asked.request)
        answer = getattr(target, HANDLERS[type(request).__name__])(request)
        if isinstance(answer, Pending):
            answer.when_done(answered)
        else:
            answered(answer)


def _over_the_wire(message: Message) -> Message:
    cls, version = type(message), message.VERSIONS[1]
    return decode_exact(cls, version, encoder(cls, version)(message))
