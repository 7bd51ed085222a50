"""The kinds of load: each knows the program that makes it and how to read that program's answer.

A load is data; `run` puts it on a topic and returns figures keyed as in `metrics`. Every load is
bounded in time. Bulk loads also return the broker's CPU-seconds a GB of payload moved.
"""

import json
import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.brokers import java
from bench.places import LOAD, WIRE, WORK
from bench.process import LoadError, lines_until, output_of

TIMEOUT_S = 60.0
WINDOW_MS = 500
PAYLOADS = 1000
FILL_BYTES_PER_SECOND, FILL_MESSAGES_PER_SECOND = 250e6, 750_000
"""What a topic to be read is filled with, for each second of reading; it is read several times."""
FILL_SECONDS_MAX = 15.0
CLIENT_JVM = ["-Xmx512M"]

Figures = dict[str, float]
"""Keyed as in `metrics`."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A topic on a running broker, and how long to press on it."""

    port: int
    topic: str
    partitions: int
    seconds: float
    warmup: float
    cpu_s: Callable[[], float]
    """The broker's processor seconds so far."""

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


# --- Kafka's own producer ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JavaProduce:
    """`ProducerPerformance` at full speed, with the Java client's defaults and what is set here."""

    size: int
    properties: dict[str, str] = field(default_factory=dict)

    def run(self, target: Target) -> Figures:
        """Let it run for the time given; read the windows it reports after the warm-up."""
        cpu_before = target.cpu_s()
        windows = lines_until(
            self._command(target),
            lambda lines: enough(parse_windows(lines), target.warmup + target.seconds),
            TIMEOUT_S,
        )
        cpu_s = target.cpu_s() - cpu_before
        seen = parse_windows(windows)
        measured = after_warmup(seen, target.warmup)
        messages = sum(window.messages for window in measured)
        seconds = sum(window.seconds for window in measured)
        return bulk(messages, seconds, self.size, cpu_s, sum(window.messages for window in seen))

    def _command(self, target: Target) -> list[str | Path]:
        tool = java("org.apache.kafka.tools.ProducerPerformance", CLIENT_JVM)
        where = ["--bootstrap-server", target.address, "--topic", target.topic]
        what = ["--num-records", str(10**10), "--throughput", "-1"]
        shape = ["--payload-file", str(payload_file(self.size))]
        report = ["--reporting-interval", str(WINDOW_MS)]
        properties = [f"{name}={value}" for name, value in self.properties.items()]
        extra = ["--command-property", *properties] if properties else []
        return [*tool, *where, *what, *shape, *report, *extra]


@dataclass(frozen=True)
class Window:
    """One line of `ProducerPerformance`: what was acked since the line before."""

    messages: int
    seconds: float


WINDOW = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec")


def parse_windows(lines: Iterable[str]) -> list[Window]:
    """The windows among the lines; a window without a record has no rate and is left out."""
    found = (WINDOW.match(line) for line in lines)
    pairs = [(int(match[1]), float(match[2])) for match in found if match]
    return [Window(messages, messages / rate) for messages, rate in pairs if rate]


def enough(windows: list[Window], seconds: float) -> bool:
    """Whether the windows cover the time."""
    return sum(window.seconds for window in windows) >= seconds


def after_warmup(windows: list[Window], warmup: float) -> list[Window]:
    """The windows that begin after the warm-up."""
    kept, elapsed = [], 0.0
    for window in windows:
        if elapsed >= warmup:
            kept.append(window)
        elapsed += window.seconds
    if not kept:
        raise LoadError("the producer reported no window after its warm-up")
    return kept


def payload_file(size: int) -> Path:
    """Lines of text of one size, about as compressible as JSON events; made once."""
    path = WORK / f"payloads-{size}.txt"
    if not path.exists():
        path.write_text("\n".join(payloads(size)))
    return path


def payloads(size: int) -> list[str]:
    """The same texts in every run."""
    rng = random.Random(size)
    return [event(rng, size) for _ in range(PAYLOADS)]


def event(rng: random.Random, size: int) -> str:
    """Field names that repeat, values that do not, cut to the size."""
    text = ""
    while len(text) < size:
        text += f'{{"user_id":{rng.getrandbits(40)},"amount":{rng.randrange(10**6)},'
        text += f'"session":"{rng.getrandbits(64):016x}","country":"{rng.choice(["DE", "FR"])}"}}'
    return text[:size]


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
        where = ["--port", str(target.port), "--topic", target.topic]
        shape = ["--partitions", str(target.partitions), "--size", str(self.size)]
        pace = ["--connections", str(self.connections), "--rate", str(self.rate)]
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        got = answer(output_of([WIRE, *where, *shape, *pace, *times], TIMEOUT_S))
        return got | {"requests_per_s": got["per_second"]}


# --- Kafka's own consumer ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JavaConsume:
    """`ConsumerPerformance`, which joins a group: for brokers that have consumer groups."""

    size: int

    def run(self, target: Target) -> Figures:
        """Fill, then read all of it once."""
        filled = fill(target, self.size)
        tool = java("org.apache.kafka.tools.ConsumerPerformance", CLIENT_JVM)
        where = ["--bootstrap-server", target.address, "--topic", target.topic]
        cpu_before = target.cpu_s()
        group = ["--group", f"bench-{time.monotonic_ns()}"]
        output = output_of([*tool, *where, *group, "--num-records", str(filled)], TIMEOUT_S)
        cpu_s = target.cpu_s() - cpu_before
        rate = parse_consumer_performance(output)
        return bulk(rate, 1.0, self.size, cpu_s, filled)


def parse_consumer_performance(output: str) -> float:
    """Messages a second of fetching, the join left out: the last column of its last line."""
    lines = [line for line in output.splitlines() if line.count(",") >= 9]
    if len(lines) < 2:
        raise LoadError("ConsumerPerformance printed no result")
    return float(lines[-1].split(",")[9])
