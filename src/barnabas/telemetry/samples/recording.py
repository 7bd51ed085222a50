"""The bundled recording: one H200 for five minutes at 10 Hz.

It was made on a real card for this project (the UUID is masked). The phases say what the card did
and when, so it is used to test findings and to generate simulated fleets.
"""

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from importlib.resources import files

from barnabas.telemetry.samples.nvidia_smi import parse_rows
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot

NAMES = ("h200",)
HOSTNAME = "h200-node"
"""The hostname of the card, which nvidia-smi does not report."""


@dataclass(frozen=True)
class Phase:
    """A span of a recording with one kind of work."""

    name: str
    start_ms: int
    end_ms: int


def lines(name: str = "h200") -> Iterator[str]:
    """Return the lines of nvidia-smi's CSV."""
    packed = files("barnabas.telemetry").joinpath("data", f"{name}.csv.gz").read_bytes()
    yield from gzip.decompress(packed).decode().splitlines()


def snapshots(name: str = "h200", hostname: str = HOSTNAME) -> Iterator[Snapshot]:
    """Return the recorded samples, in order."""
    numbered = enumerate(lines(name), 1)
    readings = parse_rows(numbered, where=name, hostname=hostname, zone=UTC, tally=Tally())
    for reading in readings:
        assert not isinstance(reading, Refusal), reading
        yield reading


def phases(name: str = "h200") -> list[Phase]:
    """Return the phases, in order."""
    text = files("barnabas.telemetry").joinpath("data", f"{name}_phases.csv").read_text()
    return [
        Phase(row["phase"], _ms(row["start_unix"]), _ms(row["end_unix"]))
        for row in csv.DictReader(text.splitlines())
    ]


def _ms(seconds: str) -> int:
    return round(float(seconds) * 1000)
