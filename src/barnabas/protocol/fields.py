"""Parses the wire facts of a message class for one version.

`message.py` documents the format of the facts. Here they become `Field` values, which tell a code
generator whether the field is present, may be null, has a varint length, and what its default is.
A field that a version lacks is still listed: decoding sets its default, and encoding must not drop
a value silently.
"""

import sys
from dataclasses import dataclass
from typing import cast

from barnabas.protocol.message import Message

SCALAR_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The fixed-size types and their format characters for `struct`."""

SCALAR_SIZES = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}

VARIABLE = {"string", "bytes", "records"}

Default = int | float | str | bytes | None

ZEROS: dict[str, Default] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": bytes(16),
    "string": "",
    "bytes": b"",
    "records": b"",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one class in one version."""

    name: str
    kind: str
    """A scalar type or `struct`; for an array, that of its elements."""
    array: bool
    struct: type[Message] | None
    present: bool
    nullable: bool
    compact: bool
    tag: int | None
    ignorable: bool
    null_by_default: bool
    default: Default
    """The scalar default; meaningless for arrays and structs."""

    @property
    def format(self) -> str | None:
        """The `struct` letter of a fixed-size scalar, else None."""
        return None if self.array else SCALAR_FORMATS.get(self.kind)


def covers(versions: str, version: int) -> bool:
    """Tell whether `0+`, `2-5` or `3` holds a version; `none` holds no version."""
    if versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    low, _, high = versions.partition("-")
    return int(low) <= version <= int(high or low)


def fields_at(cls: type[Message], version: int) -> tuple[Field, ...]:
    """Return all fields of a class as they are in a version."""
    return tuple(_field(cls, name, facts, version) for name, facts in cls.FIELDS.items())


def _field(cls: type[Message], name: str, facts: str, version: int) -> Field:
    kind, versions, *words = facts.split(" ")
    options = dict(word.partition("=")[::2] for word in words)
    array = kind.startswith("[]")
    element = kind.removeprefix("[]")
    scalar = element in SCALAR_FORMATS or element in VARIABLE
    flexible = version >= cls.FLEXIBLE_FROM
    default = options.get("default")
    return Field(
        name=name,
        kind=element if scalar else "struct",
        array=array,
        struct=None if scalar else struct_named(cls, element),
        present=covers(versions, version),
        nullable=covers(options.get("nullable", "none"), version),
        compact=flexible and options.get("flexible") != "none",
        tag=int(options["tag"]) if covers(options.get("tagged", "none"), version) else None,
        ignorable="ignorable" in options,
        null_by_default=default == "null",
        default=_default(element, default),
    )


def struct_named(cls: type[Message], name: str) -> type[Message]:
    """Return the class of this name in the module of another class."""
    return cast("type[Message]", getattr(sys.modules[cls.__module__], name))


def _default(kind: str, text: str | None) -> Default:
    if text is None:
        return ZEROS.get(kind)
    if kind == "bool":
        return text == "true"
    return None if text == "null" else int(text)


def minimum_size(cls: type[Message], version: int) -> int:
    """Return the fewest bytes that an instance takes."""
    flexible = version >= cls.FLEXIBLE_FROM
    present = (f for f in fields_at(cls, version) if f.present and f.tag is None)
    return sum(_minimum_size(field, version) for field in present) + flexible


def _minimum_size(field: Field, version: int) -> int:
    if field.format is not None:
        return SCALAR_SIZES[field.format]
    if field.array:
        return 1 if field.compact else 4
    if field.struct is not None:
        return 1 if field.nullable else minimum_size(field.struct, version)
    return 1 if field.compact else 2 if field.kind == "string" else 4


def element_minimum_size(field: Field, version: int) -> int:
    """Return the fewest bytes that one element of an array takes, and never 0.

    A decoder checks a count against it and the remaining bytes before it allocates anything.
    """
    if field.struct is not None:
        return max(1, minimum_size(field.struct, version))
    if field.kind in SCALAR_FORMATS:
        return SCALAR_SIZES[SCALAR_FORMATS[field.kind]]
    return 1 if field.compact else 2 if field.kind == "string" else 4
