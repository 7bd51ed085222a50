"""Parse the input of `produce`: lines of text, or one JSON object per line.

A line of JSON is

    {"key": "k", "value": "v", "headers": {"a": "b"}, "partition": 0, "timestamp": 1700000000000}

of which only the value is required; null makes a tombstone. A value that is not text is sent as
JSON. `key_base64` and `value_base64` are for bytes. `topic` and `offset` are ignored, so that the
output of `consume --json` can be sent again.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import parse_time_ms

Header = tuple[str, bytes | None]
KNOWN = {
    "key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp",
    "topic", "offset",
}  # fmt: skip


class BadLineError(Exception):
    """A line is invalid; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One record to send."""

    value: bytes | None
    key: bytes | None = None
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


Parse = Callable[[bytes], Outgoing]


def line_parser(
    *,
    key: str | None,
    key_separator: str | None,
    headers: Iterable[Header],
    partition: int | None,
) -> Parse:
    """Return a function that converts a line, without its newline, to a record."""
    base = Outgoing(
        value=None,
        key=None if key is None else key.encode(),
        headers=list(headers),
        partition=partition,
    )
    if key_separator is None:
        return lambda line: replace(base, value=line)
    separator = key_separator.encode().decode("unicode_escape").encode()

    def split(line: bytes) -> Outgoing:
        found, middle, value = line.partition(separator)
        if not middle:
            raise BadLineError(f"no key separator {key_separator!r}; write KEY{key_separator}VALUE")
        return replace(base, key=found, value=value)

    return split


def json_parser(*, key: str | None, headers: Iterable[Header], partition: int | None) -> Parse:
    """Return a function that converts a line of JSON to a record; options are defaults."""
    common = list(headers)

    def parse(line: bytes) -> Outgoing:
        found = parse_json(line)
        return replace(
            found,
            key=key.encode() if found.key is None and key is not None else found.key,
            headers=common + found.headers,
            partition=partition if found.partition is None else found.partition,
        )

    return parse


def parse_json(line: bytes) -> Outgoing:
    """Parse one JSON object."""
    try:
        content = json.loads(line)
    except ValueError as error:
        raise BadLineError(f"not JSON ({error}); write one object per line") from error
    if not isinstance(content, dict):
        raise BadLineError('not an object; write {"value": ...}')
    unknown = content.keys() - KNOWN
    if unknown:
        raise BadLineError(f"unknown field {min(unknown)!r}; known are {', '.join(sorted(KNOWN))}")
    if not content.keys() & {"value", "value_base64"}:
        raise BadLineError('no "value"; write "value": null for a tombstone')
    return Outgoing(
        value=_content(content, "value"),
        key=_content(content, "key"),
        headers=_headers(content.get("headers")),
        partition=_number(content, "partition"),
        timestamp_ms=_timestamp_ms(content.get("timestamp")),
    )


def _content(content: dict[str, object], name: str) -> bytes | None:
    encoded = content.get(f"{name}_base64")
    return _bytes(content.get(name)) if encoded is None else _from_base64(encoded)


def _bytes(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _from_base64(value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error as error:
        raise BadLineError(f"{value!r} is not base64") from error


def _headers(value: object) -> list[Header]:
    match value:
        case None:
            return []
        case dict():
            return [(str(name), _header_value(each)) for name, each in value.items()]
        case list() if all(isinstance(each, list) and len(each) == 2 for each in value):
            return [(str(name), _header_value(each)) for name, each in value]
    raise BadLineError('headers are neither {"name": "value"} nor [["name", "value"], ...]')


def _header_value(value: object) -> bytes | None:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _from_base64(value["base64"])
    return _bytes(value)


def _number(content: dict[str, object], name: str) -> int | None:
    value = content.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadLineError(f"{name} {value!r} is not a whole number of at least 0")
    return value


def _timestamp_ms(value: object) -> int | None:
    # `consume --json` prints -1 for a record without a timestamp.
    if value is None or value == -1:
        return None
    try:
        return parse_time_ms(str(value))
    except AdminError as error:
        raise BadLineError(
            f"timestamp {value!r} is neither milliseconds nor 2026-03-01T12:00:00Z"
        ) from error
