"""Measures what metrics cost a broker, as ratios within one run, and how long a scrape holds it up.

    python -m bench.metering            # about fifteen seconds
    python -m bench.metering --json

A request is an event as in `bench.micro`: a broker in this process, and a pair of sockets in place
of TCP. The two brokers, one with metrics and one without, take turns many times, so a change of the
processor's speed meets both. The figure is the median of the ratios of their turns.

A scrape a second is the time of the loop that one scrape takes, as a share of a second. The stall
is the longest event of the loop while 10,000 partitions are scraped over HTTP.
"""

import argparse
import asyncio
import json
import shutil
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from barnabas import config
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.server.connection import Connection
from barnabas.server.files.disk import OsDisk
from barnabas.server.http.operator_listener import metered_server
from barnabas.server.kafka_session import KafkaSession
from barnabas.server.metered_session import MeteredSession
from barnabas.server.metrics.metered_server import MeteredServer
from barnabas.server.server import Server
from barnabas.server.transport import PlainTransport
from barnabas.testing.broker import Broker
from barnabas.testing.raw_client import RawClient
from bench.micro import NOW_MS, Bench, commit, fetch, frame, produce

TURNS = 41
TURN_S = 0.015
"""How long a turn takes about; the number of its requests follows from that."""
TRIED = 100
PATIENCE_S = 10.0
PARTITIONS = 10_000
TOPICS = 100
SCRAPES = 5
HTTP = {"observability.http_listen": "127.0.0.1:0"}


class Metered(Bench):
    """A node that may count what it does."""

    def __init__(self, *, is_metered: bool) -> None:
        self.is_metered = is_metered
        self.folder = tempfile.mkdtemp(prefix="barnabas-metering-")
        flags: dict[str, object] = {"broker.data_dir": self.folder, "storage.flush": "interval"}
        settings = config.load(None, {}, flags | (HTTP if is_metered else {}))
        self.node = Node(settings, OsDisk(), Random(1), is_metered=is_metered)
        self.node.start(NOW_MS)
        loop = asyncio.new_event_loop()
        self.server = metered_server(self.node, loop) if is_metered else Server(self.node, loop)

    def connection(self, content: bytearray) -> "Wire":
        """Return a connection that sends the same request again and again."""
        return Wire(self.server, content)

    def close(self) -> None:
        """Remove everything."""
        self.server.driver.close()
        self.server.loop.close()
        shutil.rmtree(self.folder)


class Wire:
    """A connection whose events are called directly."""

    def __init__(self, server: Server, content: bytearray) -> None:
        self._server = server
        self._client, accepted = socket.socketpair()
        self._client.settimeout(PATIENCE_S)
        accepted.setblocking(False)
        transport = PlainTransport(server, accepted)
        session: Callable[[Connection], KafkaSession] = partial(KafkaSession, server)
        if isinstance(server, MeteredServer):
            session = partial(MeteredSession, server.meters, server)
        self._connection = Connection(server, transport, "127.0.0.1", session)
        self._request = len(content).to_bytes(4, "big") + content

    def ask(self) -> None:
        """Send the request, handle it, read the response."""
        self._client.send(self._request)
        self._server.run_event(self._connection.on_readable)
        assert self._client.recv(1 << 20)  # the whole response: it is small enough for one send

    def turn(self, rounds: int) -> float:
        """Return the CPU seconds of some requests."""
        before = time.process_time()
        for _ in range(rounds):
            self.ask()
        return time.process_time() - before

    def close(self) -> None:
        """Close the sockets."""
        self._connection.close()
        self._client.close()


class Figure(NamedTuple):
    """One row."""

    name: str
    without_us: float
    ratio: float


def ratio(name: str, plain: Wire, metered: Wire) -> Figure:
    """Have two brokers take turns."""
    metered.turn(TRIED)
    rounds = max(TRIED // 10, int(TURN_S * TRIED / plain.turn(TRIED)))
    ratios, times = [], []
    for number in range(TURNS):
        pair = (plain, metered) if number % 2 else (metered, plain)
        found = {id(wire): wire.turn(rounds) for wire in pair}
        times.append(found[id(plain)])
        ratios.append(found[id(metered)] / found[id(plain)])
    for wire in (plain, metered):
        wire.close()
    return Figure(name, statistics.median(times) / rounds * 1e6, statistics.median(ratios))


def requests() -> list[Figure]:
    """Measure requests of three kinds with and without metrics."""
    brokers = [Metered(is_metered=False), Metered(is_metered=True)]
    try:
        made: list[list[tuple[str, bytearray]]] = []
        for broker in brokers:
            small, many = broker.create("small", 1), broker.create("many", 100)
            stored = broker.create("stored", 1)
            broker.ask(produce("stored", stored, 13, 150, 100))
            broker.ask(frame(4, FindCoordinatorRequest(coordinator_keys=["group"])))
            made.append(
                [
                    ("produce v13, 1 record of 100 B", produce("small", small, 13, 1, 100)),
                    ("produce v13, 150 records of 100 B", produce("small", small, 13, 150, 100)),
                    ("fetch v17, 1 partition, 16 KB", fetch(stored, 0, 1, (0, -1))),
                    ("fetch v17, 100 idle partitions", fetch(many, 0, 100, (0, -1))),
                    ("offset commit v9, 10 partitions", commit("many", 10)),
                ]
            )
        pairs = zip(*made, strict=True)
        return [
            ratio(name, *(b.connection(c) for b, c in zip(brokers, (one, other), strict=True)))
            for (name, one), (_, other) in pairs
        ]
    finally:
        for broker in brokers:
            broker.close()


class Scrapes(NamedTuple):
    """What scrapes cost a broker with very many partitions."""

    loop_ms: float
    """The time of the event loop that one scrape takes."""
    stall_ms: float
    """The longest event of the loop meanwhile."""
    stall_cpu_ms: float
    """The most processor time of one event: a busy machine lengthens the first alone."""
    wall_ms: float
    """From the request to the last byte."""
    size: int


def scrapes(path: str) -> Scrapes:
    """Scrape a broker with 10,000 partitions, which share one log."""
    settings = {**HTTP, "observability.partition_series_max": PARTITIONS}
    with Broker(settings=settings) as broker:
        assert broker._process is not None
        server = broker._process.server
        assert isinstance(server, MeteredServer)
        host, _, port = broker.bootstrap.rpartition(":")
        with RawClient((host, int(port))) as client:  # which makes a topic
            client.ask(
                MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12, MetadataResponse
            )
        _on_loop(server, lambda: _add_partitions(server.node))
        address, walls, size = broker.http_address, [], 0
        assert address is not None
        _read(address, path)
        longest = [0.0]
        _on_loop(server, lambda: _reset(server, longest))
        for _ in range(SCRAPES):
            started = time.perf_counter()
            size = len(_read(address, path))
            walls.append(time.perf_counter() - started)
        busy_ms = server.busy_ns / SCRAPES / 1e6
        stall_ms = server.longest_event_s * 1000
        _on_loop(server, lambda: _remove_partitions(server.node))
    return Scrapes(busy_ms, stall_ms, longest[0] * 1000, statistics.median(walls) * 1000, size)


def _on_loop(server: Server, action: Callable[[], None]) -> None:
    done = threading.Event()

    def act() -> None:
        try:
            action()
        finally:
            done.set()

    server.loop.call_soon_threadsafe(act)
    done.wait()


def _add_partitions(node: Node) -> None:
    found = next(iter(node.partitions.values()))
    for number in range(PARTITIONS):
        name = TopicPartition(f"topic-{number % TOPICS}", number // TOPICS)
        made = Partition(
            name, TopicId(bytes(16)), found.log, found.config, node.outbox, node.commits
        )
        made.placed, made.leads = found.placed, True
        node.partitions[name] = made


def _remove_partitions(node: Node) -> None:
    for name in [name for name in node.partitions if name.topic.startswith("topic-")]:
        del node.partitions[name]


def _reset(server: MeteredServer, longest: list[float]) -> None:
    """Begin to measure; have the longest turn of a connection noted in processor time."""
    server.busy_ns, server._longest_ns = 0, [0, 0]
    run_event = server.run_event

    def timed(callback: Callable[..., None], *arguments: object) -> None:
        before = time.thread_time()
        run_event(callback, *arguments)
        longest[0] = max(longest[0], time.thread_time() - before)

    setattr(server, "run_event", timed)  # noqa: B010 - a method of one object


def _read(address: tuple[str, int], path: str) -> bytes:
    with socket.create_connection(address) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        parts = []
        while part := client.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description="Measures what metrics cost a broker.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures, found = requests(), scrapes("/metrics")
    if options.json:
        rows = [each._asdict() for each in figures]
        print(json.dumps({"requests": rows, "scrape": found._asdict()}))
        return
    print(f"{'CPU time of a request':<40} {'without':>10} {'with / without':>16}")
    for each in figures:
        print(f"{each.name:<40} {each.without_us:>7.1f} us {each.ratio:>16.3f}")
    print(f"\na scrape of {PARTITIONS:,} partitions, {found.size / 1e6:.2f} MB as gzip")
    print(
        f"  time of the event loop {found.loop_ms:8.1f} ms = {found.loop_ms / 10:.1f} % of a second"
    )
    print(f"  longest event          {found.stall_ms:8.2f} ms, of CPU {found.stall_cpu_ms:.2f} ms")
    print(f"  until its last byte    {found.wall_ms:8.1f} ms")


if __name__ == "__main__":
    main()
