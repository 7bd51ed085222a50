"""Mixes malformed messages of every kind into a clean stream.

Malformed messages are added to the clean ones and never replace them: a pipeline must store the
same rows for both streams. Each has its number in header `dirt`, and a label with its kind.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from barnabas.telemetry.samples.metrics import NO_VALUE_FROM
from barnabas.telemetry.samples.sample_messages import (
    Message,
    Sample,
    Snapshot,
    Tick,
    content_type,
    decode,
    encode_sample,
    format_time,
)

HEADER = "dirt"
HUGE_BYTES = 1_000_000
SENTINEL = NO_VALUE_FROM + 2
LATE_MS = 600_000
DAY_MS = 86_400_000
AHEAD_MS = 3_650 * DAY_MS
"""Ten years: ahead of any broker's clock, even if the fleet is simulated in the past."""
BEHIND_MS = 365 * DAY_MS
SOURCE = "simulate"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtLabel:
    """The kind of a malformed message, and how to find it."""

    number: int
    kind: str
    gpu_id: str
    timestamp: str
    size_bytes: int
    sha256: str

    def as_json(self) -> str:
        """Return the line of the labels file."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


class Dirt:
    """Mixes malformed messages into a stream, and collects their labels."""

    def __init__(self, share: float, seed: int) -> None:
        """Take the share of malformed messages to add."""
        self._share = share
        self._rng = np.random.default_rng([seed, 4])
        self._pool: list[bool] = []
        self.labels: list[DirtLabel] = []

    def mixed(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Return the messages with malformed ones among them."""
        for message in messages:
            yield message
            if self._chosen():
                yield self._piece(message)

    def _chosen(self) -> bool:
        if not self._pool:
            self._pool = (self._rng.random(4096) < self._share).tolist()
        return self._pool.pop()

    def _piece(self, clean: Message) -> Message:
        number = len(self.labels)
        kind = list(KINDS)[number % len(KINDS)]
        # The second round of a kind uses its other form.
        made = KINDS[kind](clean, number // len(KINDS))
        decoded = decode(clean.value, content_type(clean.headers))
        self.labels.append(
            DirtLabel(
                number=number,
                kind=kind,
                gpu_id=decoded.hostname if isinstance(decoded, Tick) else decoded.gpu_id,
                timestamp=format_time(decoded.timestamp_ms),
                size_bytes=len(made.value),
                sha256=hashlib.sha256(made.value).hexdigest(),
            )
        )
        return made._replace(headers=[*made.headers, (HEADER, str(number).encode())])


Make = Callable[[Message, int], Message]


def _sample(clean: Message, **changes: object) -> Message:
    """Return a sample of the same card with some fields changed; None removes a field."""
    found = decode(clean.value, content_type(clean.headers))
    assert isinstance(found, Sample | Snapshot)
    sample = Sample(
        timestamp_ms=found.timestamp_ms,
        metric_name="DCGM_FI_DEV_GPU_UTIL",
        gpu_id=found.gpu_id,
        device=found.device,
        hostname=found.hostname,
        value=50,
        labels=found.labels,
    )
    message = encode_sample(sample, SOURCE)
    body = {**json.loads(message.value), **changes}
    kept = {name: value for name, value in body.items() if value is not None}
    return message._replace(value=json.dumps(kept, separators=(",", ":")).encode())


def _bad_json(clean: Message, turn: int) -> Message:
    if turn % 2:
        return clean._replace(value=clean.value.replace(b":", b"=", 1))
    return clean._replace(value=clean.value[: len(clean.value) // 2])


def _not_utf8(clean: Message, _: int) -> Message:
    return clean._replace(value=b"\xff\xfe" + clean.value[:64])


def _empty(clean: Message, _: int) -> Message:
    return clean._replace(value=b"")


def _wrong_type(clean: Message, turn: int) -> Message:
    faces: tuple[dict[str, object], ...] = (
        {"value": "high"},
        {"value": [50]},
        {"gpu_id": 7},
        {"timestamp": 1_700_000_000},
        {"labels": "none"},
    )
    return _sample(clean, **faces[turn % len(faces)])


def _missing_field(clean: Message, turn: int) -> Message:
    fields = ("gpu_id", "timestamp", "value", "metric_name")
    return _sample(clean, **{fields[turn % len(fields)]: None})


def _unknown_type(clean: Message, _: int) -> Message:
    kept = [header for header in clean.headers if header[0] != "content-type"]
    return clean._replace(headers=[*kept, ("content-type", b"application/x-unheard-of")])


def _retimed(by_ms: int) -> Make:
    def make(clean: Message, turn: int) -> Message:
        found = decode(clean.value, content_type(clean.headers))
        # A millisecond later each time, so that no two of them are duplicates.
        when = format_time(max(found.timestamp_ms + by_ms + turn, 0)).encode()
        return clean._replace(value=clean.value.replace(_when(clean.value), when, 1))

    return make


def _when(value: bytes) -> bytes:
    return value[len(b'{"timestamp":"') : value.index(b'",')]


KINDS: dict[str, Make] = {
    "bad_json": _bad_json,
    "not_utf8": _not_utf8,
    "empty": _empty,
    "wrong_type": _wrong_type,
    "sentinel": lambda clean, turn: _sample(clean, value=SENTINEL + turn % 4),
    "out_of_range": lambda clean, turn: _sample(clean, value=(300, -1)[turn % 2]),
    "missing_field": _missing_field,
    "unknown_metric": lambda clean, _: _sample(clean, metric_name="GPU_NO_SUCH_METRIC"),
    "bad_timestamp": lambda clean, _: _sample(clean, timestamp="yesterday"),
    "unknown_content_type": _unknown_type,
    "clock_ahead": _retimed(AHEAD_MS),
    "clock_behind": _retimed(-BEHIND_MS),
    "huge_value": lambda clean, _: _sample(clean, value="9" * HUGE_BYTES),
    "late": _retimed(-LATE_MS),
    "duplicate": lambda clean, _: clean,
}
"""Functions that make a malformed message from a clean one and the number of the round."""
