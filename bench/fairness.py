"""Measures the latency of 50 polite clients while one greedy client sends as much as it can.

    python -m bench.fairness [--seconds 10]

A polite client sends a request every 50 ms and waits for the response: 20 produce, 20 fetch, 10
send heartbeats. A latency counts from when the request was due, so that a stall counts for all
requests that it delayed. They run alone, and then beside a client that does not wait for responses:

    list-offsets   46-byte ListOffsets requests, as many as the sockets take
    metadata       the same with Metadata of 1,000 partitions
    join           a JoinGroup that waits, and 1,000 Metadata requests behind it

The greedy client is a separate process. The memory is the broker's maximum (VmHWM).
"""

import argparse
import heapq
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.records import Record, build
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import LENGTH, RawClient, frame_of, framed

PRODUCERS, CONSUMERS, MEMBERS = 20, 20, 10
INTERVAL_S = 0.05
TOPICS, PARTITIONS = 100, 10
BLOCK_BYTES = 256 * 1024
SETTINGS = {
    "storage.flush": "interval",
    "groups.heartbeat_wait": 0,
    "groups.initial_rebalance_delay": 0,
}
Address = tuple[str, int]


def produce() -> bytes:
    """Return a request that appends one record."""
    content = bytes(build([Record(0, 1, None, bytes(100))]))
    data = [PartitionProduceData(index=0, records=content)]
    topic = TopicProduceData(name="t0", partition_data=data)
    return frame_of(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 9)


def fetch() -> bytes:
    """Return a request that reads one batch."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic="t0", partitions=[wanted])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[topic])
    return frame_of(request, 12)


def joining(group: str, member_id: str = "") -> JoinGroupRequest:
    """Return a request to become a member."""
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="bench",
        protocols=[JoinGroupRequestProtocol(name="p", metadata=b"")],
    )


def become_member(client: RawClient, group: str) -> JoinGroupResponse:
    """Become the only member of a group."""
    find = FindCoordinatorRequest(coordinator_keys=[group])
    client.ask(find, 4, FindCoordinatorResponse)
    joined = client.ask(joining(group), 3, JoinGroupResponse)
    assert joined.error_code == 0, joined.error_code
    sync = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    client.ask(sync, 3, SyncGroupResponse)
    return joined


def heartbeat(client: RawClient, group: str) -> bytes:
    """Join a group; return the heartbeat request of its member."""
    joined = become_member(client, group)
    request = HeartbeatRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return frame_of(request, 3)


class Polite:
    """A client that sends a request, waits for the response, and sends again when it is due."""

    def __init__(self, client: RawClient, request: bytes) -> None:
        self.client = client
        self.request = framed(request)
        self.due_s = 0.0
        self.received = bytearray()

    def ask(self) -> None:
        """Send the request."""
        self.client.send(self.request)

    def has_answer(self) -> bool:
        """Read received bytes; return whether the response is complete."""
        self.received += self.client.socket.recv(65536)
        if len(self.received) < LENGTH.size:
            return False
        if len(self.received) < LENGTH.size + LENGTH.unpack_from(self.received)[0]:
            return False
        self.received.clear()
        return True


class Polites:
    """All polite clients, on one thread."""

    def __init__(self, address: Address) -> None:
        self._selector = selectors.DefaultSelector()
        self._clients: list[Polite] = []
        for number in range(PRODUCERS + CONSUMERS + MEMBERS):
            client = RawClient(address)
            if number < PRODUCERS:
                request = produce()
            elif number < PRODUCERS + CONSUMERS:
                request = fetch()
            else:
                request = heartbeat(client, f"polite-{number}")
            polite = Polite(client, request)
            self._clients.append(polite)
            self._selector.register(client.socket, selectors.EVENT_READ, polite)

    def run(self, duration_s: float) -> list[float]:
        """Send requests for a while; return the sorted latencies in milliseconds."""
        start_s = time.monotonic()
        end_s = start_s + duration_s
        waits: list[float] = []
        due: list[tuple[float, int]] = []
        for number in range(len(self._clients)):
            heapq.heappush(due, (start_s + number * INTERVAL_S / len(self._clients), number))
        waiting = 0
        while due or waiting:
            now_s = time.monotonic()
            while due and due[0][0] <= now_s:
                due_s, number = heapq.heappop(due)
                if due_s < end_s:
                    self._clients[number].due_s = due_s
                    self._clients[number].ask()
                    waiting += 1
            patience_s = max(0.0, due[0][0] - now_s) if due else None
            if not due and not waiting:
                break
            for key, _ in self._selector.select(patience_s):
                polite: Polite = key.data
                if polite.has_answer():
                    waiting -= 1
                    waits.append((time.monotonic() - polite.due_s) * 1000)
                    next_s = polite.due_s + INTERVAL_S
                    heapq.heappush(due, (next_s, self._clients.index(polite)))
        return sorted(waits)


# --- the greedy client ---


def drain(client: RawClient) -> None:
    """Read responses as fast as they come."""
    while client.socket.recv(1 << 20):
        pass


def flood(address: Address, request: Message, version: int) -> None:
    """Send one request repeatedly, without waiting."""
    client = RawClient(address, 3600)
    one = framed(frame_of(request, version))
    block = one * (BLOCK_BYTES // len(one))
    threading.Thread(target=drain, args=(client,), daemon=True).start()
    while True:
        client.send(block)


def list_offsets(address: Address) -> None:
    """Return a ListOffsets request of 46 bytes."""
    topic = ListOffsetsTopic(
        name="t0", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    flood(address, ListOffsetsRequest(replica_id=-1, topics=[topic]), 1)


def metadata(address: Address) -> None:
    """Return a Metadata request for all topics."""
    flood(address, MetadataRequest(topics=None), 9)


def join(address: Address) -> None:
    """Return a JoinGroup request that waits for the other member, and Metadata requests."""
    first, second = RawClient(address, 3600), RawClient(address, 3600)
    become_member(first, "greedy")
    listing = framed(frame_of(MetadataRequest(topics=None), 9))
    second.send(framed(frame_of(joining("greedy"), 3)) + listing * 1_000)
    signal.pause()


GREEDY: dict[str, Callable[[Address], None]] = {
    "list-offsets": list_offsets,
    "metadata": metadata,
    "join": join,
}


@contextmanager
def greedy_client(kind: str, address: Address) -> Iterator[None]:
    """Run one greedy client in a separate process."""
    command = [sys.executable, "-m", "bench.fairness", "--greedy", kind, "--port", str(address[1])]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


# --- the figures ---


def prepare(address: Address) -> None:
    """Create the topics."""
    with RawClient(address) as client:
        for number in range(TOPICS):
            topic = CreatableTopic(
                name=f"t{number}", num_partitions=PARTITIONS, replication_factor=1
            )
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            client.ask(request, 5, CreateTopicsResponse)


def most_memory_mb(broker: BrokerSubprocess) -> float:
    """Return the broker's maximum memory."""
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(kind: str, seconds: float) -> None:
    """Print a line about one kind of greedy client, on a fresh broker."""
    with (
        tempfile.TemporaryDirectory(prefix="fairness-") as folder,
        BrokerSubprocess(folder, settings=SETTINGS) as broker,
    ):
        prepare(broker.address)
        polites = Polites(broker.address)
        polites.run(1)
        before_mb = most_memory_mb(broker)
        if kind == "alone":
            waits = polites.run(seconds)
        else:
            with greedy_client(kind, broker.address):
                waits = polites.run(seconds)
        grown_mb = most_memory_mb(broker) - before_mb
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(
        f"{kind:<14} {len(waits):>8} {p50:>9.2f} {p99:>9.2f} {waits[-1]:>9.2f} {grown_mb:>10.1f}",
        flush=True,
    )


def main() -> None:
    """Measure every kind of greedy client, or act as one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", choices=["alone", *GREEDY], action="append")
    parser.add_argument("--greedy", choices=GREEDY)
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    if options.greedy:
        GREEDY[options.greedy](("127.0.0.1", options.port))
        return
    print(
        f"{'beside':<14} {'answers':>8} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'MB more':>10}"
    )
    for kind in options.only or ["alone", *GREEDY]:
        measure(kind, options.seconds)


if __name__ == "__main__":
    main()
