"""The benchmark rows about coordinators: consumer groups, offset commits, transactions.

Their flush policy also holds for the internal topics in which coordinators keep their state.
"""

from dataclasses import replace

from bench.brokers import Flush
from bench.group_loads import Commits, Rebalance, TransactionLatency, Transform
from bench.java_loads import JavaProduce
from bench.metrics import AT_ONCE, BYTES, CPU, IN_TURN, LATENCIES, LEAVE, MESSAGES, P99, REQUESTS
from bench.row import Row

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
HEARTBEAT = {"heartbeat.interval.ms": "100"}
"""Members of classic groups learn of a rebalance from a heartbeat. At the client's default of 3 s
that wait would dominate. The broker decides it for `consumer` groups.
"""
CLASSIC = {"group.protocol": "classic", **HEARTBEAT}


def rebalance(key: str, title: str, properties: dict[str, str]) -> Row:
    """A group of 20 on 100 partitions."""
    return Row(
        key=key,
        section="Consumer groups: time until stable, 20 members, 100 partitions",
        title=title,
        load=Rebalance(properties=properties),
        metrics=(IN_TURN, AT_ONCE, LEAVE),
        partitions=100,
        internal_topics=(OFFSETS,),
        warm_gb=0,
    )


def commits(partitions: int) -> Row:
    """Sixteen connections that commit."""
    return Row(
        key=f"commits-{partitions}",
        section="Offset commits, 16 connections",
        title=f"{partitions} partition{'s' if partitions > 1 else ''} a request",
        load=Commits(partitions=partitions),
        metrics=(REQUESTS, P99),
        partitions=16,
        internal_topics=(OFFSETS,),
        warm_gb=0,
    )


def transactions(interval_ms: int) -> Row:
    """The Java producer at full speed."""
    return Row(
        key=f"txn-{interval_ms}",
        section="Exactly once",
        title=f"produce 1 KB, a commit each {interval_ms} ms",
        load=JavaProduce(size=1024, transaction_ms=interval_ms),
        metrics=(BYTES, CPU),
        internal_topics=(TRANSACTIONS,),
        warm_gb=2,
    )


def transaction_latency(interval_ms: int) -> Row:
    """At a fixed rate, until a read_committed consumer has it."""
    return Row(
        key=f"txn-latency-{interval_ms}",
        section="Exactly once",
        title=f"latency of 1 KB at 2,000 msg/s, a commit each {interval_ms} ms",
        load=TransactionLatency(size=1024, rate=2000, interval_ms=interval_ms),
        metrics=LATENCIES,
        internal_topics=(TRANSACTIONS,),
        warm_gb=0,
    )


TRANSFORM = Row(
    key="transform",
    section="Exactly once",
    title="consume, transform, produce, 1 KB, a commit each 100 ms",
    load=Transform(size=1024),
    metrics=(MESSAGES, CPU),
    internal_topics=(TRANSACTIONS, OFFSETS),
    has_output=True,
    warm_gb=3,
)


def flushed(row: Row) -> Row:
    """The same, flushed before the ack."""
    title = f"{row.title}, flushed before the ack"
    return replace(row, key=f"{row.key}-flush", title=title, flush=Flush.ACK)


GROUPS = (
    rebalance("rebalance-range", "classic, range", CLASSIC),
    rebalance(
        "rebalance-cooperative",
        "classic, cooperative-sticky",
        CLASSIC | {"partition.assignment.strategy": "cooperative-sticky"},
    ),
    rebalance("rebalance-consumer", "consumer protocol", {"group.protocol": "consumer"}),
    *(row for one in (commits(1), commits(10)) for row in (one, flushed(one))),
)
EXACTLY_ONCE = tuple(
    row
    for one in (
        *(transactions(10), transactions(100)),
        *(transaction_latency(10), transaction_latency(100)),
        TRANSFORM,
    )
    for row in (one, flushed(one))
)
