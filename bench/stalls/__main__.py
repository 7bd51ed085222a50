"""Measures the latency of fifty polite clients under rude clients.

    python -m bench.stalls --minutes 20 --report build/stalls.json
    python -m bench.stalls --minutes 20 --source OTHER/src     # another commit's broker
    python -m bench.stalls --minutes 2 --jobs greedy,hidden --small
    python -m bench.stalls --set performance.slow_event_time=10ms   # which events blocked the loop

The first tenth of the time has no rude clients, the rest has all of them. The disk takes 5 ms per
sync in the first half and 50 ms in the second. The broker and the polite clients have a higher
priority than the rude ones, whose own work is not measured.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from barnabas.testing.process import BrokerSubprocess
from bench.places import ROOT
from bench.stalls.ground import SETTINGS, SMALL, WHOLE, Sizes, prepare
from bench.stalls.rude import JOBS
from tests.support.clusters.cluster_shim import Control, compiled_shim

FAST_MS, SLOW_MS = 5, 50
ALONE = 0.1
"""The share of the run without rude clients."""
MEMORY_INTERVAL_S = 5.0
PRIORITY = -10


class Memory(threading.Thread):
    """Samples the broker's resident memory."""

    def __init__(self, broker: BrokerSubprocess) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._stopped = threading.Event()
        self.mb: list[int] = []

    def run(self) -> None:
        """Sample until stopped."""
        while not self._stopped.wait(MEMORY_INTERVAL_S) and self._broker.running:
            self.mb.append(self._broker.memory_bytes() >> 20)

    def stop(self) -> None:
        """Stop sampling."""
        self._stopped.set()


def child(module: str, argument: object) -> subprocess.Popen[str]:
    """Start one of the two processes of the load."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", module, json.dumps(argument)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def parts_of(minutes: float, *, rude: bool) -> list[tuple[str, float]]:
    """Return the parts of a run with their lengths in seconds."""
    whole = minutes * 60
    if not rude:
        return [("alone", whole)]
    alone = whole * ALONE
    half = (whole - alone) / 2
    return [("alone", alone), (f"{FAST_MS} ms a sync", half), (f"{SLOW_MS} ms a sync", half)]


def measure(options: argparse.Namespace, console: Console, work: Path) -> dict[str, Any]:
    """Run one broker under the whole load."""
    sizes: Sizes = SMALL if options.small else WHOLE
    control = Control(work / "control", compiled_shim(work))
    environment = {**control.environment, "PYTHONPATH": str(Path(options.source).resolve())}
    settings = {**SETTINGS, **dict(pair.split("=", 1) for pair in options.set)}
    with BrokerSubprocess(work / "data", settings=settings, environment=environment) as broker:
        raise_priority(broker.process.pid)
        console.print("creating topics ...")
        asyncio.run(prepare(broker.address, sizes))
        control.delay_syncs(FAST_MS)
        memory = Memory(broker)
        memory.start()
        parts = parts_of(options.minutes, rude=bool(options.jobs))
        polite = child("bench.stalls.polite", [broker.address, parts])
        raise_priority(polite.pid)
        rude: subprocess.Popen[str] | None = None
        report: dict[str, Any] = {}
        assert polite.stdout is not None
        for line in polite.stdout:
            said = json.loads(line)
            if "report" in said:
                report = said["report"]
                break
            part = said["part"]
            console.print(f"{time.strftime('%H:%M:%S')} {part}")
            if part.startswith(str(SLOW_MS)):
                control.delay_syncs(SLOW_MS)
            if part != "alone" and rude is None:
                seconds = sum(length for name, length in parts if name != "alone")
                rude = child("bench.stalls.rude", [broker.address, sizes, options.jobs, seconds])
        memory.stop()
        if rude is not None:
            report["rude"] = json.loads(rude.communicate()[0])
        report["memory_mb"] = memory.mb
        report["slow_events"] = slow_events(broker)
        control.delay_syncs(0)
        report["exit_code"] = broker.terminate()
    return report


def slow_events(broker: BrokerSubprocess) -> list[dict[str, Any]]:
    """Return the slowest events in the broker's log, if the setting is on."""
    found = broker.log_lines("an event held up the loop")
    found.sort(key=lambda line: -float(line["duration_ms"]))
    return [{"count": len(found)}, *found[:20]]


def raise_priority(pid: int) -> None:
    """Give a process a higher priority than the rude clients, if permitted."""
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, pid, PRIORITY)


def show(report: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    table = Table("part", "kind", "n", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "> 10 ms", "> 1 s")
    for part, kinds in report["parts"].items():
        for kind, found in kinds.items():
            names = ("n", "p50_ms", "p99_ms", "p999_ms", "max_ms", "over_10_ms", "over_1_s")
            table.add_row(part, kind, *(str(found[name]) for name in names))
    console.print(table)
    for name, found in report.get("rude", {}).items():
        console.print(f"{name:10} {found}", highlight=False)
    mb = report["memory_mb"] or [0]
    console.print(f"memory MB: first {mb[0]}, highest {max(mb)}, last {mb[-1]}")
    console.print(f"sessions lost: {report['lost_sessions']}; errors: {report['errors']}")
    for event in report["slow_events"]:
        console.print(event, highlight=False)


def parser() -> argparse.ArgumentParser:
    """Return the command's options."""
    found = argparse.ArgumentParser(prog="python -m bench.stalls", description=__doc__)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("--minutes", type=float, default=20)
    found.add_argument("--source", default=str(ROOT / "src"), help="the broker's source folder")
    found.add_argument("--small", action="store_true", help="fewer partitions, to try it out")
    found.add_argument(
        "--jobs",
        type=lambda text: [name for name in text.split(",") if name],
        default=list(JOBS),
        help=f"the jobs of the rude clients, of {','.join(JOBS)}",
    )
    found.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE")
    found.add_argument("--report", type=Path, help="write everything into this JSON file")
    return found


def main() -> int:
    """Measure, print the tables, write the report."""
    options, console = parser().parse_args(), Console()
    with tempfile.TemporaryDirectory(prefix="stalls-") as work:
        report = measure(options, console, Path(work))
    show(report, console)
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
