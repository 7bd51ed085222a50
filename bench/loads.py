"""Loads from librdkafka and plain sockets: which program to run, and how to read its output.

A load is data; `run` puts it on a topic and returns figures keyed as in `metrics`. Every load is
bounded in time. Bulk loads also return the broker's CPU-seconds a GB of payload moved. Load from
Kafka's own tools is in `java_loads`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bench.places import LOAD, WIRE
from bench.process import output_of

TIMEOUT_S = 60.0
FILL_BYTES_PER_SECOND, FILL_MESSAGES_PER_SECOND = 250e6, 750_000
"""What a topic to be read is filled with, for each second of reading; it is read several times."""
FILL_SECONDS_MAX = 15.0

Figures = dict[str, float]
"""Keyed as in `metrics`."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A topic on a running broker, and how long to press on it."""

    port: int
    topic: str
    partitions: int
    output: str
    """A second topic to write to, where the row asks for one."""
    seconds: float
    warmup: float
    cpu_s: Callable[[], float]
    """The broker's processor seconds so far."""
    leader_ports: tuple[int, ...] = ()
    """Where the leader of each partition listens, where that is not the same for all."""

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"


class Load(Protocol):
    """Something that presses on a topic and returns figures."""

    def run(self, target: Target) -> Figures:
        """Press, and return figures keyed as in `metrics`."""


def bulk(messages: float, seconds: float, size: int, cpu_s: float, moved: float) -> Figures:
    """The figures of a bulk load; `moved` messages went by while `cpu_s` was spent."""
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
    return answer(output_of([LOAD, mode, *where, *shape, *options], TIMEOUT_S))


def answer(output: str) -> Figures:
    """The JSON line that the native programs print."""
    figures = json.loads(output)
    return {name: float(value) for name, value in figures.items()}


def fill(target: Target, size: int) -> int:
    """Put a bounded amount into the topic and say how many messages that was."""
    messages = target.seconds * min(FILL_BYTES_PER_SECOND / size, FILL_MESSAGES_PER_SECOND)
    limits = ["--messages", str(int(messages)), "--seconds", str(FILL_SECONDS_MAX)]
    return int(load("produce", target, size, *limits)["messages"])


@dataclass(frozen=True, kw_only=True)
class Produce:
    """librdkafka at full speed with its default batches of up to 1 MB, linger 10 ms."""

    size: int

    def run(self, target: Target) -> Figures:
        """Send for the time given."""
        cpu_before = target.cpu_s()
        got = load("produce", target, self.size, "--seconds", str(target.seconds))
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["messages"])


@dataclass(frozen=True, kw_only=True)
class Consume:
    """librdkafka reading a filled topic from the beginning, over and over, without a group."""

    size: int

    def run(self, target: Target) -> Figures:
        """Fill, then read for the time given."""
        filled = fill(target, self.size)
        cpu_before = target.cpu_s()
        limits = ["--messages", str(filled), "--seconds", str(target.seconds)]
        got = load("consume", target, self.size, *limits)
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["messages"])


@dataclass(frozen=True, kw_only=True)
class ProduceAndConsume:
    """One process that writes at full speed and reads what it wrote; counted once, when read."""

    size: int

    def run(self, target: Target) -> Figures:
        """Send for the time given, and read all of it."""
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
        """Send and wait, again and again."""
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
    """Requests a second over all connections; 0 is as fast as they are answered."""

    def run(self, target: Target) -> Figures:
        """Connect all, then send for the time given."""
        ports = ",".join(str(port) for port in target.leader_ports or (target.port,))
        where = ["--port", ports, "--topic", target.topic]
        shape = ["--partitions", str(target.partitions), "--size", str(self.size)]
        pace = ["--connections", str(self.connections), "--rate", str(self.rate)]
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        got = answer(output_of([WIRE, *where, *shape, *pace, *times], TIMEOUT_S))
        return got | {"requests_per_s": got["per_second"]}
