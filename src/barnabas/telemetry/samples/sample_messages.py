"""The message formats of topic gpu-telemetry: three layouts, distinguished by content-type.

    sample     one metric of one GPU       application/json
    snapshot   all metrics of one GPU      application/vnd.barnabas.gpu-snapshot+json
    tick       only the time               application/vnd.barnabas.tick+json

Samples and snapshots are keyed by GPU, so that a GPU's values keep their order. A snapshot has the
labels once, which samples repeat with every value, and is meant for high rates. A tick has no
value: it advances event time after the last sample of a replay, so that windows close and missing
cards are detected.

`decode` raises `MessageError` with the reason, which the dead letter has, too.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

VERSION = "1.0"
SAMPLE_TYPE = "application/json"
SNAPSHOT_TYPE = "application/vnd.barnabas.gpu-snapshot+json"
TICK_TYPE = "application/vnd.barnabas.tick+json"
MODEL_LABEL = "modelName"
"""The label for the model in a sample, which has no field for it."""

Headers = list[tuple[str, bytes]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class MessageError(ValueError):
    """A message does not match its layout; the text is the reason."""


class Layout(StrEnum):
    """The layouts of messages."""

    SAMPLE = "sample"
    SNAPSHOT = "snapshot"


class Message(NamedTuple):
    """A message for a producer."""

    key: bytes | None
    value: bytes
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One metric of one GPU at one time."""

    timestamp_ms: int
    metric_name: str
    gpu_id: str
    device: str
    hostname: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All values of one GPU at one time."""

    timestamp_ms: int
    gpu_id: str
    device: str
    hostname: str
    model: str
    labels: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    def samples(self) -> Iterator[Sample]:
        """Return the same values one by one; the model becomes a label."""
        labels = {**self.labels, MODEL_LABEL: self.model} if self.model else self.labels
        for name, value in self.metrics.items():
            yield Sample(
                timestamp_ms=self.timestamp_ms,
                metric_name=name,
                gpu_id=self.gpu_id,
                device=self.device,
                hostname=self.hostname,
                value=value,
                labels=labels,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A message with only the time."""

    timestamp_ms: int
    hostname: str


def headers(source: str, content_type: str) -> Headers:
    """Return the headers of a message."""
    return [
        ("source", source.encode()),
        ("version", VERSION.encode()),
        ("content-type", content_type.encode()),
    ]


def encode(snapshot: Snapshot, layout: Layout, source: str) -> Iterator[Message]:
    """Return the messages for one snapshot: itself, or one for each of its samples."""
    if layout is Layout.SNAPSHOT:
        yield encode_snapshot(snapshot, source)
    else:
        for sample in snapshot.samples():
            yield encode_sample(sample, source)


def encode_sample(sample: Sample, source: str) -> Message:
    """Return the message for one sample."""
    body = {
        "timestamp": format_time(sample.timestamp_ms),
        "metric_name": sample.metric_name,
        "gpu_id": sample.gpu_id,
        "device": sample.device,
        "hostname": sample.hostname,
        "value": sample.value,
        "labels": dict(sample.labels),
    }
    return Message(sample.gpu_id.encode(), _json(body), headers(source, SAMPLE_TYPE))


def encode_snapshot(snapshot: Snapshot, source: str) -> Message:
    """Return the message for one snapshot."""
    body = {
        "timestamp": format_time(snapshot.timestamp_ms),
        "gpu_id": snapshot.gpu_id,
        "device": snapshot.device,
        "hostname": snapshot.hostname,
        "model": snapshot.model,
        "labels": dict(snapshot.labels),
        "metrics": dict(snapshot.metrics),
    }
    return Message(snapshot.gpu_id.encode(), _json(body), headers(source, SNAPSHOT_TYPE))


def encode_tick(tick: Tick, source: str) -> Message:
    """Return the message for a tick, which has no key."""
    body = {
        "timestamp": format_time(tick.timestamp_ms),
        "hostname": tick.hostname,
        "tick": True,
    }
    return Message(None, _json(body), headers(source, TICK_TYPE))


def content_type(message_headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Return the layout in the headers; the default is a sample."""
    found = dict(message_headers).get("content-type")
    return SAMPLE_TYPE if found is None else found.decode(errors="replace")


def decode(value: bytes, layout_type: str = SAMPLE_TYPE) -> Sample | Snapshot | Tick:
    """Read a message; raise `MessageError` with the reason if it is invalid."""
    reader = _READERS.get(layout_type)
    if reader is None:
        raise MessageError(f"content-type {layout_type!r} is not known")
    try:
        body = json.loads(value, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MessageError(f"expected a JSON object, not {type(body).__name__}")
    return reader(body)


def format_time(timestamp_ms: int) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds."""
    seconds, ms = divmod(timestamp_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def parse_time(text: str) -> int:
    """Read ISO 8601; a time without a zone is UTC. Raises ValueError."""
    found = datetime.fromisoformat(text)
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _read_sample(body: dict[str, Any]) -> Sample:
    return Sample(
        timestamp_ms=_time(body),
        metric_name=_text(body, "metric_name"),
        gpu_id=_text(body, "gpu_id"),
        device=_text(body, "device", ""),
        hostname=_text(body, "hostname", ""),
        value=_number("value", _wanted(body, "value")),
        labels=_labels(body),
    )


def _read_snapshot(body: dict[str, Any]) -> Snapshot:
    metrics = _wanted(body, "metrics")
    if not isinstance(metrics, dict):
        raise MessageError(f"metrics must be an object, not {type(metrics).__name__}")
    return Snapshot(
        timestamp_ms=_time(body),
        gpu_id=_text(body, "gpu_id"),
        device=_text(body, "device", ""),
        hostname=_text(body, "hostname", ""),
        model=_text(body, "model", ""),
        labels=_labels(body),
        metrics={name: _number(name, value) for name, value in metrics.items()},
    )


def _read_tick(body: dict[str, Any]) -> Tick:
    return Tick(timestamp_ms=_time(body), hostname=_text(body, "hostname", ""))


_READERS: dict[str, Callable[[dict[str, Any]], Sample | Snapshot | Tick]] = {
    SAMPLE_TYPE: _read_sample,
    SNAPSHOT_TYPE: _read_snapshot,
    TICK_TYPE: _read_tick,
}


def _json(body: object) -> bytes:
    return _compact(body).encode()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _wanted(body: dict[str, Any], name: str) -> object:
    if name not in body:
        raise MessageError(f"{name} is missing")
    return body[name]


def _text(body: dict[str, Any], name: str, default: str | None = None) -> str:
    value = _wanted(body, name) if default is None else body.get(name, default)
    if not isinstance(value, str):
        raise MessageError(f"{name} must be text, not {type(value).__name__}")
    if not value and default is None:
        raise MessageError(f"{name} is empty")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MessageError(f"{name} must be a number, not {value!r:.40}")
    return value


def _time(body: dict[str, Any]) -> int:
    text = _text(body, "timestamp")
    try:
        return parse_time(text)
    except ValueError as error:
        raise MessageError(f"timestamp {text!r:.60} is not ISO 8601") from error


def _labels(body: dict[str, Any]) -> dict[str, str]:
    labels = body.get("labels", {})
    if not isinstance(labels, dict):
        raise MessageError(f"labels must be an object, not {type(labels).__name__}")
    return {name: _text(labels, name, "") for name in labels}
