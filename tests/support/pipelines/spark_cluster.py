"""Starts a standalone Spark cluster on this machine: a master and workers, from pip's pyspark.

    with SparkCluster(folder, workers=2) as cluster:
        cluster.master      # spark://127.0.0.1:PORT

Each worker has one core and a loopback address of its own: Spark takes an address for a host, and
runs the copy of a slow task on another host. Its workers run `cluster.python`, which does not find
this package, so they find only what Spark ships; or any Python that a job names.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from barnabas.testing.waiting import eventually
from tests.support.pipelines.process_tree import descendants, is_executor, is_python_worker

PATIENCE_S = 120.0
HOST = "127.0.0.1"
WORKER_HOST = "127.0.0.{}"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
HIDING = """import sys
from importlib.machinery import PathFinder


class OnlyFromZip:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("barnabas", "pyspark_barnabas"):
            return None
        found = PathFinder.find_spec(name, [p for p in sys.path if p.endswith(".zip")])
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


sys.meta_path.insert(0, OnlyFromZip)
"""
"""Code that site imports when Python starts: it finds the package in zip files only."""


def spark_home() -> Path:
    """Return the folder of pip's pyspark, without importing it."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None, "pip install 'barnabas[spark]'"
    assert found.origin is not None
    return Path(found.origin).parent


def _text(log: Path) -> str:
    return log.read_text(errors="replace")


class SparkCluster:
    """A master and its workers, each a process, until the block ends."""

    def __init__(self, folder: Path, *, workers: int = 2, memory: str = "1g") -> None:
        """Take a folder for logs and the workers' files."""
        self._folder = folder
        self._count = workers
        self._memory = memory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    @property
    def python(self) -> Path:
        """Return a Python for the workers: this one, without this package."""
        return self._folder / "python"

    def python_starts(self) -> list[str]:
        """Return the command lines of that Python so far."""
        log = self._folder / "started"
        return log.read_text().splitlines() if log.exists() else []

    def executors(self) -> list[int]:
        """Return the processes of all executors."""
        return [pid for pid in self._below() if is_executor(pid)]

    def python_workers(self) -> list[int]:
        """Return the Python processes below the executors."""
        return [pid for pid in self._below() if is_python_worker(pid)]

    def __enter__(self) -> "SparkCluster":
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_python()
        try:
            log = self._start("master", MASTER, "--port", "0", "--webui-port", "0")
            pattern = r"Starting Spark master at (spark://\S+)"
            self.master = self._said(log, pattern)
            for number in range(self._count):
                self._start_worker(number)
            eventually(lambda: _text(log).count("Registering worker") >= self._count, PATIENCE_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; executors end with their worker."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(PATIENCE_S)

    def _below(self) -> list[int]:
        return [pid for process in self._processes for pid in descendants(process.pid)]

    def _start_worker(self, number: int) -> None:
        name = f"worker-{number}"
        work = self._folder / f"{name}-files"
        options = ["--cores", "1", "--memory", self._memory, "--webui-port", "0"]
        options += ["--work-dir", str(work), self.master]
        self._start(name, WORKER, *options, host=WORKER_HOST.format(number + 1))

    def _start(self, name: str, kind: str, *arguments: str, host: str = HOST) -> Path:
        program = spark_home() / "bin" / "spark-class"
        log = self._folder / f"{name}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [str(program), kind, "--host", host, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=self._environment(os.environ, host),
            )
        self._processes.append(process)
        return log

    def _environment(self, given: Mapping[str, str], host: str) -> dict[str, str]:
        hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")
        kept = {name: value for name, value in given.items() if name not in hidden}
        return {**kept, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}

    def _said(self, log: Path, pattern: str) -> str:
        found = eventually(lambda: re.search(pattern, _text(log)), PATIENCE_S)
        assert found is not None
        return found[1]

    def _write_python(self) -> None:
        (self._folder / "sitecustomize.py").write_text(HIDING)
        hidden = f'PYTHONPATH="{self._folder}:$PYTHONPATH" exec {sys.executable} "$@"'
        script = f'#!/bin/sh\necho "$@" >> {self._folder}/started\n{hidden}\n'
        self.python.write_text(script)
        self.python.chmod(0o755)
