"""Dialogues of Spark's own Kafka connector with a broker, in one Spark session.

    python spark_dialogues.py BOOTSTRAP JARS NAME...

prints a line for each name: `pass NAME`, or `fail NAME` and the error. It is a separate process,
since jars must be there when the JVM starts.
"""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.support.loads.load import create_topic

FIRST_MS = 1_700_000_000_000
PATIENCE_S = 120.0
HEADERS = "array(struct('h' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value)) AS headers"
_numbers = count()


class Talk:
    """The common resources of all dialogues."""

    def __init__(self, spark: SparkSession, bootstrap: str) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.brokers = {"kafka.bootstrap.servers": bootstrap}

    def topic(self, name: str, partitions: int = 2) -> str:
        """Create a topic that no other dialogue uses."""
        made = f"spark-{name}-{os.getpid()}-{next(_numbers)}"
        create_topic(self.bootstrap, made, partitions)
        return made

    def fill(self, topic: str, first: int, end: int) -> None:
        """Write numbers as values, ten milliseconds apart."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for number in range(first, end):
            at = FIRST_MS + 10 * number
            producer.produce(topic, str(number), partition=number % 2, timestamp=at)
        assert producer.flush(30) == 0

    def read(self, **options: str) -> DataFrame:
        """Read a batch."""
        return self.spark.read.format("kafka").options(**self.brokers, **options).load()

    def stream(self, **options: str) -> DataFrame:
        """Read a stream."""
        reader = self.spark.readStream.format("kafka").options(**self.brokers)
        return reader.options(startingOffsets="earliest", **options).load()

    def numbers(self, **options: str) -> list[int]:
        """Return the numbers in a topic, in order."""
        rows = self.read(**options).select(F.col("value").cast("string").cast("int")).collect()
        return sorted(row.value for row in rows)


def batches(talk: Talk) -> None:
    """A read returns what a batch wrote: keys, values, headers, partitions, tombstones."""
    topic = talk.topic("batch")
    rows = talk.spark.range(100).selectExpr(
        "CAST(id AS STRING) AS key",
        "IF(id % 10 = 0, NULL, CAST(id AS STRING)) AS value",
        "CAST(id % 2 AS INT) AS partition",
        HEADERS,
    )
    rows.write.format("kafka").options(**talk.brokers, topic=topic).save()
    found = talk.read(subscribe=topic, includeHeaders="true").collect()
    assert sorted(int(row.key) for row in found) == list(range(100))
    assert all(row.partition == int(row.key) % 2 for row in found)
    assert sum(row.value is None for row in found) == 10
    assert all(bytes(row.headers[0].value) == bytes(row.key) for row in found)
    half = f'{{"{topic}": {{"0": 10, "1": -2}}}}'
    assert talk.read(subscribe=topic, startingOffsets=half).count() == 90


def restarts(talk: Talk) -> None:
    """A stream continues after a restart."""
    source, sink = talk.topic("source"), talk.topic("sink")
    with tempfile.TemporaryDirectory() as folder:
        for first in (0, 50):
            talk.fill(source, first, first + 50)
            stream = talk.stream(subscribe=source, maxOffsetsPerTrigger="20").select("value")
            query = (
                stream.writeStream.format("kafka")
                .options(**talk.brokers, topic=sink, checkpointLocation=folder)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    assert talk.numbers(subscribe=sink) == list(range(100))


def patterns(talk: Talk) -> None:
    """A read finds topics by pattern."""
    for each in range(2):
        talk.fill(talk.topic("pattern"), 10 * each, 10 * each + 10)
    assert talk.numbers(subscribePattern="spark-pattern-.*") == list(range(20))


def times(talk: Talk) -> None:
    """A read may start and end at a time."""
    topic = talk.topic("times")
    talk.fill(topic, 0, 40)
    bounds = {"startingTimestamp": str(FIRST_MS + 100), "endingTimestamp": str(FIRST_MS + 300)}
    assert talk.numbers(subscribe=topic, **bounds) == list(range(10, 30))
    by_partition = f'{{"{topic}": {{"0": {FIRST_MS + 200}, "1": {FIRST_MS + 200}}}}}'
    found = talk.numbers(subscribe=topic, startingOffsetsByTimestamp=by_partition)
    assert found == list(range(20, 40))


def committed(talk: Talk) -> None:
    """A read_committed read hides aborted transactions."""
    topic = talk.topic("committed", 1)
    producer = Producer({"bootstrap.servers": talk.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for number, is_kept in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(topic, str(number))
        producer.flush(30)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    isolated = {"kafka.isolation.level": "read_committed"}
    assert talk.numbers(subscribe=topic) == [0, 1, 2]
    assert talk.numbers(subscribe=topic, **isolated) == [0, 2]


def grown(talk: Talk) -> None:
    """A running stream finds topics that are created later."""
    talk.fill(talk.topic("grown"), 0, 10)
    sink = talk.topic("sink")
    with tempfile.TemporaryDirectory() as folder:
        options = {**talk.brokers, "topic": sink, "checkpointLocation": folder}
        fresh = {"kafka.metadata.max.age.ms": "1000"}
        stream = talk.stream(subscribePattern="spark-grown-.*", **fresh)
        query = stream.select("value").writeStream.format("kafka").options(**options).start()
        try:
            wait(partial(holds, talk, sink, 10), query)
            talk.fill(talk.topic("grown"), 10, 20)
            wait(partial(holds, talk, sink, 20), query)
        finally:
            query.stop()
    assert talk.numbers(subscribe=sink) == list(range(20))


def real_time(talk: Talk) -> None:
    """Real-time mode: rows come out while the batch runs, and none twice after it."""
    source, sink = talk.topic("source"), talk.topic("sink")
    stream = talk.stream(subscribe=source).select(
        (F.col("value").cast("string").cast("int") * 2).cast("string").alias("value")
    )
    with tempfile.TemporaryDirectory() as folder:
        writer: Any = stream.writeStream.format("kafka").outputMode("update")
        options = {**talk.brokers, "topic": sink, "checkpointLocation": folder}
        query = writer.options(**options).trigger(realTime="10 seconds").start()
        try:
            for end in (50, 100):
                talk.fill(source, end - 50, end)
                wait(partial(holds, talk, sink, end), query)
            wait(lambda: any(each["numInputRows"] for each in query.recentProgress), query)
        finally:
            query.stop()
    assert talk.numbers(subscribe=sink) == list(range(0, 200, 2))


def holds(talk: Talk, topic: str, least: int) -> bool:
    """Return whether this many rows have arrived."""
    return len(talk.numbers(subscribe=topic)) >= least


def wait(is_done: Callable[[], bool], query: Any) -> None:
    """Wait for a condition; fail if the query fails, or after a timeout."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_done():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline_s, "the condition was not met in time"
        time.sleep(0.2)


DIALOGUES = {
    "batches": batches,
    "restarts": restarts,
    "patterns": patterns,
    "times": times,
    "committed": committed,
    "grown": grown,
    "real-time": real_time,
}


def main(bootstrap: str, jars: str, *names: str) -> None:
    """Run the dialogues."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        # Real-time mode needs a core for each task of a query, and a read runs beside it.
        SparkSession.builder.master("local[4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", jars)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for name in names:
        begun_s = time.monotonic()
        try:
            DIALOGUES[name](Talk(spark, bootstrap))
        except Exception:  # noqa: BLE001 - the outcome of a dialogue
            lines = " | ".join(traceback.format_exc().splitlines()[-12:])
            sys.stdout.write(f"fail {name} {lines}\n")
        else:
            sys.stdout.write(f"pass {name} {time.monotonic() - begun_s:.1f} s\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
