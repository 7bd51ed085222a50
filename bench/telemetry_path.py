"""Measures the telemetry pipeline in samples per second: topic to bronze, silver and gold.

    python -m bench.telemetry_path --gpus 100 1000 16384 --seconds 60

For each size of fleet a topic is filled with snapshots of 25 metrics at 1 Hz, then each job runs
alone until it has processed its input. The output has wall time, and CPU time of Spark (JVM and
Python workers) and of the broker, which is more reliable on a busy machine. A last run, "all", runs
bronze and silver in parallel and then both golds, on an empty lake. Sessions are warmed up on a
small topic first, because a pipeline runs for months.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.jobs.spark_session import UNIX_SOCKETS
from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples import topic_setup
from barnabas.telemetry.samples.metrics import METRICS
from barnabas.testing.process import BrokerSubprocess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOAL = 410_000
SNAPSHOT = [("content-type", b"application/vnd.barnabas.gpu-snapshot+json")]
TICK = [("content-type", b"application/vnd.barnabas.tick+json")]
TICKS_S = os.sysconf("SC_CLK_TCK")
OWN = {
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "2",
    UNIX_SOCKETS: "true",
}
"""As `barnabas telemetry run` sets them on two cores."""


@dataclass(frozen=True)
class Timing:
    """The cost of one job."""

    gpus: int
    messages: int
    job: str
    wall_s: float
    spark_cpu_s: float
    broker_cpu_s: float

    @property
    def samples_per_s(self) -> float:
        """The rate."""
        return self.messages * len(METRICS) / self.wall_s

    def row(self) -> str:
        """Return a line for the terminal."""
        cpu_us = 1e6 * (self.spark_cpu_s + self.broker_cpu_s) / self.messages
        return (
            f"{self.gpus:>6} GPUs  {self.job:<9} {self.wall_s:7.1f} s  "
            f"{self.samples_per_s:>11,.0f} samples/s  {cpu_us:6.1f} us CPU a message "
            f"(broker {1e6 * self.broker_cpu_s / self.messages:.1f})"
        )


def templates(gpus: int, rng: random.Random) -> list[tuple[str, bytes]]:
    """Return a key and a snapshot for each GPU, with a place for the time."""
    return [
        (key := f"GPU-00000000-0000-4000-8000-{n:012x}", _template(n, key, rng))
        for n in range(gpus)
    ]


def _template(number: int, key: str, rng: random.Random) -> bytes:
    values = {}
    for metric in METRICS:
        value = metric.low + rng.random() * min(metric.high - metric.low, 1000)
        values[metric.dcgm] = round(value, 2) if metric.unit in {"W", "ratio"} else int(value)
    document = {
        "timestamp": "@",
        "gpu_id": key,
        "device": f"nvidia{number % 8}",
        "hostname": f"node-{number // 8:04d}",
        "model": "NVIDIA H200",
        "labels": {"namespace": f"team-{number % 7}", "pod": f"train-{number // 16}"},
        "metrics": values,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def fill(bootstrap: str, gpus: int, seconds: int) -> int:
    """Fill the topic with a fleet's snapshots, and a tick that closes all windows."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1_000_000,
         "queue.buffering.max.messages": 200_000, "compression.type": "lz4"}
    )  # fmt: skip
    fleet = templates(gpus, random.Random(1))
    begin = datetime.now(UTC) - timedelta(seconds=seconds)
    for second in range(seconds):
        moment = begin + timedelta(seconds=second)
        text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
        for key, template in fleet:
            _send(producer, template.replace(b'"@"', b'"' + text + b'"', 1), SNAPSHOT, key)
    end = (begin + timedelta(seconds=seconds + 125)).isoformat(timespec="milliseconds")
    _send(
        producer, json.dumps({"timestamp": end, "hostname": "bench", "tick": True}).encode(), TICK
    )
    producer.flush()
    return gpus * seconds


def _send(
    producer: Producer, value: bytes, headers: list[tuple[str, bytes]], key: str | None = None
) -> None:
    while True:
        try:
            producer.produce(topics.SAMPLES, value, key, headers=headers)
        except BufferError:
            producer.poll(0.5)
        else:
            producer.poll(0)
            return


class CpuMeter:
    """Adds up the CPU seconds of a process and all its descendants, including ended ones.

    It samples five times a second: usage between the last sample and the end of a process is lost.
    """

    def __init__(self, root: int, without: int | None = None) -> None:
        self._root, self._without = root, without
        self._seen: dict[int, float] = {}
        self._base: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "CpuMeter":
        self._base = self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._seen |= self._look()

    @property
    def cpu_s(self) -> float:
        """The seconds so far."""
        return sum(seen - self._base.get(pid, 0.0) for pid, seen in self._seen.items())

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            self._seen |= self._look()

    def _look(self) -> dict[int, float]:
        stats = dict(_processes())
        chosen, found = {self._root}, {self._root}
        while found:
            found = {pid for pid, (parent, _) in stats.items() if parent in found} - chosen
            found.discard(self._without or 0)
            chosen |= found
        return {pid: stats[pid][1] for pid in chosen if pid in stats}


def _processes() -> Iterator[tuple[int, tuple[int, float]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry.name), (int(fields[1]), sum(map(int, fields[11:13])) / TICKS_S)


def run_jobs(
    spark: "SparkSession", broker: BrokerSubprocess, folder: Path, gpus: int, count: int
) -> Iterator[Timing]:
    """Start a broker with a filled topic; both are removed afterwards."""
    settings = pipeline_jobs.JobSettings(bootstrap=broker.bootstrap, lake=str(folder / "lake"))
    together = pipeline_jobs.JobSettings(bootstrap=broker.bootstrap, lake=str(folder / "lake-all"))
    runs = [(job.name, settings, (job,)) for job in pipeline_jobs.JOBS] + [
        ("all", together, pipeline_jobs.JOBS)
    ]
    for name, chosen, what in runs:
        own, pid = os.getpid(), broker.process.pid
        begin_s = time.monotonic()
        with CpuMeter(own, without=pid) as spark_cpu, CpuMeter(pid) as broker_cpu:
            pipeline_jobs.drain(spark, chosen, what)
        wall_s = time.monotonic() - begin_s
        yield Timing(gpus, count, name, wall_s, spark_cpu.cpu_s, broker_cpu.cpu_s)


@contextmanager
def fleet_on_topic(gpus: int, seconds: int) -> Iterator[tuple[BrokerSubprocess, Path, int]]:
    """Return a session with the settings of the jobs."""
    folder = Path(tempfile.mkdtemp(prefix="barnabas-telemetry-bench-"))
    try:
        with BrokerSubprocess(folder / "data") as broker:
            topic_setup.create_missing({"bootstrap.servers": broker.bootstrap})
            yield broker, folder, fill(broker.bootstrap, gpus, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def session() -> "SparkSession":
    """Measure and print; rows are also appended to a file of JSON lines."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where Java is missing, --help works

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("telemetry path")
    own = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in {**pipeline_jobs.SESSION, **own, **OWN}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    """Measure and print; rows also go to a file of JSON lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gpus", type=int, nargs="+", default=[100, 1000, 16_384])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="append results to this file")
    given = parser.parse_args()
    spark = session()
    with fleet_on_topic(200, 20) as (broker, folder, count):
        list(run_jobs(spark, broker, folder, 200, count))
    print(f"goal: {GOAL:,} samples/s; {os.cpu_count()} cores", flush=True)
    for gpus in given.gpus:
        with fleet_on_topic(gpus, given.seconds) as (broker, folder, count):
            for timing in run_jobs(spark, broker, folder, gpus, count):
                print(timing.row(), flush=True)
                if given.json:
                    with given.json.open("a") as file:
                        file.write(json.dumps(asdict(timing)) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
