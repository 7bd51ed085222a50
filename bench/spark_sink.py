"""Measures the rows per second that Spark writes to a topic, with our sink and with Spark's
connector.

    python -m bench.spark_sink --jars build/spark-jars --rounds 5

Both sinks write the same rows, alternately, to the same broker, in one Spark session (local[2]).
The batch rows are cached in memory beforehand. The streams read the same Parquet files, 8 files per
micro-batch; the time of the batches after the first counts, as Spark reports it. Each sink runs
once unmeasured. The jars of the connector (spark-sql-kafka-0-10_2.13 and its dependencies) come
from a folder; the report names them, since their versions may not be Spark's.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from barnabas.spark.sink.writers import BatchWriter, StreamWriter
from barnabas.telemetry.jobs.spark_session import UNIX_SOCKETS
from barnabas.testing.process import BrokerSubprocess
from tests.support.loads.topic_reading import create_topic

PARTITIONS = 4
FILES = 24
FILES_A_BATCH = 8
SIZES = {100: 2_000_000, 1000: 300_000}
"""Rows by their size in bytes."""

SIDES: dict[str, tuple[str, dict[str, str]]] = {
    "jvm connector": ("kafka", {}),
    "ours, exactly once": ("barnabas-sink", {}),
    "ours, at least once": ("barnabas-sink", {"exactlyOnce": "false"}),
}


class SinkAlone(DataSource):
    """Our sink under a separate name."""

    @classmethod
    def name(cls) -> str:
        """The name."""
        return "barnabas-sink"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Write a batch."""
        return BatchWriter(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """Write a stream."""
        del overwrite
        return StreamWriter(schema, self.options)


Measure = Callable[[str, dict[str, str]], float]
"""Takes a format and its options; returns rows per second."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jars", type=Path, default=Path("build/spark-jars"))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    jars = sorted(arguments.jars.glob("*.jar"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with BrokerSubprocess(folder / "data") as broker:
            spark = session(jars)
            try:
                print(f"Spark {spark.version}; jars: {', '.join(jar.name for jar in jars)}")
                for title, measure in measures(spark, broker.bootstrap, folder):
                    show(title, in_turns(measure, arguments.rounds))
            finally:
                spark.stop()


def session(jars: list[Path]) -> SparkSession:
    """Start Spark with the connector's jars."""
    built = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in jars))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config(UNIX_SOCKETS, "true")
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("ERROR")
    built.dataSource.register(SinkAlone)
    return built


def measures(spark: SparkSession, bootstrap: str, folder: Path) -> Iterator[tuple[str, Measure]]:
    """Return the measurements, in order; each has a fresh topic."""
    for size, count in SIZES.items():
        rows = spark.range(0, count, 1, PARTITIONS).select(
            F.col("id").cast("string").alias("key"),
            F.encode(F.rpad(F.col("id").cast("string"), size, "x"), "utf-8").alias("value"),
        )
        files = folder / f"rows-{size}"
        rows.repartition(FILES).write.parquet(str(files))
        common = {
            "kafka.bootstrap.servers": bootstrap,
            "topic": create_topic(bootstrap, f"rows-{size}", PARTITIONS),
        }
        cached = rows.persist()
        cached.count()
        yield f"batch, {size} B", batch_measure(cached, count, common)
        cached.unpersist()
        yield f"stream, {size} B", stream_measure(spark, files, folder, common)


def batch_measure(rows: DataFrame, count: int, common: dict[str, str]) -> Measure:
    """Measure one `df.write...save()`."""

    def measure(name: str, options: dict[str, str]) -> float:
        started = time.perf_counter()
        rows.write.format(name).mode("append").options(**common, **options).save()
        return count / (time.perf_counter() - started)

    return measure


def stream_measure(
    spark: SparkSession, files: Path, folder: Path, common: dict[str, str]
) -> Measure:
    """Measure the micro-batches of one stream, without its first."""

    def measure(name: str, options: dict[str, str]) -> float:
        source = spark.readStream.schema("key string, value binary")
        rows = source.option("maxFilesPerTrigger", FILES_A_BATCH).parquet(str(files))
        writer = rows.writeStream.format(name).options(**common, **options)
        checkpoint = tempfile.mkdtemp(dir=folder)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each["numInputRows"]][1:]
        taken_ms = int(sum(each["durationMs"]["triggerExecution"] for each in batches))
        return int(sum(each["numInputRows"] for each in batches)) / taken_ms * 1000

    return measure


def in_turns(measure: Measure, rounds: int) -> dict[str, list[float]]:
    """Measure all sinks, one after the other, in rounds; the first does not count."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        for side, (name, options) in SIDES.items():
            rate = measure(name, options)
            if number:
                found[side].append(rate)
    return found


def show(title: str, rates: dict[str, list[float]]) -> None:
    """Print the medians, and each beside the connector's."""
    base = median(rates["jvm connector"])
    for side, found in rates.items():
        every = " ".join(f"{rate / 1000:.0f}" for rate in found)
        middle = median(found)
        line = (
            f"{title:15} {side:20} {middle / 1000:7.0f} k rows/s  {middle / base:5.2f}x  ({every})"
        )
        print(line, flush=True)


if __name__ == "__main__":
    main()
