"""A stream whose driver, workers and broker are killed repeatedly writes each row once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from barnabas.testing.process import BrokerSubprocess
from tests.support.loads.topic_reading import committed_records, create_topic

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.slow, pytest.mark.chaos]


ROWS_A_FILE = 5000
KILLS = int(os.environ.get("CHAOS_KILLS", "6"))
FILES = 2 * KILLS + 4
PATIENCE_S = 600
VICTIMS = ("driver", "worker", "broker")

STREAM = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from barnabas.spark.sink.writers import StreamWriter

class SinkAlone(DataSource):
    @classmethod
    def name(cls):
        return "sink-alone"
    def streamWriter(self, schema, overwrite):
        return StreamWriter(schema, self.options)

bootstrap, folder, checkpoint = sys.argv[1:]
spark = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false")
         .config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.dataSource.register(SinkAlone)
rows = spark.readStream.option("maxFilesPerTrigger", 1).text(folder)
rows = rows.repartition(2, "value").selectExpr("value", "value AS key")
query = (rows.writeStream.format("sink-alone").option("kafka.bootstrap.servers", bootstrap)
         .option("topic", "out").option("checkpointLocation", checkpoint)
         .trigger(availableNow=True).start())
print("started", flush=True)
query.awaitTermination()
"""


class Driver:
    """The process of a stream, with all of its child processes."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._log = (folder / "driver.log").open("ab")
        command = [sys.executable, "-c", STREAM, bootstrap, str(folder / "in")]
        self.process = subprocess.Popen(
            [*command, str(folder / "checkpoint")],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def finished(self, seconds: float) -> bool:
        try:
            return self.process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_a_worker(self, rng: Random) -> None:
        """Kill one Python worker, in which a task runs."""
        listed = subprocess.run(
            ["pgrep", "-s", str(self.process.pid), "-f", "pyspark.daemon"],
            capture_output=True,
            text=True,
            check=False,
        )
        workers = [int(number) for number in listed.stdout.split()]
        assert workers, "a stream that has done a batch has workers"
        os.kill(rng.choice(workers), signal.SIGKILL)

    def close(self) -> None:
        """Kill the remaining processes, and close their output."""
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


@pytest.mark.timeout(1800)
def test_every_row_once_with_any_kills(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rng = Random(4)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        first = number * ROWS_A_FILE
        lines = "\n".join(str(each) for each in range(first, first + ROWS_A_FILE))
        (tmp_path / "in" / f"{number:03}.txt").write_text(lines)
    with BrokerSubprocess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, "out", 3)
        kills = _run_to_the_end(broker, tmp_path, rng)
        values = sorted(
            int(each.value or b"") for each in committed_records(broker.bootstrap, "out")
        )
    record_property("kills", kills)
    record_property("rows", len(values))
    assert values == list(range(FILES * ROWS_A_FILE))
    assert sum(kills.values()) >= KILLS


def _run_to_the_end(broker: BrokerSubprocess, folder: Path, rng: Random) -> dict[str, int]:
    """Kill something after each batch, at any moment of the next ones; stop at the end of input."""
    kills = {"driver": 0, "worker": 0, "broker": 0}
    deadline_s = monotonic() + PATIENCE_S * 2
    done = _batches_done(folder)
    driver = Driver(broker.bootstrap, folder)
    try:
        while not driver.finished(rng.uniform(0.1, 2)):
            assert monotonic() < deadline_s, (folder / "driver.log").read_text()[-3000:]
            if driver.process.poll() is not None:
                driver.close()
                driver = Driver(broker.bootstrap, folder)
            elif sum(kills.values()) < KILLS and _batches_done(folder) > done:
                done = _batches_done(folder)
                victim = VICTIMS[sum(kills.values()) % len(VICTIMS)]
                kills[victim] += 1
                driver = _kill(victim, driver, broker, folder, rng)
    finally:
        driver.close()
    return kills


def _batches_done(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def _kill(
    victim: str, driver: Driver, broker: BrokerSubprocess, folder: Path, rng: Random
) -> Driver:
    match victim:
        case "driver":
            driver.kill()
            driver.close()
            return Driver(broker.bootstrap, folder)
        case "worker":
            driver.kill_a_worker(rng)
        case _:
            broker.restart()
    return driver
