"""A batch write in which Spark loses executors, or runs a task twice at the same time.

    python -m tests.support.pipelines.executor_job --mode stage-retry --master spark://... \\
        --bootstrap HOST:PORT --topic out --folder FOLDER

    stage-retry   an executor dies with the output of a stage that others still need: Spark runs
                  that stage and the writing one again, and numbers the attempts from 0
    speculation   a task is slow, and Spark runs a copy of it; both have written all of their rows
    allocation    Spark's dynamic allocation removes an executor whose tasks are done, while the
                  batch still runs

Prints a JSON document: whether it was so.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession

from barnabas.spark import register
from barnabas.testing.waiting import eventually
from tests.support.pipelines.process_tree import executors, is_running, own_executor

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 30_000
TASKS = 6
PATIENCE_S = 90.0
ROOT = Path(__file__).parents[3]

Conf = dict[str, bool | float | int | str | None]
Batches = Iterator["pa.RecordBatch"]

COMMON: Conf = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",
    "spark.pyspark.python": sys.executable,
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.sql.adaptive.enabled": "false",
}
CONFS: dict[str, Conf] = {
    "stage-retry": {},
    "speculation": {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "10ms",
    },
    "allocation": {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
    },
}


def main(arguments: list[str] | None = None) -> int:
    """Write the rows, and print what Spark did."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "master", "folder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--mode", choices=tuple(CONFS), required=True)
    given = parser.parse_args(arguments)

    builder = SparkSession.builder.master(given.master)
    spark = builder.config(map=COMMON | CONFS[given.mode]).getOrCreate()
    register(spark)
    rows, looked = RUNS[given.mode](spark, given.folder)
    (
        rows.write.format("barnabas")
        .mode("append")
        .option("kafka.bootstrap.servers", given.bootstrap)
        .option("topic", given.topic)
        .options(txnAppId=given.mode, txnVersion="1")
        .save()
    )
    sys.stdout.write(json.dumps({"happened": looked()}) + "\n")
    spark.stop()
    return 0


Run = tuple[DataFrame, Callable[[], bool]]


def stage_retry(spark: SparkSession, folder: str) -> Run:
    """Kill all other executors in the first task after the shuffle."""
    context = spark.sparkContext
    lose = partial(_lose_executors, folder, context.applicationId)
    rows = _numbers(spark, TASKS).repartition(TASKS, "value").mapInArrow(lose, "value string")
    return rows, lambda: _stage_attempts(context) > 1


def _lose_executors(folder: str, application: str, batches: Batches) -> Batches:
    mark = Path(folder) / "lost"
    task = TaskContext.get()
    if task is not None and task.partitionId() == 0 and not mark.exists():
        mark.touch()
        for pid in executors(application):
            if pid != own_executor():
                os.kill(pid, signal.SIGKILL)
    yield from batches


def _stage_attempts(context: SparkContext) -> int:
    """Return how often the stage that was tried most often was tried."""
    tracker = context.statusTracker()
    found = (tracker.getStageInfo(number) for number in range(10))
    return 1 + max(each.currentAttemptId for each in found if each is not None)


def speculation(spark: SparkSession, folder: str) -> Run:
    """Let one task wait, after all of its rows, until its copy has all rows, too."""
    wait = partial(_wait_for_copy, folder)
    rows = _numbers(spark, TASKS).repartition(TASKS, "value").mapInArrow(wait, "value string")
    return rows, (Path(folder) / "copy").exists


def _wait_for_copy(folder: str, batches: Batches) -> Batches:
    mark = Path(folder) / "copy"
    task = TaskContext.get()
    yield from batches
    if task is not None and task.partitionId() == 1:
        if task.attemptNumber():
            mark.touch()
        else:
            eventually(mark.exists, PATIENCE_S)


def allocation(spark: SparkSession, folder: str) -> Run:
    """Let one task wait, after all of its rows, until the executor of another one is gone."""
    wait = partial(_wait_for_removal, folder)
    rows = _numbers(spark, 2).mapInArrow(wait, "value string")
    return rows, (Path(folder) / "removed").exists


def _wait_for_removal(folder: str, batches: Batches) -> Batches:
    mark = Path(folder) / "executor"
    task = TaskContext.get()
    yield from batches
    if task is None or task.partitionId():
        mark.with_suffix(".new").write_text(str(own_executor()))
        mark.with_suffix(".new").rename(mark)
        return
    eventually(mark.exists, PATIENCE_S)
    eventually(lambda: not is_running(int(mark.read_text())), PATIENCE_S)
    mark.with_name("removed").touch()


def _numbers(spark: SparkSession, partitions: int) -> DataFrame:
    return spark.range(0, ROWS, 1, partitions).selectExpr("CAST(id AS STRING) AS value")


RUNS: dict[str, Callable[[SparkSession, str], Run]] = {
    "stage-retry": stage_retry,
    "speculation": speculation,
    "allocation": allocation,
}

if __name__ == "__main__":
    sys.exit(main())
