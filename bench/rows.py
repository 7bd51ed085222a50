"""The rows of the single-broker table, as data."""

from bench.brokers import Flush
from bench.coordination_rows import EXACTLY_ONCE, GROUPS
from bench.java_loads import JavaConsume, JavaProduce
from bench.loads import (
    Ack,
    Consume,
    EndToEnd,
    Produce,
    ProduceAndConsume,
    Requests,
)
from bench.metrics import BYTES, CONNECT, CPU, LATENCIES, MESSAGES, P99, REQUESTS
from bench.row import Row

BIG_BATCHES = {"batch.size": "1000000", "linger.ms": "20"}
LZ4 = {"compression.type": "lz4"}


SMALL = (MESSAGES, CPU)
LARGE = (BYTES, CPU)

PRODUCE = (
    Row(
        key="produce-100b",
        section="Produce",
        title="100 B, client defaults",
        load=JavaProduce(size=100),
        metrics=SMALL,
    ),
    Row(
        key="produce-1k",
        section="Produce",
        title="1 KB, client defaults",
        load=JavaProduce(size=1024),
        metrics=LARGE,
    ),
    Row(
        key="produce-100b-big",
        section="Produce",
        title="100 B, big batches",
        load=JavaProduce(size=100, properties=BIG_BATCHES),
        metrics=SMALL,
        warm_gb=6,
    ),
    Row(
        key="produce-1k-big",
        section="Produce",
        title="1 KB, big batches",
        load=JavaProduce(size=1024, properties=BIG_BATCHES),
        metrics=LARGE,
        warm_gb=6,
    ),
    Row(
        key="produce-100b-lz4",
        section="Produce",
        title="100 B, client defaults with lz4",
        load=JavaProduce(size=100, properties=LZ4),
        metrics=SMALL,
    ),
    Row(
        key="produce-1k-lz4",
        section="Produce",
        title="1 KB, client defaults with lz4",
        load=JavaProduce(size=1024, properties=LZ4),
        metrics=LARGE,
    ),
    Row(
        key="produce-100b-100p",
        section="Produce",
        title="100 B, client defaults, 100 partitions",
        load=JavaProduce(size=100),
        metrics=SMALL,
        partitions=100,
    ),
    Row(
        key="produce-1k-100p",
        section="Produce",
        title="1 KB, client defaults, 100 partitions",
        load=JavaProduce(size=1024),
        metrics=LARGE,
        partitions=100,
    ),
    Row(
        key="produce-1k-big-second",
        section="Produce",
        title="1 KB, big batches, flushed every second",
        load=JavaProduce(size=1024, properties=BIG_BATCHES),
        metrics=LARGE,
        flush=Flush.SECOND,
        warm_gb=6,
    ),
    Row(
        key="produce-1k-rdkafka",
        section="Produce",
        title="1 KB, librdkafka, batches up to 1 MB",
        load=Produce(size=1024),
        metrics=LARGE,
        warm_gb=6,
    ),
)

CONSUME = (
    Row(
        key="consume-100b",
        section="Consume",
        title="100 B",
        load=Consume(size=100),
        metrics=SMALL,
        warm_gb=2,
    ),
    Row(
        key="consume-1k",
        section="Consume",
        title="1 KB",
        load=Consume(size=1024),
        metrics=LARGE,
        warm_gb=2,
    ),
    Row(
        key="consume-100b-100p",
        section="Consume",
        title="100 B, 100 partitions",
        load=Consume(size=100),
        metrics=SMALL,
        partitions=100,
        warm_gb=2,
    ),
    Row(
        key="consume-1k-100p",
        section="Consume",
        title="1 KB, 100 partitions",
        load=Consume(size=1024),
        metrics=LARGE,
        partitions=100,
        warm_gb=2,
    ),
    Row(
        key="consume-1k-group",
        section="Consume",
        title="1 KB, Java consumer in a group",
        load=JavaConsume(size=1024),
        metrics=LARGE,
    ),
    Row(
        key="both-1k",
        section="Produce and consume at once",
        title="1 KB",
        load=ProduceAndConsume(size=1024),
        metrics=LARGE,
        warm_gb=6,
    ),
)

LATENCY = (
    Row(
        key="end-to-end-2000",
        section="End-to-end latency",
        title="1 KB at 2,000 msg/s",
        load=EndToEnd(size=1024, rate=2000),
        metrics=LATENCIES,
        warm_gb=0,
    ),
    Row(
        key="end-to-end-5000",
        section="End-to-end latency",
        title="1 KB at 5,000 msg/s",
        load=EndToEnd(size=1024, rate=5000),
        metrics=LATENCIES,
        warm_gb=0,
    ),
    Row(
        key="end-to-end-5000-second",
        section="End-to-end latency",
        title="1 KB at 5,000 msg/s, flushed every second",
        load=EndToEnd(size=1024, rate=5000),
        metrics=LATENCIES,
        flush=Flush.SECOND,
        warm_gb=0,
    ),
    Row(
        key="ack-latency",
        section="acks=all",
        title="1 KB, one in flight, flushed later",
        load=Ack(size=1024),
        metrics=(*LATENCIES, REQUESTS),
        warm_gb=0,
    ),
    Row(
        key="ack-latency-flush",
        section="acks=all",
        title="1 KB, one in flight, flushed before the ack",
        load=Ack(size=1024),
        metrics=(*LATENCIES, REQUESTS),
        flush=Flush.ACK,
        warm_gb=0,
    ),
    Row(
        key="produce-1k-flush",
        section="acks=all",
        title="1 KB, client defaults at full speed, flushed before the ack",
        load=JavaProduce(size=1024),
        metrics=LARGE,
        flush=Flush.ACK,
    ),
)

CONNECTIONS = (
    Row(
        key="requests-16",
        section="Small requests and connections",
        title="16 connections, one record a request",
        load=Requests(connections=16),
        metrics=(REQUESTS, P99),
        partitions=16,
        warm_gb=0,
    ),
    Row(
        key="requests-64",
        section="Small requests and connections",
        title="64 connections, one record a request",
        load=Requests(connections=64),
        metrics=(REQUESTS, P99),
        partitions=16,
        warm_gb=0,
    ),
    Row(
        key="connections-1000",
        section="Small requests and connections",
        title="1,000 connections, 2 requests a second each",
        load=Requests(connections=1000, rate=2000),
        metrics=(*LATENCIES, CONNECT),
        partitions=16,
        warm_gb=0,
    ),
)

ROWS = (*PRODUCE, *CONSUME, *LATENCY, *CONNECTIONS, *GROUPS, *EXACTLY_ONCE)
