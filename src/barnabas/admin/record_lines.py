"""Records as lines of JSON, which `produce --format json` reads back.

JSON cannot hold arbitrary bytes: bytes that are not UTF-8 are in `key_base64` or `value_base64`.
"""

import base64
import json
from collections.abc import Iterable


def record_line(
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> bytes:
    """Return a record as one line of JSON."""
    fields: dict[str, object] = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp_ms,
        **_text_or_base64("key", key),
        **_text_or_base64("value", value),
        "headers": [_header(name, content) for name, content in headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text_or_base64(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _header(name: str, value: bytes | None) -> list[object]:
    found = _text_or_base64("value", value)
    return [name, found["value"] if "value" in found else {"base64": found["value_base64"]}]
