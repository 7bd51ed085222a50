"""Keys, values and headers as text: JSON with line breaks, plain text, Avro, or hexadecimal.

The text is for people. `bytes_base64` holds the exact bytes, where a request asks for them.
"""

import base64
import json
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from barnabas.admin.admin_errors import AdminError
from barnabas.console.records.found_records import FoundRecord

TEXT_BYTES_MAX = 64 << 10
"""How much of a value a list of records shows."""
FULL_BYTES_MAX = 8 << 20
HEX_COLUMNS = 16
CONFLUENT_MAGIC = 0
CONFLUENT_HEAD = 5
"""Confluent's wire format: a zero byte, and the id of the schema in four."""
AVRO_FILE = b"Obj\x01"
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class View(StrEnum):
    """How bytes are shown."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    AVRO = "avro"
    HEX = "hex"


class Shown(NamedTuple):
    """How one record is to be shown."""

    view: View = View.AUTO
    full: bool = False
    """Whether with all bytes, exactly."""
    schema: str | None = None
    """An Avro schema for values without one."""


def record_json(found: FoundRecord, shown: Shown) -> dict[str, Any]:
    """Return a record as the API lists it."""
    record = found.record
    return {
        "topic": found.topic,
        "partition": found.partition,
        "offset": record.offset,
        "timestamp_ms": None if record.timestamp < 0 else record.timestamp,
        "timestamp_type": "LogAppendTime" if found.is_append_time else "CreateTime",
        "key": content_json(record.key, shown._replace(schema=None)),
        "value": content_json(record.value, shown),
        "headers": [
            {"name": name, "value": content_json(value, Shown(View.AUTO, shown.full))}
            for name, value in record.headers
        ],
        "size_bytes": found.size_bytes,
        "leader_epoch": found.leader_epoch,
    }


def content_json(content: bytes | None, shown: Shown) -> dict[str, Any]:
    """Return a key, a value or the value of a header, ready to show."""
    if content is None:
        return _content("null", "", 0)
    limit = FULL_BYTES_MAX if shown.full else TEXT_BYTES_MAX
    encoding, text, schema = _render(content, shown, limit)
    cut = len(text) > limit
    found = _content(encoding, text[:limit] if cut else text, len(content))
    found["truncated"] = cut or (encoding == "hex" and len(content) > limit // HEX_COLUMNS)
    found["schema"] = schema
    if shown.full:
        found["bytes_base64"] = base64.b64encode(content).decode()
    return found


def _content(encoding: str, text: str, size: int) -> dict[str, Any]:
    return {
        "encoding": encoding,
        "text": text,
        "size_bytes": size,
        "truncated": False,
        "schema": None,
    }


def _render(content: bytes, shown: Shown, limit: int) -> tuple[str, str, str | None]:
    """Return encoding, text and schema; what cannot be shown as wished is shown as hexadecimal."""
    match shown.view:
        case View.HEX:
            return "hex", hex_text(content, limit), None
        case View.TEXT:
            return "text", content.decode("utf-8", "replace"), None
        case View.AVRO:
            return _avro(content, shown.schema, limit)
        case View.JSON:
            text = _json_text(content, limit)
        case View.AUTO:
            text = _json_text(content, limit) if content[:1] in _JSON_STARTS else None
    if text is not None:
        return "json", text, None
    plain = _plain_text(content)
    return ("hex", hex_text(content, limit), None) if plain is None else ("text", plain, None)


_JSON_STARTS = {b"{", b"[", b'"'}


def _plain_text(content: bytes) -> str | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _json_text(content: bytes, limit: int) -> str | None:
    """Return JSON with line breaks and all numbers as they were written; None if it is not JSON."""
    try:
        text = content.decode()
        json.loads(text, parse_float=_as_written, parse_int=_as_written)
    except (ValueError, RecursionError):
        return None
    return indented(text, limit)


def _as_written(_: str) -> None:
    """Do not convert numbers: a long one would take long, and is not needed."""


def indented(text: str, limit: int) -> str:
    """Return valid JSON with two spaces a level; what is far behind the limit is left out."""
    parts: list[str] = []
    depth, size, is_begun = 0, 0, False
    for found in _PIECE.finditer(text):
        piece = found[0]
        if piece in "}]":
            depth -= 1
            shown = piece if is_begun else f"\n{'  ' * depth}{piece}"
        else:
            shown = {",": f",\n{'  ' * depth}", ":": ": "}.get(piece, piece)
            if is_begun:
                shown = f"\n{'  ' * depth}{shown}"
            depth += piece in "{["
        is_begun = piece in "{["
        parts.append(shown)
        size += len(shown)
        if size > limit:
            break
    return "".join(parts)


def hex_text(content: bytes, limit: int) -> str:
    """Return lines of an offset, sixteen bytes and their letters."""
    shown = content[: limit // HEX_COLUMNS]
    lines = []
    for start in range(0, len(shown), HEX_COLUMNS):
        part = shown[start : start + HEX_COLUMNS]
        pairs = part.hex(" ").ljust(3 * HEX_COLUMNS - 1)
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{start:08x}  {pairs}  {letters}")
    return "\n".join(lines)


def _avro(content: bytes, schema: str | None, limit: int) -> tuple[str, str, str | None]:
    """Return Avro as JSON: a file with its own schema, or a value with the request's schema."""
    decode = _avro_decoder(content, schema)
    if decode is None:
        return "hex", hex_text(content, limit), None
    try:
        value, used = decode()
        text = json.dumps(value, default=str, ensure_ascii=False, indent=2)
    except (ValueError, TypeError, KeyError, IndexError, EOFError, StopIteration, RecursionError):
        return "hex", hex_text(content, limit), None
    return "avro", text, used


def _avro_decoder(
    content: bytes, schema: str | None
) -> Callable[[], tuple[object, str | None]] | None:
    if content[:4] != AVRO_FILE and schema is None:
        return None
    from io import BytesIO

    try:
        import fastavro
    except ModuleNotFoundError:
        raise AdminError(
            "Avro needs fastavro, which is not installed; run: pip install fastavro"
        ) from None

    def read_file() -> tuple[object, str | None]:
        reader = fastavro.reader(BytesIO(content))
        return list(reader), json.dumps(reader.writer_schema)

    def read_value() -> tuple[object, str | None]:
        assert schema is not None
        has_head = len(content) > CONFLUENT_HEAD and content[0] == CONFLUENT_MAGIC
        body = content[CONFLUENT_HEAD:] if has_head else content
        parsed = fastavro.parse_schema(json.loads(schema))
        return fastavro.schemaless_reader(BytesIO(body), parsed, None), schema

    return read_file if content[:4] == AVRO_FILE else read_value
