"""Runs the storm's query once: a process with its JVM and its Python workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.support.pipelines.spark_cluster import SparkCluster

STARTED = "started"
"""The line that the process prints once the query runs."""
JOB = "tests.support.pipelines.spark_storm.job"
ENDED_S = 300.0


class Driver:
    """A query that runs until it is done, stops with a message, or is killed."""

    def __init__(self, log: Path, options: dict[str, str]) -> None:
        """Start it; return once the query has started or the process has ended."""
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        self._log = log
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", JOB, *words],
                stdout=subprocess.PIPE,
                stderr=stream,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == STARTED.encode():
                break

    def ended(self, seconds: float) -> int | None:
        """Return the exit code, if it ends within the time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def log_text(self) -> str:
        """Return its log."""
        return self._log.read_text(errors="replace")

    def kill(self, victim: str, rng: Random, cluster: SparkCluster | None) -> bool:
        """Kill the driver with all its processes, its JVM, an executor, or one Python worker.

        Executors are processes of a cluster, if there is one. Returns whether there was a victim.
        """
        if victim == "driver":
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            return True
        found = self._victims(victim, cluster)
        if found:
            os.kill(rng.choice(found), signal.SIGKILL)
        return bool(found)

    def _victims(self, victim: str, cluster: SparkCluster | None) -> list[int]:
        if victim == "jvm":
            return self._processes("java")
        if cluster is None:
            return self._processes("pyspark.daemon") if victim == "worker" else []
        return cluster.python_workers() if victim == "worker" else cluster.executors()

    def close(self) -> None:
        """Kill the remaining processes."""
        if self._processes(""):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(ENDED_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _processes(self, pattern: str) -> list[int]:
        command = ["pgrep", "-s", str(self._process.pid), "-f", pattern]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        return [int(number) for number in listed.stdout.split()]
