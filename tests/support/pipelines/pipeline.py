"""Runs the telemetry pipeline in processes that can be killed, and compares their results.

    with Pipeline(bootstrap, lake, settings) as pipeline:
        pipeline.kill_driver()

A pipeline is `barnabas telemetry run`: a Python process (the driver), its JVM, and the Python
workers that the JVM starts. Each can be killed. If the driver ends with it, it is started again.
"""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from barnabas.telemetry.lake.lake_tables import TABLES
from barnabas.testing.waiting import eventually
from tests.support.pipelines.process_tree import (
    command_line,
    descendants,
    is_python_worker,
    is_running,
)

COMMAND = "from barnabas.cli.main import main; main()"
START_PATIENCE_S = 300.0
STOP_PATIENCE_S = 300.0
Row = tuple[Any, ...]


def telemetry(*arguments: str) -> list[str]:
    """Return the command line of a telemetry command."""
    return [sys.executable, "-c", COMMAND, "telemetry", *arguments]


class Pipeline:
    """Runs `barnabas telemetry run` on one lake, and restarts it."""

    def __init__(self, bootstrap: str, lake: Path, options: Sequence[str] = ()) -> None:
        self.lake = lake
        self.kills: Counter[str] = Counter()
        self._options = ["--bootstrap", bootstrap, "--lake", str(lake), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = lake.parent / f"{lake.name}.log"

    @property
    def pid(self) -> int:
        """The process id of the driver."""
        assert self._process is not None, "this pipeline was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the driver runs."""
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
        """Kill the driver; its JVM reads the end of its input, and exits too."""
        java = self._java()
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(STOP_PATIENCE_S)
        eventually(lambda: not any(is_running(each) for each in java), STOP_PATIENCE_S)
        self.kills["driver"] += 1
        self.start()

    def kill_java(self) -> None:
        """Kill the JVM; the driver cannot continue without it."""
        for each in self._java():
            os.kill(each, signal.SIGKILL)
        assert self._process is not None
        code = self._process.wait(STOP_PATIENCE_S)
        assert code == 1, f"exit code {code}\n{self.tail()}"
        self.kills["JVM"] += 1
        self.start()

    def kill_worker(self, rng: random.Random) -> None:
        """Kill one of the Python workers; the driver must survive it."""
        found = eventually(self.workers, START_PATIENCE_S)
        os.kill(rng.choice(found), signal.SIGKILL)
        self.kills["worker"] += 1

    def workers(self) -> list[int]:
        """Return the Python processes below the JVM."""
        return [each for each in descendants(self.pid) if is_python_worker(each)]

    def wait_for(self, look: Callable[[], bool]) -> None:
        """Wait for a condition on the lake; fail if the driver ends meanwhile."""

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
        """Return the end of its output."""
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
        below = descendants(self.pid)
        return [each for each in below if "java" in command_line(each).split("\0")[0]]


def drain(bootstrap: str, lake: Path, options: Sequence[str] = ()) -> None:
    """Process everything that is in the topic."""
    place = ["--bootstrap", bootstrap, "--lake", str(lake)]
    command = telemetry("run", *place, "--once", *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def table_rows(lake: Path, table: str) -> Counter[Row]:
    """Return the rows of a table, each with its count."""
    rows: Counter[Row] = Counter()
    for file in sorted((lake / table).glob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            rows[tuple(_plain(value) for value in row.values())] += 1
    return rows


def tables(lake: Path) -> dict[str, Counter[Row]]:
    """Return all tables of a lake."""
    return {name: table_rows(lake, name) for name in TABLES}


def _plain(value: object) -> object:
    """Return a hashable form of a value."""
    if isinstance(value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    return tuple(_plain(each) for each in value) if isinstance(value, list) else value
