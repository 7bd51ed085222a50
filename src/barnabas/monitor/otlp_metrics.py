"""Reads metrics of OpenTelemetry's protocol (protobuf), as far as Kafka's clients send them.

Clients send `MetricsData`: gauges and sums, with points that are numbers. Histograms and summaries
are skipped; so are fields of later versions. The bytes come from any client, so every length is
checked, and the number of points is bounded.

https://github.com/open-telemetry/opentelemetry-proto has the definitions.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import NamedTuple

POINTS_MAX = 10_000
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
DELTA = 1
_DOUBLE, _SIGNED = Struct("<d"), Struct("<q")

Value = int | memoryview


class OtlpError(ValueError):
    """The bytes are no metrics of OpenTelemetry's protocol."""


class Point(NamedTuple):
    """One value of a metric."""

    name: str
    value: float
    attributes: Mapping[str, str]
    is_sum: bool
    is_delta: bool
    """Whether it counts from the last push on, not from the start of the client."""


def points(content: bytes) -> list[Point]:
    """Return the points of all gauges and sums; raise `OtlpError` for anything else."""
    found: list[Point] = []
    for resource in _inner(memoryview(content), 1):
        for scope in _inner(resource, 2):
            for metric in _inner(scope, 2):
                found += _points_of(metric)
                if len(found) > POINTS_MAX:
                    raise OtlpError(f"more than {POINTS_MAX} points")
    return found


def _points_of(metric: memoryview) -> Iterator[Point]:
    name, gauge, total = "", None, None
    for number, value in _fields(metric):
        if number == 1:
            name = _text(value)
        elif number == 5:
            gauge = _bytes(value)
        elif number == 7:
            total = _bytes(value)
    if gauge is not None:
        yield from _numbers(name, gauge, is_sum=False, is_delta=False)
    if total is not None:
        temporality = [value for number, value in _fields(total) if number == 2]
        yield from _numbers(name, total, is_sum=True, is_delta=temporality[-1:] == [DELTA])


def _numbers(name: str, data: memoryview, *, is_sum: bool, is_delta: bool) -> Iterator[Point]:
    for point in _inner(data, 1):
        value, attributes = None, {}
        for number, field in _fields(point):
            if number == 4:
                (value,) = _DOUBLE.unpack(_eight(field))
            elif number == 6:
                (whole,) = _SIGNED.unpack(_eight(field))
                value = float(whole)
            elif number == 7:
                key, text = _attribute(_bytes(field))
                attributes[key] = text
        if value is not None:
            yield Point(name, value, attributes, is_sum, is_delta)


def _attribute(content: memoryview) -> tuple[str, str]:
    key = text = ""
    for number, value in _fields(content):
        if number == 1:
            key = _text(value)
        elif number == 2:
            for kind, inner in _fields(_bytes(value)):
                text = _text(inner) if kind == 1 else str(inner)
    return key, text


def _inner(content: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the messages that a repeated field holds."""
    for number, value in _fields(content):
        if number == wanted:
            yield _bytes(value)


def _fields(content: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: numbers as such, everything else as bytes."""
    position, end = 0, len(content)
    while position < end:
        tag, position = _varint(content, position)
        kind = tag & 7
        if kind == VARINT:
            value: Value
            value, position = _varint(content, position)
        else:
            size, position = _size(content, position, kind)
            if position + size > end:
                raise OtlpError("a field is longer than its message")
            value = content[position : position + size]
            position += size
        yield tag >> 3, value


def _size(content: memoryview, position: int, kind: int) -> tuple[int, int]:
    if kind == LENGTH:
        return _varint(content, position)
    if kind == FIXED64:
        return 8, position
    if kind == FIXED32:
        return 4, position
    raise OtlpError(f"there is no wire type {kind}")


def _varint(content: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if position >= len(content):
            raise OtlpError("a number is cut off")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise OtlpError("a number is too long")


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise OtlpError("a number where a message is expected")
    return value


def _eight(value: Value) -> memoryview:
    if isinstance(value, int) or len(value) != 8:
        raise OtlpError("a value that is no 64-bit number")
    return value


def _text(value: Value) -> str:
    return str(_bytes(value), "utf-8", errors="replace")
