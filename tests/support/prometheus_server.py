"""Runs a real Prometheus with the shipped files, an exporter, and rules that act faster."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.exporter.shipped_files import write_files
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually

PATIENCE_S = 120.0
SHIPPED_ADDRESSES = ("127.0.0.1:9644", "127.0.0.1:9645", "127.0.0.1:9646", "127.0.0.1:9308")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
DURATION = re.compile(r"(\d+)(ms|s|m|h)")
DURATIONS = re.compile(r"\[[^]]*\]|\boffset \w+")
"""The durations of an expression."""
OF_A_BUSY_MACHINE = {"FetchSlow", "LoopBusy", "LoopStalled", "ProduceSlow", "SyncSlow"}
"""They may fire for a good reason where other programs use the processors and the disk."""
LIMITS_S = {
    "DiskFullSoon": "4 * 3600",
    "GroupLosesRecords": "3600",
    "HangingTransaction": "900",
    "LagTime": "300",
    "ReplicaBehind": "10",
    "StreamSilent": "600",
}
"""Rules that compare an age with a limit in seconds."""


def faster(text: str, factor: int) -> str:
    """Return rules in which all durations and limits of ages are divided by a factor.

    Limits of latencies and of rates stay as they are.
    """
    content = yaml.safe_load(text)
    for rule in (rule for group in content["groups"] for rule in group["rules"]):
        if "for" in rule:
            rule["for"] = _divided(rule["for"], factor)
        limit = LIMITS_S.get(rule["alert"])
        expr = DURATIONS.sub(lambda found: _divided(found[0], factor), rule["expr"])
        if limit is not None:
            expr, count = re.subn(
                rf"(?<!\w){re.escape(limit)}(?!\w)", f"({limit}) / {factor}", expr
            )
            assert count == 1, f"{rule['alert']} has the limit {limit} s {count} times"
        rule["expr"] = expr
    return yaml.safe_dump(content, sort_keys=False)


def _divided(text: str, factor: int) -> str:
    return DURATION.sub(lambda found: f"{int(found[1]) * UNITS_MS[found[2]] // factor}ms", text)


class Prometheus:
    """A server with our files, which scrapes three brokers and an exporter each second."""

    def __init__(self, folder: Path, addresses: Sequence[str], factor: int = 1) -> None:
        """Take the addresses of the brokers' metrics and of the exporter.

        With a factor, rules act that many times faster.
        """
        write_files(folder)
        config = (folder / "prometheus.yml").read_text().replace("interval: 15s", "interval: 1s")
        for shipped, address in zip(SHIPPED_ADDRESSES, addresses, strict=True):
            config = config.replace(shipped, address)
        (folder / "prometheus.yml").write_text(config)
        if factor != 1:
            rules = folder / "alerts.yml"
            rules.write_text(faster(rules.read_text(), factor))
        self._url = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [
                found_prometheus(),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address={self._url}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(self._is_ready, PATIENCE_S)

    def ask(self, expr: str) -> list[dict[str, Any]]:
        """Return the present series of an expression; raise where it is refused."""
        query = urllib.parse.urlencode({"query": expr})
        with urllib.request.urlopen(f"http://{self._url}/api/v1/query?{query}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def alerts(self, state: str) -> set[str]:
        """Return the names of alerts in a state."""
        return {each["metric"]["alertname"] for each in self.ask(f'ALERTS{{alertstate="{state}"}}')}

    def fired_for(self, alert: str) -> int:
        """Return at how many evaluations, one a second, an alert has fired in the last minutes."""
        fired = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
        found = self.ask(f"max(count_over_time({fired}[10m]))")
        return int(found[0]["value"][1]) if found else 0

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._url}/-/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Watch:
    """Remembers which alerts fired from a moment on."""

    def __init__(self, server: Prometheus) -> None:
        self._server = server
        self._began_s = time.monotonic()

    def fired(self) -> set[str]:
        """Return all alerts that fired since then, also if they have cleared."""
        seconds = int(time.monotonic() - self._began_s) + 1
        expr = f'last_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])'
        return {each["metric"]["alertname"] for each in self._server.ask(expr)}


@contextmanager
def scraping(
    folder: Path,
    bootstrap: str,
    brokers: Sequence[str],
    *,
    factor: int = 1,
    exporter: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """Run an exporter, with further arguments, and a Prometheus for a cluster."""
    found_prometheus()
    listen = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "barnabas.cli", "exporter", "--listen", listen]
    process = subprocess.Popen(
        [*command, "--interval", "1s", "--bootstrap", bootstrap, *exporter],
        stdout=subprocess.DEVNULL,
    )
    try:
        server = Prometheus(folder, [*brokers, listen], factor)
        try:
            yield server
        finally:
            _end(server.process)
    finally:
        _end(process)


def found_prometheus() -> str:
    """Return where the program is; skip the test without it."""
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("needs Prometheus: apt-get install prometheus")
    return found


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)
