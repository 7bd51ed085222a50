"""Reads long CSV with one row per metric, the layout of Prometheus dumps.

    timestamp,metric_name,gpu_id,device,uuid,modelName,Hostname,container,pod,namespace,value,labels_raw

`labels_raw` is Prometheus label text in one quoted field; a filled column takes precedence. There,
gpu_id is the card's number on its host; our gpu_id is its uuid.
"""

import csv
import math
from collections.abc import Iterable, Iterator

from barnabas.telemetry.collect.exposition import parse_labels, snapshot_of
from barnabas.telemetry.samples import mig
from barnabas.telemetry.samples.readings import Reading, Refusal, Tally, is_no_value
from barnabas.telemetry.samples.sample_messages import MODEL_LABEL, Snapshot, parse_time

REQUIRED = ("timestamp", "metric_name", "value")
LABEL_BY_COLUMN = {
    "gpu_id": "gpu",
    "device": "device",
    "uuid": "UUID",
    "modelName": MODEL_LABEL,
    "Hostname": "Hostname",
    "hostname": "hostname",
    "container": "container",
    "pod": "pod",
    "namespace": "namespace",
    **{name: name for name in sorted(mig.LABELS)},
}


class HeaderError(ValueError):
    """The first line is not the header of a long CSV; the text says what is missing."""


def parse_rows(
    lines: Iterable[tuple[int, str]], *, where: str, hostname: str, tally: Tally
) -> Iterator[Reading]:
    """Read numbered lines, the header first; every row is a snapshot of one metric."""
    names: list[str] | None = None
    for number, line in lines:
        if not line.strip():
            continue
        if names is None or line.startswith("timestamp,"):
            names = _header(line)
            continue
        try:
            snapshot = _row(line, names, hostname)
        except ValueError as error:
            raw = line.rstrip("\r\n").encode(errors="replace")
            yield Refusal(where=f"{where} line {number}", reason=str(error), raw=raw)
        else:
            if any(math.isnan(each) or is_no_value(each) for each in snapshot.metrics.values()):
                tally.no_value += 1
            else:
                yield snapshot


def _header(line: str) -> list[str]:
    names = [cell.strip() for cell in next(csv.reader([line]))]
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise HeaderError(f"the header has no {', '.join(missing)}; it begins {line[:60]!r}")
    return names


def _row(line: str, names: list[str], hostname: str) -> Snapshot:
    cells = next(csv.reader([line]), [])
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells, the header has {len(names)}")
    row = dict(zip(names, cells, strict=True))
    labels = dict(parse_labels(row.get("labels_raw", "")))
    labels |= {ours: row[name] for name, ours in LABEL_BY_COLUMN.items() if row.get(name)}
    metric = row["metric_name"].strip()
    if not metric:
        raise ValueError("metric_name is empty")
    return snapshot_of(
        labels,
        at_ms=_time_ms(row["timestamp"]),
        default_hostname=hostname,
        metrics={metric: _number(row["value"])},
    )


def _time_ms(text: str) -> int:
    try:
        return parse_time(text.strip())
    except ValueError:
        raise ValueError(f"timestamp {text!r:.40} is not ISO 8601") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"value {text!r:.40} is not a number") from None
    if math.isinf(value):
        raise ValueError(f"value {text!r:.40} is not a number")
    return int(value) if value.is_integer() else value
