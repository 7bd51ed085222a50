"""Compiles the constructor of a message class from its fields.

A constructor takes every field as a keyword argument and has a default for each, as
`dataclasses` would write it. A list or a struct is a new one for each message.
"""

from collections.abc import Callable
from typing import cast

from barnabas.protocol.fields import Field, fields_at
from barnabas.protocol.message import Message
from barnabas.protocol.source import Source

FRESH = object()
"""The default of a parameter whose field gets a new list or struct."""


def constructor(cls: type[Message]) -> Callable[..., None]:
    """Return `__init__` for a class."""
    source = Source({"FRESH": FRESH})
    fields = fields_at(cls, cls.VERSIONS[1])
    parameters = "".join(f", {field.name}={_default(field)}" for field in fields)
    with source.block(f"def __init__(self{', *' if fields else ''}{parameters})"):
        for field in fields:
            source.line(f"self.{field.name} = {_value(field, source)}")
    compiled = source.compile("__init__", f"construct {cls.__name__}")
    return cast("Callable[..., None]", compiled)


def _default(field: Field) -> str:
    if field.null_by_default:
        return "None"
    return "FRESH" if field.array or field.struct is not None else repr(field.default)


def _value(field: Field, source: Source) -> str:
    if _default(field) != "FRESH":
        return field.name
    struct = None if field.array else field.struct
    fresh = "[]" if struct is None else f"{source.constant(struct, struct.__name__ + '_')}()"
    return f"{fresh} if {field.name} is FRESH else {field.name}"
