"""Reads wide CSV with DCGM's names as columns, one row per GPU and instant.

    timestamp,uuid,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_PROF_DRAM_ACTIVE,...
    1794725694.154,GPU-...,NVIDIA H200,97,0.21,...

This is the format of `tools/record_gpu.py`. Times are seconds since 1970, or ISO 8601. A cell that
is empty or has one of DCGM's numbers for "no value" is omitted and counted.
"""

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally, is_no_value
from barnabas.telemetry.samples.sample_messages import Snapshot, parse_time

PREFIX = "DCGM_FI_"
IDENTITY = ("timestamp", "uuid", "modelName", "Hostname", "hostname", "gpu")


class HeaderError(ValueError):
    """The first line is not the header of such a file; the text says what is missing."""


@dataclass(frozen=True)
class Columns:
    """The positions of columns in a row."""

    width: int
    place: dict[str, int]
    metrics: tuple[tuple[int, str], ...]


def is_header(line: str) -> bool:
    """Return whether a line is a header of this layout."""
    return PREFIX in line and "metric_name" not in line


def parse_rows(
    lines: Iterable[tuple[int, str]], *, where: str, hostname: str, tally: Tally
) -> Iterator[Reading]:
    """Read numbered lines, the header first; a repeated header is ignored."""
    columns: Columns | None = None
    for number, line in lines:
        if not line.strip():
            continue
        if columns is None or line.startswith("timestamp,"):
            columns = _header(line, tally)
            continue
        try:
            yield _row(line, columns, hostname, tally)
        except ValueError as error:
            raw = line.rstrip("\r\n").encode(errors="replace")
            yield Refusal(where=f"{where} line {number}", reason=str(error), raw=raw)


def _header(line: str, tally: Tally) -> Columns:
    names = [cell.strip() for cell in next(csv.reader([line]))]
    place = {name: index for index, name in enumerate(names)}
    missing = [name for name in ("timestamp", "uuid") if name not in place]
    if missing:
        raise HeaderError(f"the header has no {', '.join(missing)}; it begins {line[:60]!r}")
    tally.unknown.update(name for name in names if name not in BY_NAME and name not in IDENTITY)
    metrics = tuple((index, name) for name, index in place.items() if name in BY_NAME)
    return Columns(len(names), place, metrics)


def _row(line: str, columns: Columns, hostname: str, tally: Tally) -> Snapshot:
    cells = [cell.strip() for cell in next(csv.reader([line]), ())]
    if len(cells) != columns.width:
        raise ValueError(f"{len(cells)} cells, the header has {columns.width}")

    def cell(*names: str) -> str:
        return next((cells[columns.place[name]] for name in names if name in columns.place), "")

    if not cell("uuid"):
        raise ValueError("no uuid")
    index = cell("gpu")
    return Snapshot(
        timestamp_ms=_time_ms(cell("timestamp")),
        gpu_id=cell("uuid"),
        device=f"nvidia{index}" if index else "",
        hostname=cell("Hostname", "hostname") or hostname,
        model=cell("modelName"),
        labels={},
        metrics=dict(_metrics(cells, columns, tally)),
    )


def _metrics(cells: list[str], columns: Columns, tally: Tally) -> Iterator[tuple[str, float]]:
    for at, name in columns.metrics:
        value = _number(cells[at], name)
        if math.isnan(value) or is_no_value(value):
            tally.no_value += 1
        else:
            yield name, value


def _number(text: str, metric: str) -> float:
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r:.40} is not a number for {metric}") from None
    if math.isinf(value):
        raise ValueError(f"{text!r:.40} is not a number for {metric}")
    return int(value) if value.is_integer() else value


def _time_ms(text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds):
        return round(seconds * 1000)
    try:
        return parse_time(text)
    except ValueError:
        raise ValueError(f"timestamp {text!r:.40} is neither seconds nor ISO 8601") from None
