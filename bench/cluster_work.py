"""Operations on a cluster that are measured, and the figures that they return.

Each turn of an operation gives its figures; several turns are several samples. Load on a topic is
that of the single broker (`loads`, `java_loads`), with replicas on all nodes.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from bench.brokers import Flush
from bench.cluster_running import Cluster
from bench.java_loads import JavaProduce
from bench.loads import Consume, Figures, Load, Requests, Target
from bench.machine import warm_memory
from bench.process import LoadError

CALM_S = 5.0
"""The wait after a start, before the idle cluster is measured: a JVM compiles meanwhile."""
IDLE_S = 5.0
WARM_UP: tuple[Load, ...] = (JavaProduce(size=100), Requests(connections=16), Consume(size=1024))


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long rows run, and how often a fault is repeated."""

    seconds: float
    warmup: float
    incidents: int


class Work(Protocol):
    """An operation on a cluster."""

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Run it as often as the pace says; figures have the keys of `metrics`."""


@dataclass(frozen=True, kw_only=True)
class Press:
    """A load on a new topic, all its replicas in sync."""

    load: Load
    flush: Flush = Flush.LATER
    partitions: int = 6
    warm_gb: int = 0
    """The memory to touch before: as much as all replicas write."""

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Run the load once."""
        warm_memory(self.warm_gb)
        with cluster.topic(self.partitions, self.flush) as topic:
            yield self.load.run(target(cluster, topic, self.partitions, pace))


def target(cluster: Cluster, topic: str, partitions: int, pace: Pace) -> Target:
    """A topic of the cluster, in the form that the loads of a single broker need."""
    leaders = cluster.leaders(topic)
    return Target(
        port=cluster.nodes[0].port,
        topic=topic,
        partitions=partitions,
        output="",
        seconds=pace.seconds,
        warmup=pace.warmup,
        cpu_s=lambda: cluster.usage().cpu_s,
        leader_ports=tuple(cluster.port(leaders[index]) for index in range(partitions)),
    )


def warm_up(cluster: Cluster, pace: Pace) -> None:
    """Warm up: Kafka's JVMs compile hot code; both systems get the same warm-up."""
    for load in WARM_UP:
        with suppress(LoadError):
            list(Press(load=load).run(cluster, pace))


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """A cluster that just started: its start time, and its idle usage."""

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Wait a little, then measure for a while."""
        del pace
        time.sleep(CALM_S)
        yield {"fresh_ms": cluster.ready_ms, **idleness(cluster)}


def idleness(cluster: Cluster) -> Figures:
    """CPU time of all nodes without any requests, and the memory of one of them."""
    before, began = cluster.usage(), time.monotonic()
    time.sleep(IDLE_S)
    after = cluster.usage()
    return {
        "idle_cpu": (after.cpu_s - before.cpu_s) / (time.monotonic() - began) * 100,
        "broker_mb": after.resident_mb / len(cluster.nodes),
    }
