"""Kills driver, JVM, executors, workers and brokers of a query repeatedly, then checks its output.

    python -m tests.support.pipelines.spark_storm --kills 50 --seed 1 --brokers 3

Every life of the query has another number of cores and tasks, most on a standalone cluster with
speculation, some in one process. From time to time an older
checkpoint is restored, or copied for a query with another topic. Such a life must end by itself
with the documented message, or write nothing that is there already. In the end every sequence
number must be in the topic once. Zero problems in n kills bound the probability of a problem per
kill at about 3 / n. SIGTERM lets the query finish its input without further kills.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.process import BrokerSubprocess
from tests.support.loads.topic_reading import create_topic
from tests.support.pipelines.spark_cluster import SparkCluster
from tests.support.pipelines.spark_storm.driver import Driver
from tests.support.pipelines.spark_storm.sequence_check import check

ROWS_A_FILE = 2000
PARTITIONS = 3
CLUSTER = "cluster"
MASTERS = ("local[1,4]", "local[8,4]", CLUSTER, CLUSTER, CLUSTER)
CLUSTER_WORKERS = 3
TASKS = (1, 2, 3, 5, 8)
VICTIMS = ("driver", "jvm", "worker", "executor", "broker")
FATAL = ("driver", "jvm")
"""The query ends with these; it survives the kill of any other victim."""
KILLS_A_LIFE = 4
PROMISED = ("ReplayError", "DeliveryError", "LinkError")
"""Errors with which a query may stop by itself; its output must be right nevertheless."""
TOPIC, ELSEWHERE = "out", "elsewhere"
LIFE_S = 600.0


class Storm:
    """A query, its brokers and its checkpoint."""

    def __init__(
        self,
        folder: Path,
        brokers: ClusterProcesses | BrokerSubprocess,
        cluster: SparkCluster,
        rng: Random,
        ending: Event,
    ) -> None:
        self._folder = folder
        self._brokers = brokers
        self._cluster = cluster
        self._is_on_cluster = False
        self._rng = rng
        self._ending = ending
        self._lives = 0
        self.files = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        (folder / "in").mkdir()

    @property
    def checkpoint(self) -> Path:
        """The checkpoint folder of the query."""
        return self._folder / "checkpoint"

    def run(self, kills: int) -> None:
        """Run the given number of kills, then let the query run to the end of its input."""
        self._add_files(2)
        while self.counts["kill"] < kills and not self._ending.is_set():
            self._add_files(KILLS_A_LIFE)
            self._life(kills=min(KILLS_A_LIFE, kills - self.counts["kill"]))
            if self._lives % 4 == 2:
                self._backup()
            if self._lives % 4 == 0:
                self._older_checkpoint()
        for _ in range(5):
            if self._life(kills=0):
                return
        self.problems.append("the query did not come to the end of its input in 5 lives")

    def _add_files(self, count: int) -> None:
        for _ in range(count):
            first = self.files * ROWS_A_FILE
            lines = "\n".join(str(each) for each in range(first, first + ROWS_A_FILE))
            (self._folder / "in" / f"{self.files:05}.txt").write_text(lines)
            self.files += 1

    def _start(self, checkpoint: Path, topic: str = TOPIC, files: str = "1") -> Driver:
        self._lives += 1
        kills = f"{self.counts['kill']} kills, {self.files} files of input"
        sys.stderr.write(f"life {self._lives}: {kills}\n")
        master = self._rng.choice(MASTERS)
        self._is_on_cluster = master == CLUSTER
        self.counts["lives on the cluster"] += self._is_on_cluster
        options = {
            "bootstrap": self._brokers.bootstrap,
            "folder": str(self._folder / "in"),
            "checkpoint": str(checkpoint),
            "topic": topic,
            "master": self._cluster.master if self._is_on_cluster else master,
            "cores": str(self._rng.randint(1, CLUSTER_WORKERS)),
            "attempts": str(self._folder / "attempts"),
            "files": files,
            "tasks": str(self._rng.choice(TASKS)),
        }
        return Driver(self._folder / f"life-{self._lives}.log", options)

    def _life(self, *, kills: int) -> bool:
        """Run the query, with up to so many kills; return whether it reached the end."""
        driver = self._start(self.checkpoint)
        try:
            for _ in range(kills):
                victim = self._kill_after_a_batch(driver)
                if victim is None or victim in FATAL:
                    break
            return self._judged(driver, driver.ended(LIFE_S))
        finally:
            driver.close()

    def _kill_after_a_batch(self, driver: Driver) -> str | None:
        """Wait for the end of a batch, then kill; return the victim, or None without one."""
        done = self._batches()
        deadline_s = monotonic() + LIFE_S
        while self._batches() == done and monotonic() < deadline_s:
            if driver.ended(0.05) is not None:
                return None
        if driver.ended(self._rng.uniform(0, 1.5)) is not None:
            return None
        cluster = self._cluster if self._is_on_cluster else None
        # The kinds that were killed least come first. Not every life has processes of each kind.
        for victim in sorted(VICTIMS, key=lambda each: self.counts[f"kill of {each}"]):
            if victim == "broker":
                self._kill_a_broker()
            elif not driver.kill(victim, self._rng, cluster):
                continue
            self.counts["kill"] += 1
            self.counts[f"kill of {victim}"] += 1
            return victim
        return None

    def _kill_a_broker(self) -> None:
        if isinstance(self._brokers, BrokerSubprocess):
            self._brokers.restart()
            return
        node = self._rng.choice(list(self._brokers.nodes.values()))
        node.kill()
        node.spawn()
        self._brokers.wait_healthy()

    def _judged(self, driver: Driver, code: int | None) -> bool:
        """Record how a life has ended; a query that stops by itself must give a known reason."""
        if code == 0:
            self.counts["end of input"] += 1
            return True
        log_text = driver.log_text()
        promised = next((name for name in PROMISED if f"{name}:" in log_text), None)
        self.counts[f"stopped with {promised}" if promised else f"ended with {code}"] += 1
        if code is None:
            self.problems.append(f"life {self._lives} did not end within {LIFE_S} s")
        if promised == "ReplayError":
            self.problems.append(f"life {self._lives} stopped with {_shown(log_text)}")
        return False

    def count_attempts(self) -> None:
        """Count the second and later attempts of tasks, by speculation or after a failure."""
        noted = self._folder / "attempts"
        self.counts["second attempts"] = (
            len(noted.read_text().split("\n")) - 1 if noted.exists() else 0
        )

    def _batches(self) -> int:
        return len(list((self.checkpoint / "commits").glob("[0-9]*")))

    def _backup(self) -> None:
        if self._batches() and not (self._folder / "backup").exists():
            shutil.copytree(self.checkpoint, self._folder / "backup")

    def _older_checkpoint(self) -> None:
        """Run the query from a backup, with the same batches, larger ones, or another topic."""
        backup = self._folder / "backup"
        if not backup.exists() or len(list((backup / "commits").glob("[0-9]*"))) >= self._batches():
            return
        kind = ("same batches", "larger batches", "another topic")[self.counts["older"] % 3]
        self.counts["older"] += 1
        driver = self._start(
            backup,
            ELSEWHERE if kind == "another topic" else TOPIC,
            "3" if kind == "larger batches" else "1",
        )
        try:
            code = driver.ended(LIFE_S)
        finally:
            driver.close()
        self.counts[f"{kind}: {'end of input' if code == 0 else 'stopped'}"] += 1
        if code == 0 and kind == "same batches":
            # It has skipped what was there and written what was missing: continue from here.
            shutil.rmtree(self.checkpoint)
            backup.rename(self.checkpoint)
            return
        if "ReplayError" not in driver.log_text():
            self.problems.append(f"{kind}: no ReplayError, but {_shown(driver.log_text())}")
        shutil.rmtree(backup)


def _shown(log_text: str) -> str:
    lines = [line for line in log_text.splitlines() if "Error" in line]
    return " | ".join(lines[-3:])[-600:]


def main(arguments: list[str] | None = None) -> int:
    """Run a storm; return 0 if there are no problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--report", type=Path)
    given = parser.parse_args(arguments)
    report = {**vars(given), "report": None, **_storm(given.kills, given.seed, given.brokers)}
    text = json.dumps(report, indent=2)
    sys.stdout.write(text + "\n")
    if given.report is not None:
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(text)
    return 1 if report["wrong"] else 0


def _storm(kills: int, seed: int, count: int) -> dict[str, object]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-storm-")))
        brokers: ClusterProcesses | BrokerSubprocess
        if count == 1:
            brokers = stack.enter_context(BrokerSubprocess(folder / "data"))
        else:
            brokers = stack.enter_context(ClusterProcesses(folder, brokers=count))
        for topic in (TOPIC, ELSEWHERE):
            create_topic(brokers.bootstrap, topic, PARTITIONS)
        ending = Event()
        signal.signal(signal.SIGTERM, lambda *_: ending.set())
        cluster = stack.enter_context(SparkCluster(folder / "spark", workers=CLUSTER_WORKERS))
        storm = Storm(folder, brokers, cluster, Random(seed), ending)
        storm.run(kills)
        storm.count_attempts()
        verdict = check(brokers.bootstrap, TOPIC, storm.files * ROWS_A_FILE)
        elsewhere = check(brokers.bootstrap, ELSEWHERE, 0)
    wrong = [*storm.problems]
    if not verdict.is_right:
        wrong.append("the output is not the input")
    if not elsewhere.is_right:
        wrong.append("a copied checkpoint has written elsewhere")
    counts = dict(sorted(storm.counts.items()))
    return {"counts": counts, "verdict": asdict(verdict), "wrong": wrong}


if __name__ == "__main__":
    sys.exit(main())
