"""Formats messages for a trace; fields with default values are omitted."""

from typing import Any

from barnabas.protocol.message import Message
from barnabas.protocol.records import batches

LONG = 40


def brief(message: Message) -> str:
    """Return a message as one line, without fields that have default values."""
    usual = type(message)()
    fields = [
        f"{name}={_value(name, getattr(message, name))}"
        for name in message.__slots__
        if getattr(message, name) != getattr(usual, name) or name == "error_code"
    ]
    return f"{type(message).__name__}({', '.join(fields)})"


def _value(name: str, value: Any) -> str:  # noqa: ANN401 - anything that a field can be
    if name == "records":
        return "[" + " ".join(_batch(header) for header, _ in batches(value or b"")) + "]"
    if isinstance(value, Message):
        return brief(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value("", each) for each in value) + "]"
    text = repr(value)
    return text if len(text) <= LONG else f"{text[:LONG]}..."


def _batch(header: Any) -> str:  # noqa: ANN401 - a batch header
    kind = "marker" if header.is_control else f"{header.record_count}"
    place = f"{header.base_offset}+{kind}"
    return f"{place} of {header.producer_id}:{header.producer_epoch}:{header.base_sequence}"
