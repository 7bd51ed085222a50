"""Measures how fast Spark reads topics, with our source and with Spark's own Kafka connector.

    python -m bench.spark_source [--records 2000000] [--rounds 5] [--tcp]

One broker, one session on two cores, four partitions per topic, no compression. Both sources read
the same topics alternately into Spark's `noop` sink, so that other load affects both. Streams read
in several micro-batches, of which the first, with the start of the query, does not count. A second
run has one task per core, which only ours can do (`maxPartitions`). Rates are medians. CPU time is
that of everything: JVM, Python workers and broker.

The connector comes from Maven Central into build/spark-jars.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.telemetry.jobs.spark_session import UNIX_SOCKETS
from barnabas.testing.process import BrokerSubprocess

JARS = Path("build/spark-jars")
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
"""The newest versions on Maven Central; the connector of 4.2 runs on Spark 4.3."""

SOURCES = ("barnabas", "kafka")
CORES = 2
PARTITIONS = 4
SIZES = (100, 1024)
STREAM_BATCHES = 6
SMALL_BATCHES = 40
SMALL_BATCH_ROWS = 1000


class Measure(NamedTuple):
    """The cost of reading so many rows."""

    rows: int
    seconds: float
    cpu_seconds: float


def main() -> None:
    """Fill topics, read them alternately, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="of 100 bytes; 1 KB: a 5th")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tcp", action="store_true", help="to Python workers, Spark's default")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerSubprocess(Path(folder) / "data") as broker,
    ):
        spark = session(fetched_jars(), unix_sockets=not arguments.tcp)
        try:
            run(spark, broker.bootstrap, arguments.records, arguments.rounds)
        finally:
            spark.stop()


def run(spark: SparkSession, bootstrap: str, records: int, rounds: int) -> None:
    """Measure all rows of the table."""
    print(f"{'':28}" + "".join(f"{name:>26}" for name in SOURCES) + f"{'ratio':>8}")
    for size in SIZES:
        count = records if size == SIZES[0] else records // 5
        chosen = options(bootstrap, filled(bootstrap, size, count))
        batches = alternated(partial(batch, spark, chosen, count), rounds)
        print_rates(f"batch read, {size} B", batches)
        streams = alternated(partial(stream, spark, chosen, count), rounds)
        print_rates(f"stream read, {size} B", streams)
        gathered = {**chosen, "maxPartitions": str(CORES)}
        streams = alternated(partial(stream, spark, gathered, count), rounds)
        print_rates(f"the same, maxPartitions={CORES}", streams)
    few = partial(stream, spark, chosen, SMALL_BATCH_ROWS * SMALL_BATCHES, batches=SMALL_BATCHES)
    small = alternated(few, rounds)
    milliseconds = [median(each.seconds for each in small[s]) * 1000 for s in SOURCES]
    cells = "".join(f"{each:>23.0f} ms" for each in milliseconds)
    title = f"micro-batch of {SMALL_BATCH_ROWS}"
    print(f"{title:28}{cells}{milliseconds[1] / milliseconds[0]:>8.2f}")


def alternated(read: Callable[[str], Measure], rounds: int) -> dict[str, list[Measure]]:
    """Read with each source alternately, after one round that does not count."""
    found: dict[str, list[Measure]] = {source: [] for source in SOURCES}
    for number in range(rounds + 1):
        for source in SOURCES if number % 2 else reversed(SOURCES):
            measure = read(source)
            if number:
                found[source].append(measure)
    return found


def print_rates(title: str, measures: dict[str, list[Measure]]) -> None:
    """Print one line."""
    rates = {s: median(each.rows / each.seconds for each in measures[s]) for s in SOURCES}
    costs = {s: median(each.cpu_seconds / each.rows for each in measures[s]) for s in SOURCES}
    cells = "".join(f"{rates[s]:>14,.0f}/s {costs[s] * 1e6:>5.2f} us cpu" for s in SOURCES)
    print(f"{title:28}{cells}{rates['barnabas'] / rates['kafka']:>8.2f}", flush=True)


def batch(spark: SparkSession, chosen: dict[str, str], count: int, source: str) -> Measure:
    """Read a topic as a batch."""
    frame = spark.read.format(source).options(**chosen).load()
    cpu, start = cpu_seconds(), time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return Measure(count, time.perf_counter() - start, cpu_seconds() - cpu)


def stream(
    spark: SparkSession,
    chosen: dict[str, str],
    count: int,
    source: str,
    batches: int = STREAM_BATCHES,
) -> Measure:
    """Read so many records in micro-batches; return the median of all except the first."""
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(count // batches)}
    frame = spark.readStream.format(source).options(**chosen, **limits).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(processingTime="0 seconds").start()
        wait_for(query, 1)
        cpu = cpu_seconds()
        wait_for(query, batches)
        cpu = cpu_seconds() - cpu
        done = query.recentProgress[1:batches]
        query.stop()
    seconds = median(each.durationMs["triggerExecution"] for each in done) / 1000
    return Measure(count // batches, seconds, cpu / len(done))


def wait_for(query: StreamingQuery, batches: int) -> None:
    """Return once a query has finished so many micro-batches."""
    while len(query.recentProgress) < batches:
        time.sleep(0.02)
        failure = query.exception()
        if failure is not None:
            raise failure


def options(bootstrap: str, topic: str) -> dict[str, str]:
    """Return the options of both sources."""
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}


def cpu_seconds() -> float:
    """Return the CPU time of this process and all its descendants."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        spent[pid] = sum(map(int, fields[11:15])) / tick
    total, todo = 0.0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += spent.get(pid, 0.0)
        todo += children.get(pid, [])
    return total


def filled(bootstrap: str, size: int, count: int) -> str:
    """Create a topic and fill it; values have different lengths around the size."""
    name = f"bench-{size}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])[name].result()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    noise = os.urandom(2 * size)
    for number in range(count):
        length = size - 20 + number % 41
        while True:
            try:
                producer.produce(name, noise[:length], b"key-%06d" % (number % 1000))
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 10_000:
            producer.poll(0)
    producer.flush()
    return name


def fetched_jars() -> list[Path]:
    """Return Spark's connector, downloaded from Maven Central if necessary."""
    JARS.mkdir(parents=True, exist_ok=True)
    found = []
    for group, name, version in ARTIFACTS:
        file = JARS / f"{name}-{version}.jar"
        if not file.exists():
            copy = ["dependency:copy", f"-Dartifact={group}:{name}:{version}"]
            subprocess.run(["mvn", "-q", "-B", *copy, f"-DoutputDirectory={JARS}"], check=True)
        found.append(file)
    return found


def session(jars: list[Path], *, unix_sockets: bool) -> SparkSession:
    """Return a session on two cores that knows both sources."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(UNIX_SOCKETS, str(unix_sockets).lower())
        .config("spark.jars", ",".join(str(jar.resolve()) for jar in jars))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
