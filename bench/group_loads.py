"""Loads on coordinators: groups that form and shrink, offset commits, transactions.

Names of groups and transactional ids are new in every run of a load, so that no run finds the state
of another.
"""

import time
from dataclasses import dataclass, field
from statistics import median

from bench.loads import TIMEOUT_S, Figures, Target, answer, bulk, fill, load
from bench.places import GROUP, TRANSFORM, WIRE
from bench.process import output_of

APART_MS = 100
"""The time between members that join one after the other."""
REBALANCE_TIMEOUT_S = 150.0


def new_name() -> str:
    """A name that no load has used before."""
    return f"bench-{time.monotonic_ns()}"


@dataclass(frozen=True, kw_only=True)
class Rebalance:
    """Consumers of librdkafka join one by one, then others all at once, half of which leave.

    The remaining members learn of it from their next heartbeat, when librdkafka's main loop wakes
    up: at random, up to half a second later. So that is repeated several times.
    """

    members: int = 20
    leavers: int = 10
    partings: int = 5
    properties: dict[str, str] = field(default_factory=dict)

    def run(self, target: Target) -> Figures:
        """Form a group twice; half of the second leaves."""
        in_turn = self._form(target, "--apart-ms", str(APART_MS))
        formed = [
            self._form(target, "--leavers", str(self.leavers), "--calm-ms", str(2000 + 137 * turn))
            for turn in range(self.partings)
        ]
        return {
            "in_turn_ms": in_turn["join_ms"],
            "at_once_ms": median(each["join_ms"] for each in formed),
            "leave_ms": median(each["leave_ms"] for each in formed),
        }

    def _form(self, target: Target, *options: str) -> Figures:
        where = ["--bootstrap", target.address, "--topic", target.topic, "--group", new_name()]
        shape = ["--partitions", str(target.partitions), "--members", str(self.members)]
        properties = [f"--property={name}={value}" for name, value in self.properties.items()]
        words = [*where, *shape, *options, *properties]
        return answer(output_of([GROUP, *words], REBALANCE_TIMEOUT_S))


@dataclass(frozen=True, kw_only=True)
class Commits:
    """Connections that commit offsets as fast as they are answered, each for its own group."""

    partitions: int
    """How many offsets a request commits."""
    connections: int = 16

    def run(self, target: Target) -> Figures:
        """Connect all, then commit for the given time."""
        where = ["--port", str(target.port), "--topic", target.topic]
        shape = ["--partitions", str(target.partitions), "--commit", str(self.partitions)]
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        words = [*where, *shape, "--connections", str(self.connections), *times]
        got = answer(output_of([WIRE, *words], TIMEOUT_S))
        return got | {"requests_per_s": got["per_second"]}


@dataclass(frozen=True, kw_only=True)
class TransactionLatency:
    """From when a message was due until a read_committed consumer has it, at a fixed rate."""

    size: int
    rate: int
    interval_ms: int
    """The age at which a transaction is committed."""

    def run(self, target: Target) -> Figures:
        """Send at the rate, in transactions."""
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        pace = ["--rate", str(self.rate), "--interval-ms", str(self.interval_ms)]
        identity = f"--property=transactional.id={new_name()}"
        return load("latency", target, self.size, *pace, *times, identity)


@dataclass(frozen=True, kw_only=True)
class Transform:
    """Consume, transform, produce, exactly once: one transaction per interval."""

    size: int
    interval_ms: int = 100

    def run(self, target: Target) -> Figures:
        """Fill the topic, then process it for the given time."""
        filled = fill(target, self.size)
        where = ["--bootstrap", target.address, "--topic", target.topic, "--output", target.output]
        times = ["--seconds", str(target.seconds), "--warmup", str(target.warmup)]
        pace = ["--group", new_name(), "--interval-ms", str(self.interval_ms)]
        limits = ["--messages", str(filled), *times]
        cpu_before = target.cpu_s()
        got = answer(output_of([TRANSFORM, *where, *pace, *limits], TIMEOUT_S))
        cpu_s = target.cpu_s() - cpu_before
        return bulk(got["messages"], got["seconds"], self.size, cpu_s, got["total"])
