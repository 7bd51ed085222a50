"""Reads nvidia-smi's CSV: wide rows, one per GPU and instant, with units in the header.

    timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W], ...
    2026/11/15 06:54:54.154, 0, GPU-..., NVIDIA H200, 0 %, 0 MiB, 77.81 W, ...

Units in the cells (without `nounits`) are accepted too. Times are local to the host without a zone,
so the zone is an option. Cells such as [N/A] and [Not Supported] are omitted and counted. Columns
are mapped to DCGM's names; other columns (driver_version, pstate ...) become a label if they are
text about the card, and are counted as unknown otherwise.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from barnabas.telemetry.samples.readings import Reading, Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot

METRIC_BY_COLUMN = {
    "utilization.gpu": "DCGM_FI_DEV_GPU_UTIL",
    "utilization.memory": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "utilization.encoder": "DCGM_FI_DEV_ENC_UTIL",
    "utilization.decoder": "DCGM_FI_DEV_DEC_UTIL",
    "memory.total": "DCGM_FI_DEV_FB_TOTAL",
    "memory.used": "DCGM_FI_DEV_FB_USED",
    "memory.free": "DCGM_FI_DEV_FB_FREE",
    "temperature.gpu": "DCGM_FI_DEV_GPU_TEMP",
    "temperature.memory": "DCGM_FI_DEV_MEMORY_TEMP",
    "power.draw.instant": "DCGM_FI_DEV_POWER_USAGE",
    "power.draw": "DCGM_FI_DEV_POWER_USAGE",
    "power.draw.average": "DCGM_FI_DEV_POWER_USAGE",
    "enforced.power.limit": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    "power.limit": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    "clocks.current.sm": "DCGM_FI_DEV_SM_CLOCK",
    "clocks.sm": "DCGM_FI_DEV_SM_CLOCK",
    "clocks.current.memory": "DCGM_FI_DEV_MEM_CLOCK",
    "clocks.mem": "DCGM_FI_DEV_MEM_CLOCK",
    "clocks.max.sm": "DCGM_FI_DEV_MAX_SM_CLOCK",
    "clocks_event_reasons.active": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "clocks_throttle_reasons.active": "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "ecc.errors.corrected.volatile.total": "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "ecc.errors.uncorrected.volatile.total": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "remapped_rows.uncorrectable": "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "pcie.link.gen.current": "DCGM_FI_DEV_PCIE_LINK_GEN",
    "pcie.link.width.current": "DCGM_FI_DEV_PCIE_LINK_WIDTH",
}
"""If two columns have the same metric, the first one in this table is used."""

LABELS = {"driver_version", "pci.bus_id", "gpu_bus_id", "pstate", "serial", "mig.mode.current"}
IDENTITY = {"timestamp", "index", "uuid", "gpu_uuid", "name", "gpu_name"}
NO_VALUE = ("[n/a]", "n/a", "[not supported]", "[unknown error]", "[insufficient permissions]",
            "[gpu requires reset]", "[requested functionality has been deprecated]",
            "not active", "not supported", "")  # fmt: skip
TIME_FORMS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")


class HeaderError(ValueError):
    """The first line is not the header of nvidia-smi's CSV; the text says what is missing."""


@dataclass(frozen=True)
class Columns:
    """The positions of columns in a row."""

    width: int
    timestamp: int
    uuid: int
    index: int | None
    name: int | None
    metrics: tuple[tuple[int, str], ...]
    labels: tuple[tuple[int, str], ...]


def parse_header(line: str, tally: Tally) -> Columns:
    """Read the header; raises `HeaderError`."""
    names = [cell.split(" [")[0].strip() for cell in next(csv.reader([line]))]
    place = {name: index for index, name in reversed(list(enumerate(names)))}
    uuid = place.get("uuid", place.get("gpu_uuid"))
    if "timestamp" not in place or uuid is None:
        raise HeaderError("the header has no timestamp or no uuid; query both of nvidia-smi")
    chosen: dict[str, int] = {}
    for name, metric in METRIC_BY_COLUMN.items():
        if name in place:
            chosen.setdefault(metric, place[name])
    known = METRIC_BY_COLUMN.keys() | LABELS | IDENTITY
    tally.unknown.update(name for name in names if name not in known)
    return Columns(
        width=len(names),
        timestamp=place["timestamp"],
        uuid=uuid,
        index=place.get("index"),
        name=place.get("name", place.get("gpu_name")),
        metrics=tuple((index, metric) for metric, index in chosen.items()),
        labels=tuple((place[name], name) for name in sorted(LABELS) if name in place),
    )


def parse_rows(
    lines: Iterable[tuple[int, str]],
    *,
    where: str,
    hostname: str,
    zone: tzinfo,
    tally: Tally,
) -> Iterator[Reading]:
    """Read numbered lines, the header first; a repeated header is ignored."""
    columns: Columns | None = None
    for number, line in lines:
        if not line.strip():
            continue
        if columns is None or line.startswith("timestamp"):
            columns = parse_header(line, tally)
            continue
        try:
            yield _row(line, columns, hostname, zone, tally)
        except ValueError as error:
            raw = line.rstrip("\n").encode(errors="replace")
            yield Refusal(where=f"{where} line {number}", reason=str(error), raw=raw)


def _row(line: str, columns: Columns, hostname: str, zone: tzinfo, tally: Tally) -> Snapshot:
    cells = [cell.strip() for cell in next(csv.reader([line]), ())]
    if len(cells) != columns.width:
        raise ValueError(f"{len(cells)} cells, the header has {columns.width}")
    if not cells[columns.uuid]:
        raise ValueError("no uuid")
    index = "" if columns.index is None else cells[columns.index]
    return Snapshot(
        timestamp_ms=_time_ms(cells[columns.timestamp], zone),
        gpu_id=cells[columns.uuid],
        device=f"nvidia{index}" if index else "",
        hostname=hostname,
        model="" if columns.name is None else cells[columns.name],
        labels={name: cells[at] for at, name in columns.labels if not _is_no_value(cells[at])},
        metrics=_with_free(dict(_metrics(cells, columns.metrics, tally))),
    )


def _metrics(
    cells: Sequence[str], places: Iterable[tuple[int, str]], tally: Tally
) -> Iterator[tuple[str, float]]:
    for at, metric in places:
        cell = cells[at]
        if _is_no_value(cell):
            tally.no_value += 1
        else:
            yield metric, _number(cell, metric)


def _with_free(metrics: dict[str, float]) -> Mapping[str, float]:
    """Add the free memory, which follows from the two others."""
    total, used = metrics.get("DCGM_FI_DEV_FB_TOTAL"), metrics.get("DCGM_FI_DEV_FB_USED")
    if total is not None and used is not None:
        metrics.setdefault("DCGM_FI_DEV_FB_FREE", max(total - used, 0))
    return metrics


def _is_no_value(cell: str) -> bool:
    return cell.lower() in NO_VALUE


def _number(cell: str, metric: str) -> float:
    word = cell.split(" ", 1)[0]
    try:
        if word[:2].lower() == "0x":
            return int(word, 16)
        return float(word) if "." in word or "e" in word.lower() else int(word)
    except ValueError:
        raise ValueError(f"{cell!r:.40} is not a number for {metric}") from None


def _time_ms(text: str, zone: tzinfo) -> int:
    for form in TIME_FORMS:
        try:
            moment = datetime.strptime(text, form).replace(tzinfo=zone)
        except ValueError:
            continue
        return round(moment.timestamp() * 1000)
    raise ValueError(f"timestamp {text!r:.40} is not of the form 2026/11/15 06:54:54.154")
