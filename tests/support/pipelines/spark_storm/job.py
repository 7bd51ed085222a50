"""The query that the storm kills: it writes files of sequence numbers to a topic, after a shuffle.

The shuffle has another number of tasks in every life. Some attempts of some tasks are slow, so that
speculation starts; Spark has none in local mode. Second attempts leave a line in a file.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import SparkSession

from barnabas.spark import register
from tests.support.pipelines.spark_storm.driver import STARTED

if TYPE_CHECKING:
    import pyarrow as pa

SLOW_EVERY = 3
SLOW_S = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Run the query until its input is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "folder", "checkpoint", "topic", "master", "attempts"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--files", default="1")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--cores", default="3", help="cores of a cluster")
    given = parser.parse_args(arguments)

    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "10ms",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.executor.cores": "1",
        "spark.cores.max": given.cores,
        "spark.pyspark.python": sys.executable,
    }
    spark = SparkSession.builder.master(given.master).config(map=settings).getOrCreate()
    register(spark)
    rows = spark.readStream.option("maxFilesPerTrigger", given.files).text(given.folder)
    slow = partial(_at_times_slow, given.attempts)
    shuffled = rows.repartition(given.tasks, "value").mapInArrow(slow, "value string")
    query = (
        shuffled.selectExpr("value", "value AS key")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", given.bootstrap)
        .option("topic", given.topic)
        .option("checkpointLocation", given.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    sys.stdout.write(STARTED + "\n")
    sys.stdout.flush()
    query.awaitTermination()
    return 0


def _at_times_slow(
    attempts: str, batches: Iterator["pa.RecordBatch"]
) -> Iterator["pa.RecordBatch"]:
    task = TaskContext.get()
    assert task is not None
    if task.attemptNumber():
        with Path(attempts).open("a") as stream:
            stream.write(f"{task.partitionId()} {task.attemptNumber()}\n")
    elif task.partitionId() % SLOW_EVERY == 1:
        time.sleep(SLOW_S)
    yield from batches


if __name__ == "__main__":
    sys.exit(main())
