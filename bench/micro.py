"""Measures the CPU microseconds that the broker itself spends on a request.

Most rows do not use sockets. "As an event" covers everything, from the event loop's call to the
response in the socket, with a pair of sockets in place of TCP; both of its ends count.

    python -m bench.micro

It uses CPU time, so that a busy machine affects it little. The figures are for comparing a change
with the code before it only.
"""

import asyncio
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from random import Random

from barnabas import config
from barnabas.effects import Flush, MakeDurable, Scan
from barnabas.handlers.registry import dispatch
from barnabas.handlers.shapes import Shapes
from barnabas.model.callers import unauthenticated
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.model.steps import finish
from barnabas.node.node import Node
from barnabas.protocol.apis import APIS, KEYS
from barnabas.protocol.codec import encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, build
from barnabas.server.connection import Connection
from barnabas.server.files.disk import OsDisk
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.server import Server
from barnabas.server.transport import PlainTransport

CALLER = unauthenticated("127.0.0.1")
ROUNDS = 20_000
NOW_MS = time.time_ns() // 1_000_000


def frame(version: int, request: Message) -> bytearray:
    """Return a request in its wire format without the length."""
    api_key = KEYS[type(request).__name__]
    head = bytearray()
    for value, size in ((api_key, 2), (version, 2), (7, 4), (5, 2)):
        head += value.to_bytes(size, "big")
    head += b"bench"
    if version >= APIS[api_key].flexible_from:
        head.append(0)
    return head + encoder(type(request), version)(request)


class Bench:
    """A node on a temporary folder."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="barnabas-micro-")
        flags = {"broker.data_dir": self.folder, "storage.flush": "interval"}
        settings = config.load(None, {}, flags)
        self.node = Node(settings, OsDisk(), Random(1))
        self.node.start(NOW_MS)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder)

    def ask(self, content: bytearray) -> list[Chunk] | None:
        """Send one frame; carry out syncs and long work at once."""
        answer, _ = dispatch(self.node, memoryview(content), CALLER, NOW_MS)
        if self.node.outbox:
            self._carry_out()
        if isinstance(answer, Pending):
            got: list[list[Chunk]] = []
            answer.when_done(got.append)
            return got[0] if got else None
        return answer

    def _carry_out(self) -> None:
        while self.node.outbox:
            effects = list(self.node.outbox)
            self.node.outbox.clear()
            for effect in effects:
                if isinstance(effect, Flush | MakeDurable):
                    effect.done()
                elif isinstance(effect, Scan):
                    finish(effect.steps)

    def create(self, name: str, partitions: int, flush_policy: str = "interval") -> bytes:
        """Create a topic, by default with Kafka's durability; return its id."""
        flush = CreatableTopicConfig(name="flush", value=flush_policy)
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=[flush]
        )
        self.ask(frame(5, CreateTopicsRequest(topics=[topic])))
        return bytes(self.node.image.topics[name].topic_id)


class Repeated:
    """A request that is repeated on the fast path."""

    def __init__(self, bench: Bench, content: bytearray) -> None:
        self.shapes = Shapes(bench.node).of(CALLER)
        self.view = memoryview(content)
        for _ in range(2):  # a commit takes the fast path from its second time on
            _, context = dispatch(bench.node, self.view, CALLER, NOW_MS, self.shapes)
        self.prefix_bytes = context.prefix_bytes

    def ask(self) -> object:
        """Send it once more."""
        return self.shapes.answer(self.view, self.prefix_bytes, NOW_MS)


class Wire:
    """A connection whose events are called directly, with the same request each time."""

    def __init__(self, bench: Bench, content: bytearray) -> None:
        self._server = Server(bench.node, asyncio.new_event_loop())
        self._client, accepted = socket.socketpair()
        accepted.setblocking(False)
        transport = PlainTransport(self._server, accepted)
        open_session = partial(KafkaSession, self._server)
        self._connection = Connection(self._server, transport, "127.0.0.1", open_session)
        self._request = len(content).to_bytes(4, "big") + content

    def ask(self) -> None:
        """Send it, handle it, read the response."""
        self._client.send(self._request)
        self._server.run_event(self._connection.on_readable)
        assert self._client.recv(4096)

    def close(self) -> None:
        """Close sockets and threads."""
        self._connection.close()
        self._client.close()
        self._server.driver.close()


def measure_event(bench: Bench, content: bytearray) -> None:
    """Print the CPU time of one request as an event."""
    wire = Wire(bench, content)
    measure("    as an event", wire.ask)
    wire.close()


def measure(title: str, action: Callable[[], object], rounds: int = ROUNDS) -> None:
    """Print the CPU time of one action."""
    for _ in range(rounds // 10):
        action()
    best = float("inf")
    for _ in range(5):
        before = time.process_time()
        for _ in range(rounds // 5):
            action()
        best = min(best, (time.process_time() - before) / (rounds // 5))
    print(f"{title:<44} {best * 1e6:8.2f} us")


def produce(topic: str, topic_id: bytes, version: int, count: int, size: int) -> bytearray:
    """Return a produce request with one batch."""
    records = [Record(n, NOW_MS, None, b"x" * size) for n in range(count)]
    batch = build(records)
    data = [PartitionProduceData(index=0, records=bytes(batch))]
    named = TopicProduceData(topic_id=topic_id) if version >= 13 else TopicProduceData(name=topic)
    named.partition_data = data
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[named])
    return frame(version, request)


def fetch(topic_id: bytes, offset: int, partitions: int, session: tuple[int, int]) -> bytearray:
    """Return a fetch request, version 17, in the form of the Java client."""
    wanted = [
        FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=1 << 20)
        for p in range(partitions)
    ]
    topics = [FetchTopic(topic_id=topic_id, partitions=wanted)] if wanted else []
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )
    return frame(17, request)


def commit(topic: str, partitions: int) -> bytearray:
    """Return an offset commit, version 9, in the form of the Java client."""
    positions = [
        OffsetCommitRequestPartition(
            partition_index=p, committed_offset=1_000_000 + p, committed_leader_epoch=3
        )
        for p in range(partitions)
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=positions)]
    return frame(9, OffsetCommitRequest(group_id="group", topics=topics))


def main() -> None:
    """Measure every path."""
    bench = Bench()
    try:
        small = bench.create("small", 1)
        many = bench.create("many", 100)
        for version in (7, 9, 13):
            one = produce("small", small, version, 1, 100)
            measure(f"produce v{version}, 1 record of 100 B", lambda f=one: bench.ask(f))  # type: ignore[misc]
            measure("    the same once more", Repeated(bench, one).ask)
            measure_event(bench, one)
        safe = produce("safe", bench.create("safe", 1, "ack"), 13, 1, 100)
        measure("produce v13, 1 record of 100 B, flush=ack", lambda: bench.ask(safe))
        big = produce("small", small, 13, 150, 100)
        measure("produce v13, 150 records of 100 B", lambda: bench.ask(big))
        none = fetch(small, 0, 1, (0, -1))
        measure("fetch v17, 1 partition, no session", lambda: bench.ask(none))
        wide = fetch(many, 0, 100, (0, -1))
        measure("fetch v17, 100 idle partitions, no session", lambda: bench.ask(wide), 2_000)
        bench.ask(frame(4, FindCoordinatorRequest(coordinator_keys=["group"])))
        for partitions in (1, 10):
            offsets = commit("many", partitions)
            title = f"offset commit v9, {partitions} partitions"
            measure(title, lambda f=offsets: bench.ask(f))  # type: ignore[misc]
            measure("    the same once more", Repeated(bench, offsets).ask)
            measure_event(bench, offsets)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
