"""Finds the field that makes a message impossible to encode.

Encoders check little, for speed. When one fails, this module walks the message again, slowly, and
names the first invalid field.
"""

import struct
from collections.abc import Iterator

from barnabas.protocol.fields import SCALAR_FORMATS, Field, fields_at
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import STRING_LENGTH_MAX


def explain(cls: type[Message], version: int, value: object, problem: Exception) -> ValueError:
    """Return an error that names the invalid field."""
    for fault in _struct_faults(cls, version, value, cls.__name__):
        return ValueError(f"{fault} (version {version})")
    return ValueError(f"{cls.__name__} cannot be encoded in version {version}: {problem}")


def _struct_faults(cls: type[Message], version: int, value: object, path: str) -> Iterator[str]:
    if not isinstance(value, cls):
        yield f"{path} must be {cls.__name__}, not {value!r:.60}"
        return
    for field in fields_at(cls, version):
        if field.present:
            held = getattr(value, field.name, None)
            yield from _faults(field, version, held, f"{path}.{field.name}")


def _faults(field: Field, version: int, value: object, path: str) -> Iterator[str]:
    if value is None:
        if not field.nullable:
            yield f"{path} is null"
    elif field.array:
        yield from _array_faults(field, version, value, path)
    else:
        yield from _element_faults(field, version, value, path)


def _array_faults(field: Field, version: int, value: object, path: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield f"{path} must be a list, not {value!r:.60}"
        return
    for index, element in enumerate(value):
        where = f"{path}[{index}]"
        if element is None:
            yield f"{where} is null"
        else:
            yield from _element_faults(field, version, element, where)


def _element_faults(field: Field, version: int, value: object, path: str) -> Iterator[str]:
    if field.struct is not None:
        yield from _struct_faults(field.struct, version, value, path)
    elif not _fits(field.kind, value):
        yield f"{path} cannot hold {value!r:.60} as {field.kind}"


def _fits(kind: str, value: object) -> bool:
    if kind in {"bytes", "records"}:
        return isinstance(value, bytes | bytearray | memoryview)
    if kind == "uuid":
        return isinstance(value, bytes) and len(value) == 16
    if kind == "bool":
        return isinstance(value, bool)
    try:
        if isinstance(value, str):
            return kind == "string" and len(value.encode()) <= STRING_LENGTH_MAX
        struct.pack(f">{SCALAR_FORMATS[kind]}", value)
    except (KeyError, OverflowError, UnicodeEncodeError, struct.error):
        return False
    return True
