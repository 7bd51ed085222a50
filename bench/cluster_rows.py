"""The rows of the three-broker table, as data."""

from dataclasses import dataclass, replace

from bench.brokers import Flush
from bench.cluster_faults import Incident, RollingRestart, Victim
from bench.cluster_sizes import ManyPartitions, Reassign
from bench.cluster_systems import SHORT_SESSION_MS, Shape
from bench.cluster_work import Press, StartUp, Work
from bench.java_loads import JavaProduce
from bench.loads import Ack, Consume, Load, Produce, Requests
from bench.metrics import (
    BROKER_MEMORY,
    BYTES,
    CONTROLLER,
    CPU,
    CREATE,
    FAILED,
    GAP,
    IDLE_CPU,
    LED,
    MESSAGES,
    METADATA,
    P50,
    P99,
    REASSIGN,
    REQUESTS,
    ROLLING,
    START_FRESH,
    STOP,
    Metric,
)
from bench.rows import BIG_BATCHES

EVERY_ROW = "cluster"
"""The name of all rows of this table for `--only`."""

STEADY = Shape()
IMPATIENT = Shape(session_ms=SHORT_SESSION_MS)

AHEAD = 1.0
"""The goal of the cluster: ahead of Kafka in each row."""
LATENCIES = (replace(P50, goal=AHEAD), replace(P99, goal=AHEAD))
START = replace(START_FRESH, title="start to healthy", goal=AHEAD)


@dataclass(frozen=True, kw_only=True)
class ClusterRow:
    """One workload for both clusters."""

    key: str
    section: str
    title: str
    work: Work
    metrics: tuple[Metric, ...]
    shape: Shape = STEADY
    systems: tuple[str, ...] = ("barnabas", "kafka")
    is_once: bool = False
    """Whether only the first round has it: it has its own turns, or takes minutes."""
    is_long: bool = False
    """Whether a quick run leaves it out."""
    wants_fresh: bool = False
    """Whether it needs an unused cluster."""
    spoils: bool = False
    """Whether other rows cannot use the cluster afterwards."""


def under_both_policies(row: ClusterRow, load: Load, warm_gb: int) -> tuple[ClusterRow, ClusterRow]:
    """The same load, flushed when the system decides, and before the ack."""
    later = Press(load=load, warm_gb=warm_gb)
    return (
        replace(row, work=later),
        replace(
            row,
            key=f"{row.key}-flush",
            title=f"{row.title}, flushed before the ack",
            work=replace(later, flush=Flush.ACK),
        ),
    )


def produce(size: int, title: str, is_big: bool) -> tuple[ClusterRow, ClusterRow]:
    """The Java producer at full speed."""
    load = JavaProduce(size=size, properties=BIG_BATCHES if is_big else {})
    row = ClusterRow(
        key=f"cluster-produce-{'100b' if size == 100 else '1k'}{'-big' if is_big else ''}",
        section="Produce, three replicas",
        title=title,
        work=Press(load=load),
        metrics=(MESSAGES if size == 100 else BYTES, CPU),
    )
    return under_both_policies(row, load, warm_gb=6 if is_big else 3)


PRODUCE = (
    *produce(100, "100 B, client defaults", is_big=False),
    *produce(1024, "1 KB, client defaults", is_big=False),
    *produce(100, "100 B, big batches", is_big=True),
    *produce(1024, "1 KB, big batches", is_big=True),
)

ONE_IN_FLIGHT = ClusterRow(
    key="cluster-ack-latency",
    section="acks=all, three replicas",
    title="1 KB, one in flight",
    work=Press(load=Ack(size=1024)),
    metrics=(*LATENCIES, REQUESTS),
)
SIXTEEN = ClusterRow(
    key="cluster-requests-16",
    section="acks=all, three replicas",
    title="100 B, 16 connections, one record a request",
    work=Press(load=Requests(connections=16)),
    metrics=(*LATENCIES, REQUESTS),
)
LATENCY = (
    *under_both_policies(ONE_IN_FLIGHT, Ack(size=1024), warm_gb=0),
    *under_both_policies(SIXTEEN, Requests(connections=16), warm_gb=0),
)

CONSUME = (
    ClusterRow(
        key="cluster-consume-100b",
        section="Consume, three replicas",
        title="100 B",
        work=Press(load=Consume(size=100), warm_gb=3),
        metrics=(MESSAGES, CPU),
    ),
    ClusterRow(
        key="cluster-consume-1k",
        section="Consume, three replicas",
        title="1 KB",
        work=Press(load=Consume(size=1024), warm_gb=4),
        metrics=(BYTES, CPU),
    ),
)

START_UP = (
    ClusterRow(
        key="cluster-start",
        section="Start-up and idleness",
        title="three brokers, no topics",
        work=StartUp(),
        metrics=(START, IDLE_CPU, BROKER_MEMORY),
        wants_fresh=True,
    ),
)


def fault(key: str, title: str, work: Work, metrics: tuple[Metric, ...]) -> ClusterRow:
    """Faults at brokers under load."""
    section = "Faults under load: 600 msg/s to 6 partitions"
    return ClusterRow(
        key=key, section=section, title=title, work=work, metrics=metrics, is_once=True
    )


KILLED_LEADER = fault(
    "cluster-kill-leader",
    "a leader is killed, session timeout 9 s (the default)",
    Incident(victim=Victim.LEADER),
    (GAP, FAILED),
)
FAULTS = (
    replace(KILLED_LEADER, is_long=True),
    replace(
        KILLED_LEADER,
        key="cluster-kill-leader-3s",
        title="a leader is killed, session timeout 3 s",
        shape=IMPATIENT,
    ),
    fault(
        "cluster-kill-controller",
        "the controller is killed, session timeout 9 s",
        Incident(victim=Victim.CONTROLLER),
        (CONTROLLER, GAP, FAILED),
    ),
    fault(
        "cluster-stop-leader",
        "a leader is stopped as planned",
        Incident(victim=Victim.LEADER, is_planned=True),
        (GAP, STOP, FAILED),
    ),
    fault("cluster-rolling", "rolling restart", RollingRestart(), (ROLLING, GAP, FAILED)),
)


def many(partitions: int) -> ClusterRow:
    """Topics of 100 partitions, three replicas of each."""
    return ClusterRow(
        key=f"cluster-partitions-{partitions}",
        section="Size",
        title=f"{partitions:,} partitions, three replicas",
        work=ManyPartitions(partitions=partitions),
        metrics=(CREATE, LED, METADATA, BROKER_MEMORY, IDLE_CPU),
        is_once=True,
        is_long=partitions > 1000,
        wants_fresh=True,
        spoils=True,
    )


SIZE = (
    ClusterRow(
        key="cluster-reassign",
        section="Size",
        title="a replica of 1 GB moves to another broker",
        work=Reassign(),
        metrics=(REASSIGN,),
        is_once=True,
    ),
    many(1000),
    many(10_000),
)


def scaled(nodes: int) -> tuple[ClusterRow, ClusterRow]:
    """The same load on so many Barnabas processes, one replica of each partition."""
    shape = Shape(nodes=nodes, replicas=1, in_sync_min=1)
    title = f"{nodes} process{'es' if nodes > 1 else ''}"
    bulk = ClusterRow(
        key=f"cluster-scale-{nodes}",
        section="Several processes on one machine, one replica",
        title=f"{title}: 1 KB, librdkafka at full speed",
        work=Press(load=Produce(size=1024), warm_gb=4),
        metrics=(BYTES, CPU),
        shape=shape,
        systems=("barnabas",),
    )
    requests = replace(
        bulk,
        key=f"cluster-scale-requests-{nodes}",
        title=f"{title}: 100 B, 60 connections, one record a request",
        work=Press(load=Requests(connections=60)),
        metrics=(REQUESTS, LATENCIES[1]),
    )
    return bulk, requests


SCALE = tuple(row for nodes in (1, 2, 3) for row in scaled(nodes))

CLUSTER_ROWS = (*START_UP, *PRODUCE, *CONSUME, *LATENCY, *FAULTS, *SIZE, *SCALE)
