"""Loads from Kafka's own Java tools: the performance producer, and the consumer with a group.

`ProducerPerformance` is started without an end, and stopped once its report covers the given time.
So a row takes as long on a slow broker as on a fast one.
"""

import random
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.brokers import java
from bench.loads import TIMEOUT_S, Figures, Target, bulk, fill
from bench.places import WORK
from bench.process import LoadError, lines_until, output_of

WINDOW_MS = 500
PAYLOADS = 1000
CLIENT_JVM = ["-Xmx512M"]


@dataclass(frozen=True, kw_only=True)
class JavaProduce:
    """`ProducerPerformance` at full speed, with the Java client's defaults and these settings."""

    size: int
    properties: dict[str, str] = field(default_factory=dict)
    transaction_ms: int = 0
    """The age at which a transaction is committed; 0 is without transactions."""

    def run(self, target: Target) -> Figures:
        """Run for the given time; read the windows that it reports after the warm-up."""
        cpu_before = target.cpu_s()
        windows = lines_until(
            self.command(target),
            lambda lines: enough(begun_after(parse_windows(lines), target.warmup), target.seconds),
            TIMEOUT_S,
        )
        cpu_s = target.cpu_s() - cpu_before
        seen = parse_windows(windows)
        measured = after_warmup(seen, target.warmup)
        messages = sum(window.messages for window in measured)
        seconds = sum(window.seconds for window in measured)
        return bulk(messages, seconds, self.size, cpu_s, sum(window.messages for window in seen))

    def command(self, target: Target) -> list[str | Path]:
        """The tool and its arguments."""
        tool = java("org.apache.kafka.tools.ProducerPerformance", CLIENT_JVM)
        where = ["--bootstrap-server", target.address, "--topic", target.topic]
        what = ["--num-records", str(10**10), "--throughput", "-1"]
        shape = ["--payload-file", str(payload_file(self.size))]
        report = ["--reporting-interval", str(WINDOW_MS)]
        named = (*self.properties.items(), *target.access.java)
        properties = [f"{name}={value}" for name, value in named]
        extra = ["--command-property", *properties] if properties else []
        if self.transaction_ms:
            extra += ["--transaction-duration-ms", str(self.transaction_ms)]
        return [*tool, *where, *what, *shape, *report, *extra]


@dataclass(frozen=True)
class Window:
    """One line of `ProducerPerformance`: the acks since the previous line."""

    messages: int
    seconds: float


WINDOW = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec")


def parse_windows(lines: Iterable[str]) -> list[Window]:
    """Parse windows from lines; a window without a record has no rate and is left out."""
    found = (WINDOW.match(line) for line in lines)
    pairs = [(int(match[1]), float(match[2])) for match in found if match]
    return [Window(messages, messages / rate) for messages, rate in pairs if rate]


def enough(windows: list[Window], seconds: float) -> bool:
    """Whether the windows cover the given time."""
    return sum(window.seconds for window in windows) >= seconds


def after_warmup(windows: list[Window], warmup: float) -> list[Window]:
    """The windows that begin after the warm-up, at least one."""
    kept = begun_after(windows, warmup)
    if not kept:
        raise LoadError("the producer reported no window after its warm-up")
    return kept


def begun_after(windows: list[Window], warmup: float) -> list[Window]:
    """The windows that begin after the warm-up."""
    kept, elapsed = [], 0.0
    for window in windows:
        if elapsed >= warmup:
            kept.append(window)
        elapsed += window.seconds
    return kept


def payload_file(size: int) -> Path:
    """Lines of text of one size, about as compressible as JSON events; made once."""
    path = WORK / f"payloads-{size}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(payloads(size)))
    return path


def payloads(size: int) -> list[str]:
    """The same texts in every run."""
    rng = random.Random(size)
    return [event(rng, size) for _ in range(PAYLOADS)]


def event(rng: random.Random, size: int) -> str:
    """Repeated field names with different values, cut to the size."""
    text = ""
    while len(text) < size:
        text += f'{{"user_id":{rng.getrandbits(40)},"amount":{rng.randrange(10**6)},'
        text += f'"session":"{rng.getrandbits(64):016x}","country":"{rng.choice(["DE", "FR"])}"}}'
    return text[:size]


@dataclass(frozen=True, kw_only=True)
class JavaConsume:
    """`ConsumerPerformance`, which joins a group."""

    size: int

    def run(self, target: Target) -> Figures:
        """Fill the topic, then read all of it once."""
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
    """Messages per second of fetching, without the join: the last column of its last line."""
    lines = [line for line in output.splitlines() if line.count(",") >= 9]
    if len(lines) < 2:
        raise LoadError("ConsumerPerformance printed no result")
    return float(lines[-1].split(",")[9])
