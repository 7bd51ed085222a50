"""Converts JSON messages into columns of rows.

A document is parsed once, in C; the other steps work on whole columns. Documents with the same
metric names in the same order (one exporter's messages) share a `Shape`, which has the column of
each value and the unknown names. So the cost of a message is that of its JSON and a few lookups,
for any number of metrics.

A bad value is removed and listed as a fault; the other values of the message are kept. A metric
without a column is kept in the map `other` if it is well formed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from barnabas.telemetry.samples import mig, other_metrics
from barnabas.telemetry.samples.metrics import (
    BY_NAME,
    COLUMNS,
    METRICS,
    NO_VALUE_32_FROM,
    NO_VALUE_DOUBLE_FROM,
    NO_VALUE_FROM,
    Metric,
)
from barnabas.telemetry.samples.sample_refusals import Fault, Reason

KNOWN_TYPES = frozenset(
    {
        "application/json",
        "application/vnd.barnabas.gpu-snapshot+json",
        "application/vnd.barnabas.tick+json",
    }
)
IDENTITY = (
    "gpu_id",
    "instance",
    "profile",
    "hostname",
    "device",
    "model",
    "namespace",
    "pod",
    "container",
)
NAME_LENGTH_MAX = 256
SHAPES_MAX = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBERS = {int, float, type(None)}
_INDEX = {name: COLUMNS.index(metric.column) for name, metric in BY_NAME.items()}

Faults = dict[int, list[Fault]]


@dataclass
class Readings:
    """The rows of a run of messages; `message` is the index of a row's message."""

    message: np.ndarray
    time_us: np.ndarray
    identity: dict[str, list[str | None]]
    values: np.ndarray
    """A row for each message, a column for each metric, NaN if there is no value."""
    other: pa.MapArray
    """The metrics of each row without a column."""
    faults: Faults
    """The faults, by the index of the message."""
    ticks_us: np.ndarray
    tick_messages: np.ndarray


class _Row(NamedTuple):
    message: int
    time_us: int
    identity: tuple[str | None, ...]
    metrics: Mapping[str, object]


@dataclass
class _Reading:
    """The state of one pass."""

    rows: list[_Row] = field(default_factory=list)
    ticks: list[tuple[int, int]] = field(default_factory=list)
    faults: Faults = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    other: other_metrics.Gathering = field(default_factory=other_metrics.Gathering)

    def refuse(self, message: int, reason: Reason, detail: str) -> None:
        self.faults.setdefault(message, []).append(Fault(reason, detail))


@dataclass(frozen=True)
class Shape:
    """A sequence of metric names: the column of each, or -1 if it has none."""

    columns: np.ndarray
    other: np.ndarray
    """The places of names that have no column and are kept in `other`."""
    other_names: tuple[str, ...]
    unknown: tuple[Fault, ...]


class DocumentError(ValueError):
    """A document without a reading."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read(values: Sequence[bytes | None], value_bytes_max: int) -> Readings:
    """Read messages; unusable ones have faults and no row."""
    reading = _Reading()
    for message, value in enumerate(values):
        try:
            _read_one(reading, message, value, value_bytes_max)
        except DocumentError as error:
            reading.refuse(message, error.reason, error.detail)
    return _columns(reading)


def _read_one(reading: _Reading, message: int, value: bytes | None, value_bytes_max: int) -> None:
    document = _document(value, value_bytes_max)
    metrics = document.get("metrics")
    if type(metrics) is not dict:
        if document.get("tick") is True:
            reading.ticks.append((message, _time_us(document, reading.times)))
            return
        metrics = _single(document)
    time_us = _time_us(document, reading.times)
    reading.rows.append(_Row(message, time_us, _identity(document), metrics))


def _document(value: bytes | None, value_bytes_max: int) -> dict[str, Any]:
    if value is None:
        raise DocumentError(Reason.BAD_JSON, "the message has no value")
    if len(value) > value_bytes_max:
        raise DocumentError(
            Reason.TOO_LARGE, f"{len(value)} bytes are more than the {value_bytes_max} allowed"
        )
    try:
        document = orjson.loads(value)
    except ValueError as error:
        raise DocumentError(Reason.BAD_JSON, f"not JSON: {error}") from error
    if type(document) is not dict:
        raise DocumentError(
            Reason.NOT_AN_OBJECT, f"expected a JSON object, not {type(document).__name__}"
        )
    return document


def _single(document: dict[str, Any]) -> dict[str, object]:
    if "metrics" in document:
        raise DocumentError(Reason.BAD_FIELD, "metrics must be an object")
    if "metric_name" not in document:
        if "gpu_id" in document and "value" in document:
            raise DocumentError(Reason.MISSING_FIELD, "metric_name is missing")
        raise DocumentError(
            Reason.UNKNOWN_LAYOUT, "the message has neither metric_name nor metrics nor tick"
        )
    name = document["metric_name"]
    if type(name) is not str or not name:
        raise DocumentError(Reason.BAD_FIELD, "metric_name must be text")
    if "value" not in document:
        raise DocumentError(Reason.MISSING_FIELD, "value is missing")
    return {name: document["value"]}


def _time_us(document: dict[str, Any], times: dict[str, int]) -> int:
    text = document.get("timestamp")
    if type(text) is str:
        known = times.get(text)
        if known is None:
            known = times[text] = _parsed_time_us(text)
        return known
    if text is None:
        raise DocumentError(Reason.MISSING_FIELD, "timestamp is missing")
    raise DocumentError(Reason.BAD_TIMESTAMP, f"timestamp must be text, not {text!r:.60}")


def _parsed_time_us(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise DocumentError(
            Reason.BAD_TIMESTAMP, f"timestamp {text!r:.60} is not ISO 8601"
        ) from error
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (moment - _EPOCH) // _MICROSECOND


def _identity(document: dict[str, Any]) -> tuple[str | None, ...]:
    gpu_id = document.get("gpu_id")
    if type(gpu_id) is not str or not gpu_id or len(gpu_id) > NAME_LENGTH_MAX:
        if gpu_id is None or gpu_id == "":
            raise DocumentError(Reason.MISSING_FIELD, "gpu_id is missing")
        raise DocumentError(
            Reason.BAD_FIELD, f"gpu_id must be text of at most {NAME_LENGTH_MAX} characters"
        )
    labels = document.get("labels")
    if labels is None:
        labels = {}
    if type(labels) is not dict:
        raise DocumentError(Reason.BAD_FIELD, "labels must be an object")
    hostname = document.get("hostname") or labels.get("hostname") or labels.get("Hostname")
    model = document.get("model") or labels.get("modelName") or labels.get("model")
    rest = labels.get("namespace"), labels.get("pod"), labels.get("container")
    gpu_id, instance, profile = mig.place(gpu_id, labels)
    fields = instance, profile, hostname, document.get("device"), model, *rest
    return (gpu_id, *map(_text, fields))


def _text(value: object) -> str | None:
    return value[:NAME_LENGTH_MAX] if type(value) is str and value else None


def _columns(reading: _Reading) -> Readings:
    rows = reading.rows
    identities = list(zip(*(row.identity for row in rows), strict=True)) if rows else []
    values = _values(rows, reading)
    ticks = np.array(reading.ticks, dtype=np.int64).reshape(-1, 2)
    found = Readings(
        message=np.fromiter((row.message for row in rows), np.int64, len(rows)),
        time_us=np.fromiter((row.time_us for row in rows), np.int64, len(rows)),
        identity={n: list(identities[i]) if rows else [] for i, n in enumerate(IDENTITY)},
        values=values,
        other=reading.other.column(len(rows)),
        faults=reading.faults,
        ticks_us=ticks[:, 1],
        tick_messages=ticks[:, 0],
    )
    return _with_values_only(found)


def _with_values_only(found: Readings) -> Readings:
    empty = np.isnan(found.values).all(axis=1) & found.other.is_null().to_numpy(False)
    if not empty.any():
        return found
    for message in found.message[empty].tolist():
        found.faults.setdefault(message, [Fault(Reason.MISSING_FIELD, "no metric has a value")])
    return taken(found, ~empty)


def taken(found: Readings, kept: np.ndarray) -> Readings:
    """Return the readings with some of their rows."""
    chosen = np.flatnonzero(kept).tolist()
    return Readings(
        message=found.message[kept],
        time_us=found.time_us[kept],
        identity={name: [c[i] for i in chosen] for name, c in found.identity.items()},
        values=found.values[kept],
        other=found.other.filter(pa.array(kept)),
        faults=found.faults,
        ticks_us=found.ticks_us,
        tick_messages=found.tick_messages,
    )


def _values(rows: list[_Row], reading: _Reading) -> np.ndarray:
    """Return the matrix of values, shape by shape."""
    values = np.full((len(rows), len(COLUMNS)), np.nan)
    by_shape: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        by_shape.setdefault(tuple(row.metrics), []).append(index)
    for names, indexes in by_shape.items():
        _fill(values, names, indexes, rows, reading)
    return values


def _fill(
    values: np.ndarray,
    names: tuple[str, ...],
    indexes: list[int],
    rows: list[_Row],
    reading: _Reading,
) -> None:
    shape = _shape(names)
    if shape.unknown:
        for index in indexes:
            reading.faults.setdefault(rows[index].message, []).extend(shape.unknown)
    given = [rows[index].metrics for index in indexes]
    flat = list(chain.from_iterable(metrics.values() for metrics in given))
    if not set(map(type, flat)) <= _NUMBERS:
        _take_out_wrong_types(flat, names, indexes, rows, reading)
    block = np.array(flat, dtype=np.float64).reshape(len(indexes), len(names))
    if len(shape.other):
        _gather_other(block[:, shape.other], shape.other_names, indexes, rows, reading)
    known = np.flatnonzero(shape.columns >= 0)
    block, columns = block[:, known], shape.columns[known]
    _take_out_implausible(block, columns, indexes, rows, reading)
    values[np.ix_(np.array(indexes), columns)] = block


_shapes: dict[tuple[str, ...], Shape] = {}


def _shape(names: tuple[str, ...]) -> Shape:
    """Return the shape of a sequence of names; cached, as a fleet has only a few."""
    if names not in _shapes:
        if len(_shapes) >= SHAPES_MAX:
            _shapes.clear()
        _shapes[names] = _new_shape(names)
    return _shapes[names]


def _new_shape(names: tuple[str, ...]) -> Shape:
    columns = np.array([_INDEX.get(name, -1) for name in names], dtype=np.int64)
    without = np.flatnonzero(columns < 0).tolist()
    other = [place for place in without if other_metrics.is_well_formed(names[place])]
    faults = [
        Fault(Reason.UNKNOWN_METRIC, f"metric {names[place]!r:.100} is not known")
        for place in without
        if place not in other
    ]
    faults += [
        Fault(Reason.UNKNOWN_METRIC, f"{names[place]} is beyond {other_metrics.NAMES_MAX} others")
        for place in other[other_metrics.NAMES_MAX :]
    ]
    kept = other[: other_metrics.NAMES_MAX]
    kept_names = tuple(names[place] for place in kept)
    return Shape(columns, np.array(kept, dtype=np.int64), kept_names, tuple(faults))


def _gather_other(
    block: np.ndarray,
    names: tuple[str, ...],
    indexes: list[int],
    rows: list[_Row],
    reading: _Reading,
) -> None:
    marked = other_metrics.no_values(block)
    if marked.any():
        for row, column in zip(*np.nonzero(marked), strict=True):
            detail = f"{names[column]} has DCGM's mark for no value"
            reading.refuse(rows[indexes[row]].message, Reason.NO_VALUE, detail)
        block[marked] = np.nan
    reading.other.add(np.array(indexes, dtype=np.int64), names, block)


def _take_out_wrong_types(
    flat: list[object],
    names: tuple[str, ...],
    indexes: list[int],
    rows: list[_Row],
    reading: _Reading,
) -> None:
    for position, value in enumerate(flat):
        if type(value) not in _NUMBERS:
            row, column = divmod(position, len(names))
            flat[position] = None
            detail = f"{names[column]:.100} is {_shown(value)}, not a number"
            reading.refuse(rows[indexes[row]].message, Reason.WRONG_TYPE, detail)


def _shown(value: object) -> str:
    return orjson.dumps(value).decode()[:60]


_LOW = np.array([metric.low for metric in METRICS], dtype=np.float64)
_HIGH = np.array([metric.high for metric in METRICS], dtype=np.float64)


def _take_out_implausible(
    block: np.ndarray,
    columns: np.ndarray,
    indexes: list[int],
    rows: list[_Row],
    reading: _Reading,
) -> None:
    outside = (block < _LOW[columns]) | (block > _HIGH[columns])
    if not outside.any():
        return
    for row, column in zip(*np.nonzero(outside), strict=True):
        fault = _implausible(METRICS[columns[column]], float(block[row, column]))
        reading.faults.setdefault(rows[indexes[row]].message, []).append(fault)
    block[outside] = np.nan


def _implausible(metric: Metric, value: float) -> Fault:
    if is_no_value(metric, value):
        return Fault(Reason.NO_VALUE, f"{metric.dcgm} has DCGM's mark for no value")
    unit = f" {metric.unit}" if metric.unit else ""
    detail = f"{metric.dcgm} is {value:g}, outside {metric.low:g} to {metric.high:g}{unit}"
    return Fault(Reason.OUT_OF_RANGE, detail)


def is_no_value(metric: Metric, value: float) -> bool:
    """Return whether this number is DCGM's mark for "no value".

    Doubles are 1,024 apart next to 2^63, so all marks of 64 bits are the same number. The narrow
    marks count only if the metric cannot be that large.
    """
    if value == float(NO_VALUE_FROM):
        return True
    narrow = NO_VALUE_32_FROM <= value < 2**31 and metric.high < NO_VALUE_32_FROM
    blank = NO_VALUE_DOUBLE_FROM <= value < NO_VALUE_DOUBLE_FROM + 16
    return narrow or (blank and metric.high < NO_VALUE_DOUBLE_FROM)
