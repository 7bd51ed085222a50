"""Opens telemetry files: plain or gzipped, complete or still growing, in any of the CSV layouts."""

import gzip
import os
from collections.abc import Callable, Iterator
from datetime import tzinfo
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from barnabas.telemetry.collect import dcgm_csv, long_csv
from barnabas.telemetry.collect.pacing import NAP_S, Clock
from barnabas.telemetry.samples import nvidia_smi
from barnabas.telemetry.samples.readings import Reading, Tally, by_instant


class FileFormat(StrEnum):
    """The layout of a file."""

    AUTO = "auto"
    NVIDIA_SMI = "nvidia-smi"
    LONG = "long"
    DCGM = "dcgm"


class InputError(ValueError):
    """A file cannot be read at all; the text says what to change."""


NumberedLine = tuple[int, str]


def read_lines(path: Path) -> Iterator[NumberedLine]:
    """Return the lines of a file with their numbers; mark bytes that are not UTF-8."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", errors="replace") as packed:
            yield from enumerate(packed, 1)
    else:
        with path.open(errors="replace") as plain:
            yield from enumerate(plain, 1)


def follow_lines(
    path: Path,
    clock: Clock,
    while_waiting: Callable[[], None],
    *,
    on_cut: Callable[[int, bytes], None] = lambda _number, _line: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Iterator[NumberedLine]:
    """Return the lines of a file, and those written to it later.

    A line is complete with its newline: the reader waits for the rest of a partial line. If another
    file gets the name, or the file is emptied, reading continues at the new beginning, and a
    partial line is passed to `on_cut`.
    """
    stream: BinaryIO = path.open("rb")
    number, begun = 0, b""
    try:
        while not is_stopping():
            begun += stream.readline()
            if begun.endswith(b"\n"):
                number += 1
                yield number, begun.decode(errors="replace")
                begun = b""
                continue
            following = _following(path, stream)
            if following is not None:
                if begun:
                    on_cut(number + 1, begun)
                if following is not stream:
                    stream.close()
                stream, number, begun = following, 0, b""
                continue
            while_waiting()
            clock.sleep(NAP_S)
    finally:
        stream.close()


def _following(path: Path, stream: BinaryIO) -> BinaryIO | None:
    """Return the file to read from its beginning; None if the file is still the same.

    The stream is at its end. A writer that has just rotated the file may still write to the old
    one, so the reader leaves the old file only once it no longer grows.
    """
    try:
        present = path.stat()
    except FileNotFoundError:  # between the two steps of a rotation
        return None
    read = os.fstat(stream.fileno())
    if (present.st_ino, present.st_dev) != (read.st_ino, read.st_dev):
        return path.open("rb") if read.st_size <= stream.tell() else None
    if present.st_size < stream.tell():
        stream.seek(0)
        return stream
    return None


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
    """Read lines of any layout, the header first.

    `joined` combines the rows of a long file for a card and time into one reading. A row of the
    other layouts is complete, and need not wait for the next one.
    """
    first = next(lines, None)
    if first is None:
        raise InputError(f"{where} is empty; expected a header")
    lines = chain([first], lines)
    try:
        chosen = _layout(layout, first[1])
        if chosen is FileFormat.LONG:
            rows = long_csv.parse_rows(lines, where=where, hostname=hostname, tally=tally)
            yield from by_instant(rows) if joined else rows
        elif chosen is FileFormat.DCGM:
            yield from dcgm_csv.parse_rows(lines, where=where, hostname=hostname, tally=tally)
        else:
            yield from nvidia_smi.parse_rows(
                lines, where=where, hostname=hostname, zone=zone, tally=tally
            )
    except (dcgm_csv.HeaderError, long_csv.HeaderError, nvidia_smi.HeaderError) as error:
        raise InputError(f"{where}: {error}") from error


def detect_layout(header: str) -> FileFormat:
    """Return the layout of a file, by its header."""
    if dcgm_csv.is_header(header):
        return FileFormat.DCGM
    return FileFormat.LONG if "metric_name" in header else FileFormat.NVIDIA_SMI


def _layout(layout: FileFormat, header: str) -> FileFormat:
    return detect_layout(header) if layout is FileFormat.AUTO else layout
