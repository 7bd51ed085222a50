"""Many slow senders of large frames: the memory stays below its limit, and everyone is served.

The connections are the server's own, on sockets in memory. The script decides who sends how much
and when, who hangs up, who reads slowly and who must pause for its quota.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from struct import Struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.model.settings import BrokerSettings, PerformanceSettings, Settings
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import AcceptedConnection
from barnabas.sim.edge import Limits, SimServer, Wire
from barnabas.sim.frames import frame_of
from barnabas.sim.memory_disk import MemoryDisk
from tests.support.talk.edge import Edge

KIB = 1024
API_VERSIONS, PRODUCE = 18, 0
_LENGTH = Struct(">i")


def unknown_topic(number: int, size: int) -> bytes:
    """Return a Produce request for a topic that does not exist: it is answered and leaves nothing.

    By hand, since its records are no batch and need not be one.
    """
    body = b"\xff\xff" + b"\xff\xff" + b"\0\0\x10\0" + b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x01"
    body += b"\0\0\0\0" + _LENGTH.pack(size) + bytes(size)
    frame = frame_of(PRODUCE, 3, number, "slow", body)
    return _LENGTH.pack(len(frame)) + frame


class Sender:
    """A client that sends its frames in pieces, one piece for each call."""

    def __init__(self, senders: "Senders", content: bytes, *, slow: bool, peer: bool) -> None:
        self.content = memoryview(content)
        self.answers = 0
        self.is_slow = slow
        self.wire = Wire(self._answered, self._room)
        self.connection: Connection = senders.server.accept(self.wire, "client", peer=peer)

    @property
    def is_done(self) -> bool:
        """Whether everything was sent."""
        return not self.content

    def _answered(self, answer: bytes) -> None:
        del answer
        self.answers += 1

    def _room(self) -> int:
        return 3 if self.is_slow else 1 << 20


class Senders:
    """A broker with a limit, and its clients."""

    def __init__(self, limit_bytes: int, receive_bytes: int, quota: int = 0) -> None:
        quotas = PerformanceSettings(producer_quota_bytes_per_second=quota)
        own = Settings(broker=BrokerSettings(data_dir="data"), performance=quotas)
        self.edge = Edge(MemoryDisk(), own).start()
        self._queue: deque[Callable[[], None]] = deque()
        self.problems: list[str | Exception] = []
        limits = Limits(receive_bytes=receive_bytes, buffered_bytes=limit_bytes)
        self.server = SimServer(self.edge.node, limits, self._queue.append, self._problem)
        self.most_bytes = 0
        self.all: list[Sender] = []

    def add(self, content: bytes, *, slow: bool = False, peer: bool = False) -> Sender:
        """Connect one more."""
        sender = Sender(self, content, slow=slow, peer=peer)
        self.all.append(sender)
        return sender

    def send(self, sender: Sender, size: int) -> None:
        """Have some bytes arrive."""
        piece, sender.content = sender.content[:size], sender.content[size:]
        sender.wire.arrive(piece)
        self.server.readable(sender.connection)
        self.settle()

    def hang_up(self, sender: Sender) -> None:
        """Have a client close its connection."""
        sender.connection.close()
        sender.content = sender.content[:0]
        self.settle()

    def pass_time(self, duration_ms: int) -> None:
        """Let pauses end."""
        self.edge.pass_time(duration_ms)
        self.settle()

    def settle(self) -> None:
        """Run the events that are due."""
        for _ in range(100_000):
            self.edge.settle()
            self.server.flush()
            self.most_bytes = max(self.most_bytes, self.held_bytes)
            assert self.server.memory.used_bytes >= self.held_bytes
            if not self._queue:
                return
            self._queue.popleft()()
        raise AssertionError("the events do not end")

    @property
    def held_bytes(self) -> int:
        """What the connections of clients hold, counted by what they refer to."""
        held = 0
        for sender in self.all:
            connection = sender.connection
            if connection.peer or connection.closed:
                continue
            frame, backlog = connection._frame, connection._backlog
            if frame is not None and frame.size > 6:
                held += min(frame.size, len(frame.buffer))
            held += 0 if backlog is None else len(backlog)
        return held

    def _problem(self, connection: AcceptedConnection, problem: str | Exception) -> None:
        del connection
        self.problems.append(problem)


def test_two_hundred_slow_senders() -> None:
    limit_bytes, size = 8 << 20, 1 << 20
    senders = Senders(limit_bytes, 256 * KIB)
    content = unknown_topic(1, size)
    for _ in range(200):
        senders.add(content)
    rng = Random(1)
    most_used = 0
    while unfinished := [sender for sender in senders.all if not sender.is_done]:
        for sender in rng.sample(unfinished, len(unfinished)):
            senders.send(sender, 128 * KIB)
            most_used = max(most_used, senders.server.memory.used_bytes)
    senders.settle()
    assert [sender.answers for sender in senders.all] == [1] * 200
    assert most_used <= limit_bytes
    assert senders.most_bytes > limit_bytes // 2, "the limit was put to the test"
    assert senders.problems == []
    assert senders.server.memory.used_bytes == senders.server.memory.waiting == 0


frames = st.lists(st.integers(0, 40_000), min_size=1, max_size=3)
clients = st.lists(
    st.tuples(frames, st.sampled_from(["", "", "", "slow reader", "peer"])), min_size=2, max_size=12
)
steps = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.sampled_from(["send"] * 8 + ["hang up", "pass time"]),
        st.integers(1, 30_000),
    ),
    max_size=120,
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(clients, steps, st.sampled_from([200, 4_096, 65_536]), st.sampled_from([0, 1_000]))
def test_everyone_is_served_whatever_happens(
    kinds: list[tuple[list[int], str]],
    script: list[tuple[int, str, int]],
    receive_bytes: int,
    quota: int,
) -> None:
    limit_bytes = 60_000
    senders = Senders(limit_bytes, receive_bytes, quota)
    for number, (sizes, kind) in enumerate(kinds):
        content = b"".join(unknown_topic(number, size) for size in sizes)
        senders.add(content, slow=kind == "slow reader", peer=kind == "peer")
    gone = set()
    for index, action, amount in script:
        sender = senders.all[index % len(kinds)]
        if id(sender) in gone:
            continue
        if action == "send":
            senders.send(sender, amount)
        elif action == "pass time":
            senders.pass_time(amount)
        else:
            gone.add(id(sender))
            senders.hang_up(sender)
        # One frame more may begin if no other is being read; what a read brought is kept.
        assert senders.held_bytes <= limit_bytes + 40_100 + receive_bytes
    for _ in range(4):
        for sender in senders.all:
            if id(sender) not in gone:
                senders.send(sender, 1 << 20)
    for _ in range(40 if quota else 0):
        senders.pass_time(600_000)
    answers = [sender.answers for sender in senders.all if id(sender) not in gone]
    left = [
        len(sizes)
        for sender, (sizes, _) in zip(senders.all, kinds, strict=True)
        if id(sender) not in gone
    ]
    assert answers == left
    assert senders.problems == []
    assert senders.server.memory.used_bytes == senders.server.memory.waiting == 0


@pytest.mark.parametrize("limit_bytes", [0, 1 << 20])
def test_a_frame_larger_than_the_limit_is_served_alone(limit_bytes: int) -> None:
    senders = Senders(limit_bytes, 64 * KIB)
    large, small = senders.add(unknown_topic(1, 3 << 20)), senders.add(unknown_topic(2, 300 * KIB))
    senders.send(small, 100 * KIB)
    senders.send(large, 100 * KIB)
    assert senders.server.memory.waiting == (1 if limit_bytes else 0)
    senders.send(small, 1 << 20)
    senders.send(large, 4 << 20)
    assert (small.answers, large.answers) == (1, 1)


def test_what_was_announced_and_never_sent_is_given_back() -> None:
    senders = Senders(1 << 20, 64 * KIB)
    idle, waiting = (
        senders.add(unknown_topic(1, 900 * KIB)),
        senders.add(unknown_topic(2, 900 * KIB)),
    )
    senders.send(idle, 10)
    senders.send(waiting, 1 << 20)
    assert (waiting.answers, senders.server.memory.waiting) == (0, 1)
    assert waiting.connection.is_muted, "the client has not stalled: the broker does not read"
    senders.hang_up(idle)
    assert waiting.answers == 1


def test_other_brokers_do_not_wait() -> None:
    senders = Senders(1 << 20, 64 * KIB)
    senders.send(senders.add(unknown_topic(1, 1 << 20)), 100)
    peer = senders.add(unknown_topic(2, 900 * KIB), peer=True)
    senders.send(peer, 1 << 20)
    assert peer.answers == 1


def test_a_client_that_must_pause_does_not_stop_others() -> None:
    """Its frame is not read on, and holds its memory; another one begins nevertheless."""
    senders = Senders(1 << 20, 64 * KIB)
    paused = senders.add(unknown_topic(1, 900 * KIB))
    other = senders.add(unknown_topic(2, 900 * KIB))
    senders.send(paused, 1_000)
    paused.connection.mute(5_000)
    senders.send(other, 1 << 20)
    assert other.answers == 1
    senders.send(paused, 1 << 20)
    assert paused.answers == 0
    senders.pass_time(5_000)
    assert paused.answers == 1
    assert senders.server.memory.used_bytes == 0


def test_a_client_that_must_pause_as_its_turn_comes_does_not_stop_others() -> None:
    senders = Senders(1 << 20, 64 * KIB)
    first, second, third = (senders.add(unknown_topic(n, 900 * KIB)) for n in range(3))
    senders.send(first, 1_000)
    for sender in (second, third):
        senders.send(sender, 1_000)
    second.connection.mute(5_000)
    senders.send(first, 1 << 20)
    senders.send(third, 1 << 20)
    assert (first.answers, second.answers, third.answers) == (1, 0, 1)
    senders.pass_time(5_000)
    senders.send(second, 1 << 20)
    assert second.answers == 1
    assert senders.server.memory.used_bytes == 0


def test_a_client_that_hangs_up_while_it_waits_leaves_nothing() -> None:
    senders = Senders(1 << 20, 64 * KIB)
    first, second, third = (senders.add(unknown_topic(n, 900 * KIB)) for n in range(3))
    for sender in (first, second, third):
        senders.send(sender, 1_000)
    senders.hang_up(second)
    senders.send(first, 1 << 20)
    senders.send(third, 1 << 20)
    assert (first.answers, third.answers) == (1, 1)
    assert senders.server.memory.used_bytes == senders.server.memory.waiting == 0
