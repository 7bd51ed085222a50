"""Runs `barnabas exporter` as a process, and reads its pages as Prometheus does."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_S = 60.0

Samples = dict[str, list[Any]]
"""The samples of a page by their names."""


@contextmanager
def exporting(bootstrap: str, *words: str) -> Iterator[str]:
    """Run the command; return its URL without the path, and check that SIGTERM ends it."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "barnabas.cli", "exporter", "--bootstrap", bootstrap),
            *("--listen", "127.0.0.1:0", "--interval", "1s", "--json", *words),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["metrics"].removesuffix("/metrics")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors.decode()
        assert b"Traceback" not in errors, errors.decode()
    finally:
        process.kill()
        process.communicate()


def samples(url: str) -> Samples:
    """Read the page of metrics."""
    with urlopen(f"{url}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found
