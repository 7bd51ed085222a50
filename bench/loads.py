"""Loads from librdkafka and plain sockets: which program to run, and how to parse its output.

A load is data; `run` applies it to a topic and returns figures with the keys of `metrics`. Every
load is bounded in time. Bulk loads also return the broker's CPU seconds per GB of payload. Load
from Kafka's own tools is in `java_loads`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bench.access import PLAINTEXT_ACCESS, Access
from bench.places import LOAD, WIRE
from bench.process import output_of

TIMEOUT_S = 60.0
FILL_BYTES_PER_SECOND, FILL_MESSAGES_PER_SECOND = 250e6, 750_000
"""The messages in a topic for each second of reading; it is read several times."""
FILL_SECONDS_MAX = 15.0

Figures = dict[str, float]
"""By the keys of `metrics`."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A topic on a running broker, and how long the load runs."""

    port: int
    topic: str
    partitions: int
    output: str
    """A second topic to write to, if the row needs one."""
    seconds: float
    warmup: float
    cpu_s: Callable[[], float]
    """The broker's processor seconds so far."""
    leader_ports: tuple[int, ...] = ()
    """The leader's address of each partition, if they differ."""
    access: Access = PLAINTEXT_ACCESS
    """How clients authenticate and encrypt."""

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"


class Load(Protocol):
    """A load on a topic that returns figures."""

    def run(self, target: Target) -> Figures:
        """Run the load; return figures with the keys of `metrics`."""


def bulk(messages: float, seconds: float, size: int, cpu_s: float, moved: float) -> Figures:
    """The figures of a bulk load of `moved` messages that used `cpu_s`."""
    return {
        "messages_per_s": messages / seconds,
        "mb_per_s": messages * size / seconds / 1e6,
        "cpu_s_per_gb": cpu_s / (moved * size / 1e9),
    }


# --- librdkafka ----------------------------------------------------------------------------------


def load(mode: str, target: Target, size: int, *options: str) -> Figures:
    """Run `load.c` and read its line."""
    where = ["--bootstrap", target.address, "--topic", target.topic]
    shape = ["--partitions", str(target.partitions), "--size", str(size)]
    security = [f"--client-property={name}={value}" for name, value in target.access.rdkafka]
    return answer(output_of([LOAD, mode, *where, *shape, *security, *options], TIMEOUT_S))


def answer(output: str) -> Figures:
    """Parse the JSON line that the native programs print."""
    figures = json.loads(output)
    return {name: float(value) for name, value in figures.items()}


def fill(target: Target, size: int) -> int:
    """Fill the topic with a bounded number of messages; return the number."""
    messages = target.seconds * min(FILL_BYTES_PER_SECOND / size, FILL_MESSAGES_PER_SECOND)
    limits = ["--messages", str(int(messages)), "--seconds", str(FILL_SECONDS_MAX)]
    return int(load("produce", target, size, *limits)["messages"])


@dataclass(frozen=True, kw_only=True)
class Produce:
    """librdkafka at full speed with its default batches of up to 1 MB, linger 10 ms."""

    size: int

    def run(self, target: Target) -> Figures:
        """Send for the given time."""
        cpu_before = target.cpu_s()
        got = load("produce", target, self.size, "--seconds", str(target.seconds))
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["messages"])


@dataclass(frozen=True, kw_only=True)
class Consume:
    """librdkafka reading a filled topic from the beginning, repeatedly, without a group."""

    size: int

    def run(self, target: Target) -> Figures:
        """Fill the topic, then read for the given time."""
        filled = fill(target, self.size)
        cpu_before = target.cpu_s()
        limits = ["--messages", str(filled), "--seconds", str(target.seconds)]
        got = load("consume", target, self.size, *limits)
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["messages"])


@dataclass(frozen=True, kw_only=True)
class ProduceAndConsume:
    """One process that writes at full speed and reads what it wrote; each message counts once."""

    size: int

    def run(self, target: Target) -> Figures:
        """Send for the given time, and read all of it."""
        cpu_before = target.cpu_s()
        got = load("both", target, self.size, "--seconds", str(target.seconds))
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["messages"])


@dataclass(frozen=True, kw_only=True)
class EndToEnd:
    """From when a message was due until the consumer has it, at a fixed rate, linger 0."""

    size: int
    rate: int

    def run(self, target: Target) -> Figures:
        """Send at the rate."""
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        return load("latency", target, self.size, "--rate", str(self.rate), *times)


@dataclass(frozen=True, kw_only=True)
class Ack:
    """acks=all, one message in flight, linger 0: from the send until the ack."""

    size: int

    def run(self, target: Target) -> Figures:
        """Send and wait, repeatedly."""
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        got = load("ack", target, self.size, *times)
        return got | {"requests_per_s": got["per_second"]}


# --- bare sockets --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Many connections, each with one one-record Produce in flight."""

    connections: int
    size: int = 100
    rate: int = 0
    """Requests per second over all connections; 0 is as fast as responses come."""

    def run(self, target: Target) -> Figures:
        """Connect all, then send for the given time."""
        shape = ["--partitions", str(target.partitions), "--size", str(self.size)]
        got, cpu_s = wire(target, self.connections, *shape, "--rate", str(self.rate))
        cpu_us = cpu_s * 1e6 / got["total"]
        return got | {"requests_per_s": got["per_second"], "cpu_us_per_request": cpu_us}


@dataclass(frozen=True, kw_only=True)
class Handshakes:
    """Clients that connect, are answered once, close, and connect again."""

    connections: int
    """How many do so at the same time."""

    def run(self, target: Target) -> Figures:
        """Connect for the given time."""
        got, cpu_s = wire(target, self.connections, "--handshakes")
        cpu_ms = cpu_s * 1e3 / got["total"]
        return {
            "handshakes_per_s": got["per_second"],
            "p99_ms": got["p99_ms"],
            "cpu_ms_per_handshake": cpu_ms,
        }


def wire(target: Target, connections: int, *options: str) -> tuple[Figures, float]:
    """Run `wire.c`; return what it says, and the broker's CPU seconds meanwhile."""
    ports = ",".join(str(port) for port in target.leader_ports or (target.port,))
    where = ["--port", ports, "--topic", target.topic, "--connections", str(connections)]
    times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
    cpu_before = target.cpu_s()
    got = answer(output_of([WIRE, *where, *times, *options, *target.access.wire], TIMEOUT_S))
    return got, target.cpu_s() - cpu_before
