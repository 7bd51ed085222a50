"""Upgrades and rolls back a cluster of two releases under load, broker by broker.

    python -m tests.support.clusters.cluster_upgrade --report build/upgrade.json

Clients record what was acknowledged (`cluster_workload`). In the end no record may be lost or
doubled, and no client may have got an error that is not retriable. Then the feature level is
finalized, and a broker of the old release must not be able to rejoin.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from barnabas.testing.cluster_processes import ClusterNode, ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_ledger import read_acks
from tests.support.clusters.cluster_releases import (
    FIRST_RELEASE,
    ROOT,
    install_release,
    run_release,
)
from tests.support.clusters.cluster_workload import LEDGER, LOAD, Crowd, Workload

SETTINGS: dict[str, object] = {"cluster.snapshot_after_records": 40}
"""A small number, so that each release starts from snapshots that the other one wrote."""
CROWD = Crowd(producers=2, rate=400, transactors=1, members=2)
BETWEEN = 1500
"""How many records are acknowledged between two steps."""
COMMAND = "from barnabas.cli.main import main; main()"
REFUSED = "UNSUPPORTED_VERSION"
PATIENCE_S = 60.0
RELEASES = ROOT / "build" / "releases"


class Upgrade:
    """One cluster, and the results of its upgrade."""

    def __init__(self, folder: Path, old: Path) -> None:
        self._old = old
        self.cluster = ClusterProcesses(folder / "cluster", settings=SETTINGS)
        self.load = Workload(self.cluster.bootstrap, folder / "ledgers", CROWD)
        self.steps: list[dict[str, object]] = []

    def run(self) -> dict[str, object]:
        """Start three brokers of the old release, and the clients; return the problems."""
        for node in self.cluster.nodes.values():
            run_release(node, self._old)
        with self.cluster, self.load:
            self.load.wait_for(BETWEEN)
            self._go_through()
            self.load.finish()
            verdict = self.load.verdict()
            return {
                "steps": self.steps,
                **asdict(verdict),
                "errors": self.load.errors(),
                "retried": self.load.retried(),
                "longest_pause_ms": self.longest_pause_ms(),
            }

    def _go_through(self) -> None:
        numbers = sorted(self.cluster.nodes)
        for number in numbers:
            self._move(number, None)
            if number == numbers[0]:
                self._expect_not_ready(numbers[1])
        for number in reversed(numbers):
            self._move(number, self._old, kill=number == numbers[1])
        for number in numbers:
            self._move(number, None, kill=number == numbers[1])
        ready = json.loads(self.command("upgrade", "--check", "--json"))
        assert ready["ready"], ready
        self.command("upgrade", "--yes")
        self.steps.append({"step": "finalized", "level": self.level()})
        self.load.wait_for(BETWEEN)
        self._expect_refused(self.cluster.nodes[numbers[-1]])
        self.load.wait_for(BETWEEN)

    def _move(self, number: int, release: Path | None, *, kill: bool = False) -> None:
        """Stop a broker and start it with another release."""
        node = self.cluster.nodes[number]
        begun = time.monotonic()
        if kill:
            node.kill()
        else:
            assert node.terminate() == 0, node.log_text()[-4000:]
        run_release(node, release)
        node.start()
        self.cluster.wait_healthy((LOAD, LEDGER))
        step: dict[str, object] = {
            "step": "roll back" if release else "upgrade",
            "broker": number,
            "killed": kill,
            "seconds": round(time.monotonic() - begun, 1),
        }
        self.steps.append(step)
        sys.stderr.write(f"{json.dumps(step)}\n")
        self.load.wait_for(BETWEEN)

    def _expect_not_ready(self, number: int) -> None:
        """Check that the level cannot be finalized with an old broker, and that the command names
        it.
        """
        done = self._run("upgrade", "--yes")
        assert done.returncode == 1, done
        assert f"broker {number}: level 1" in done.stderr, done.stderr
        assert self.level() == 1

    def _expect_refused(self, node: ClusterNode) -> None:
        """Check that a broker of the old release cannot rejoin, and that the current one can."""
        assert node.terminate() == 0
        run_release(node, self._old)
        before = len(node.log_text())
        node.spawn()
        eventually(lambda: REFUSED in node.log_text()[before:] or not node.running, PATIENCE_S)
        view = self.cluster.view((LOAD,), but=(node.number,))
        assert all(node.number not in each.isr for each in view.partitions.values())
        self.steps.append({"step": "refused", "broker": node.number, "ended": not node.running})
        if node.running:
            node.kill()
        run_release(node, None)
        node.start()
        self.cluster.wait_healthy((LOAD, LEDGER))

    def level(self) -> int:
        """Return the cluster's feature level."""
        found: int = json.loads(self.command("status", "--json"))["feature_level"]
        return found

    def command(self, *words: str) -> str:
        """Run `barnabas cluster ...` of today's release; return what it prints."""
        done = self._run(*words)
        assert done.returncode == 0, done
        return done.stdout

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        arguments = ["cluster", *words, "--bootstrap", self.cluster.bootstrap]
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def longest_pause_ms(self) -> dict[str, int]:
        """Return the longest time without an acknowledgement: for all producers, and for one
        partition.
        """
        everything: list[int] = []
        partitions: dict[int, list[int]] = {}
        for producer in self.load.producers:
            for partition, acks in read_acks(producer.ledger).items():
                everything += acks.times_us
                partitions.setdefault(partition, []).extend(acks.times_us)
        worst = max(_longest_gap(times) for times in partitions.values())
        return {"any": _longest_gap(everything) // 1000, "one_partition": worst // 1000}


def _longest_gap(times_us: list[int]) -> int:
    ordered = sorted(times_us)
    return max((later - earlier for earlier, later in pairwise(ordered)), default=0)


def upgrade(folder: Path, releases: Path = RELEASES) -> dict[str, object]:
    """Run all steps; return the problems."""
    return Upgrade(folder, install_release(FIRST_RELEASE, releases)).run()


def main() -> None:
    """Read the command line, and write the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    report = upgrade(options.folder)
    text = json.dumps(report, indent=2)
    sys.stdout.write(f"{text}\n")
    if options.report is not None:
        options.report.write_text(f"{text}\n")
    if report["problems"] or report["errors"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
