"""Files of telemetry: plain or gzipped, at rest or still growing, of either CSV layout."""

import gzip
from collections.abc import Callable, Iterator
from datetime import tzinfo
from enum import StrEnum
from itertools import chain
from pathlib import Path

from barnabas.telemetry import long_csv, nvidia_smi
from barnabas.telemetry.pacing import NAP_S, Clock
from barnabas.telemetry.readings import Reading, Tally, by_instant


class FileFormat(StrEnum):
    """The layout of a file."""

    AUTO = "auto"
    NVIDIA_SMI = "nvidia-smi"
    LONG = "long"


class InputError(ValueError):
    """A file cannot be read at all; the text says what to change."""


NumberedLine = tuple[int, str]


def read_lines(path: Path) -> Iterator[NumberedLine]:
    """Return the lines of a file with their numbers; bytes that are no UTF-8 are marked."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", errors="replace") as packed:
            yield from enumerate(packed, 1)
    else:
        with path.open(errors="replace") as plain:
            yield from enumerate(plain, 1)


def follow_lines(
    path: Path, clock: Clock, while_waiting: Callable[[], None]
) -> Iterator[NumberedLine]:
    """Return the lines of a file, and those written to it later, for ever.

    A line counts once its newline is there: what a writer has half written is waited for.
    """
    number, begun = 0, ""
    with path.open(errors="replace") as stream:
        while True:
            begun += stream.readline()
            if begun.endswith("\n"):
                number += 1
                yield number, begun
                begun = ""
            else:
                while_waiting()
                clock.sleep(NAP_S)


def read_rows(
    lines: Iterator[NumberedLine],
    layout: FileFormat,
    *,
    where: str,
    hostname: str,
    zone: tzinfo,
    tally: Tally,
    joined: bool,
) -> Iterator[Reading]:
    """Read lines of either layout, the header first.

    `joined` makes one reading of all that a long file says of a card and instant; the rows of
    nvidia-smi hold all there is, and need not wait for the next.
    """
    first = next(lines, None)
    if first is None:
        raise InputError(f"{where} is empty; a header is wanted")
    lines = chain([first], lines)
    try:
        if _layout(layout, first[1]) is FileFormat.LONG:
            rows = long_csv.parse_rows(lines, where=where, hostname=hostname, tally=tally)
            yield from by_instant(rows) if joined else rows
        else:
            yield from nvidia_smi.parse_rows(
                lines, where=where, hostname=hostname, zone=zone, tally=tally
            )
    except (long_csv.HeaderError, nvidia_smi.HeaderError) as error:
        raise InputError(f"{where}: {error}") from error


def detect_layout(header: str) -> FileFormat:
    """Tell the two layouts apart by their header."""
    return FileFormat.LONG if "metric_name" in header else FileFormat.NVIDIA_SMI


def _layout(layout: FileFormat, header: str) -> FileFormat:
    return detect_layout(header) if layout is FileFormat.AUTO else layout
