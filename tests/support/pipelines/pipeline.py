"""Runs the telemetry pipeline in processes that can be killed, and compares their results.

    with Pipeline(bootstrap, lake, settings) as pipeline:
        pipeline.kill_driver()

A pipeline is `barnabas telemetry run`: a Python process (the driver), its JVM, and the Python
workers that the JVM starts. Each can be killed; where the driver ends with it, it is started again.
"""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from barnabas.telemetry.lake.lake_tables import TABLES
from barnabas.testing.waiting import eventually

COMMAND = "from barnabas.cli.main import main; main()"
START_PATIENCE_S = 300.0
STOP_PATIENCE_S = 300.0
WORKER_MARKS = ("pyspark.daemon", "pyspark.worker", "pyspark/daemon", "pyspark/worker")
Row = tuple[Any, ...]


def telemetry(*arguments: str) -> list[str]:
    """Return the command line of a telemetry command."""
    return [sys.executable, "-c", COMMAND, "telemetry", *arguments]


class Pipeline:
    """`barnabas telemetry run`, life after life, on one lake."""

    def __init__(self, bootstrap: str, lake: Path, options: Sequence[str] = ()) -> None:
        self.lake = lake
        self.kills: Counter[str] = Counter()
        self._options = ["--bootstrap", bootstrap, "--lake", str(lake), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = lake.parent / f"{lake.name}.log"

    @property
    def pid(self) -> int:
        """The driver's."""
        assert self._process is not None, "this pipeline was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the driver lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the driver; its batches come later."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                telemetry("run", *self._options, "--json", "--every", "1s"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill_driver(self) -> None:
        """Kill the driver; its JVM meets the end of its input, and goes too."""
        java = self._java()
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(STOP_PATIENCE_S)
        eventually(lambda: not any(_lives(each) for each in java), STOP_PATIENCE_S)
        self.kills["driver"] += 1
        self.start()

    def kill_java(self) -> None:
        """Kill the JVM; the driver cannot go on without."""
        for each in self._java():
            os.kill(each, signal.SIGKILL)
        assert self._process is not None
        code = self._process.wait(STOP_PATIENCE_S)
        assert code == 1, f"exit code {code}\n{self.tail()}"
        self.kills["JVM"] += 1
        self.start()

    def kill_worker(self, rng: random.Random) -> None:
        """Kill one of the Python processes that do the work; the driver must survive it."""
        found = eventually(self.workers, START_PATIENCE_S)
        os.kill(rng.choice(found), signal.SIGKILL)
        self.kills["worker"] += 1

    def workers(self) -> list[int]:
        """Return the Python processes below the JVM."""
        below = _descendants(self.pid)
        return [each for each in below if any(mark in _line(each) for mark in WORKER_MARKS)]

    def wait_for(self, look: Callable[[], bool]) -> None:
        """Wait for something to happen in the lake; a driver that ended meanwhile is a failure."""

        def seen() -> bool:
            assert self.running, f"the driver ended\n{self.tail()}"
            return look()

        eventually(seen, START_PATIENCE_S)

    def stop(self) -> None:
        """Ask it to stop after its batches."""
        if not self.running:
            return
        os.kill(self.pid, signal.SIGTERM)
        assert self._process is not None
        code = self._process.wait(STOP_PATIENCE_S)
        assert code == 0, f"exit code {code}\n{self.tail()}"

    def tail(self) -> str:
        """Return the end of what it said."""
        spark = self.lake / "_logs" / "spark.log"
        texts = [p.read_text(errors="replace")[-3000:] for p in (self._log, spark) if p.exists()]
        return "\n---\n".join(texts)

    def __enter__(self) -> "Pipeline":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            os.kill(self.pid, signal.SIGKILL)
            assert self._process is not None
            self._process.wait(STOP_PATIENCE_S)

    def _java(self) -> list[int]:
        return [each for each in _descendants(self.pid) if "java" in _line(each).split("\0")[0]]


def drain(bootstrap: str, lake: Path, options: Sequence[str] = ()) -> None:
    """Work off what is in the topic."""
    place = ["--bootstrap", bootstrap, "--lake", str(lake)]
    command = telemetry("run", *place, "--once", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def table_rows(lake: Path, table: str) -> Counter[Row]:
    """Return the rows of a table, each with how often it is there."""
    rows: Counter[Row] = Counter()
    for file in sorted((lake / table).glob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            rows[tuple(_plain(value) for value in row.values())] += 1
    return rows


def tables(lake: Path) -> dict[str, Counter[Row]]:
    """Return all tables of a lake."""
    return {name: table_rows(lake, name) for name in TABLES}


def _plain(value: object) -> object:
    """Return a value that can be counted."""
    if isinstance(value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    return tuple(_plain(each) for each in value) if isinstance(value, list) else value


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            yield int(entry.name), int(fields[1])


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and bool(_line(pid))


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
