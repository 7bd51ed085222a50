"""Generates the source of an encoder from the wire facts of a message.

An encoder appends parts to a list and joins them once. Neighbouring fields of fixed size,
lengths of non-flexible versions and empty tagged sections become one `pack`:

    w(pack_hiix(o2.error_code, o2.partition_index, o2.leader_id))

The encoder checks only what Python would not notice: a uuid of the wrong length, and a value in a
field that the version lacks. Every other invalid value raises an exception; `explain` then walks
the message to find the field.

The encoder notes the positions of records in the list, so that with `parts` they can be sent
without being copied.
"""

from struct import error as struct_error
from typing import Any, NoReturn

from barnabas.protocol import primitives
from barnabas.protocol.explaining import explain
from barnabas.protocol.fields import SCALAR_FORMATS, Field, fields_at
from barnabas.protocol.message import Encoded, Message
from barnabas.protocol.source import Source

PACKERS = {
    (kind, compact): primitives.ArrayPackers(letter, compact=compact)
    for kind, letter in SCALAR_FORMATS.items()
    for compact in (False, True)
    if kind != "uuid"
}

PAD = ("x", None)
"""A zero byte that needs no argument."""


def _absent(name: str, version: int) -> NoReturn:
    raise ValueError(f"{name} holds a value, but version {version} has no such field")


def _join_parts(parts: list[Any], places: list[int]) -> list[Any]:
    """Join the parts between records; the records stay separate."""
    joined = []
    start = 0
    for place in places:
        joined += [b"".join(parts[start:place]), parts[place]]
        start = place + 1
    joined.append(b"".join(parts[start:]))
    return [part for part in joined if len(part)]


NAMES: dict[str, Any] = {
    "struct_error": struct_error,
    "Encoded": Encoded,
    "explain": explain,
    "absent": _absent,
    "join": b"".join,
    "join_parts": _join_parts,
    "uvarint": primitives.uvarint,
    "string_length": primitives.string_length,
    "ONE": primitives.ONE_BYTE,
    **{
        f"{'compact' if compact else 'array'}_{kind}": packers
        for (kind, compact), packers in PACKERS.items()
    },
}


def encoder_source(cls: type[Message], version: int, *, parts: bool = False) -> Source:
    """Return the source of `encode(o0)`, which gives bytes, or a list of buffers."""
    source = Source(NAMES)
    source.names["CLS"] = cls
    with source.block("def encode(o0)"):
        source.line("parts = []")
        source.line("w = parts.append")
        source.line("places = []")
        with source.block("try"):
            _Encoder(source, version).struct(cls, "o0", cls.__name__, 0)
            source.line("return join_parts(parts, places)" if parts else "return join(parts)")
        failures = "(AttributeError, TypeError, OverflowError, UnicodeEncodeError, struct_error)"
        with source.block(f"except {failures} as problem"):
            source.line(f"raise explain(CLS, {version}, o0, problem) from problem")
    return source


class _Encoder:
    def __init__(self, source: Source, version: int) -> None:
        self.source = source
        self.line = source.line
        self.version = version
        self.run: list[tuple[str, str | None]] = []
        self.sink = "w"

    def struct(self, cls: type[Message], value: str, path: str, depth: int) -> None:
        """Emit code that writes the struct in a variable."""
        fields = fields_at(cls, self.version)
        for field in fields:
            if not field.present and not field.ignorable:
                with self.source.block(f"if {_differs(field, f'{value}.{field.name}')}"):
                    self.line(f"absent('{path}.{field.name}', {self.version})")
        for field in fields:
            if field.present and field.tag is None:
                self.field(field, f"{value}.{field.name}", path, depth)
        if self.version >= cls.FLEXIBLE_FROM:
            tagged = [field for field in fields if field.present and field.tag is not None]
            self.tags(sorted(tagged, key=lambda field: field.tag or 0), value, path, depth)
        self.flush()

    def field(self, field: Field, value: str, path: str, depth: int) -> None:
        """Emit code that writes one field."""
        if field.array:
            self.array(field, value, f"{path}.{field.name}", depth)
        elif field.format is not None:
            self.scalar(field, value)
        elif field.struct is not None:
            self.struct_field(field, value, f"{path}.{field.name}", depth)
        else:
            self.variable(field, value)

    def scalar(self, field: Field, value: str) -> None:
        """Put a fixed-size value at the end of the pending run."""
        assert field.format is not None
        if field.kind == "uuid":
            with self.source.block(f"if len({value}) != 16"):
                self.line("raise TypeError('a uuid is 16 bytes')")
        # `?` would write any object as a truth value, None among them.
        self.run.append(("b" if field.kind == "bool" else field.format, value))

    def flush(self) -> None:
        """Emit the pending run."""
        if not self.run:
            return
        letters = "".join(letter for letter, _ in self.run)
        arguments = ", ".join(value for _, value in self.run if value is not None)
        if arguments:
            pack = self.source.struct_method(letters, "pack")
            self.line(f"{self.sink}({pack}({arguments}))")
        else:
            self.line(f"{self.sink}({bytes(len(letters))!r})")
        self.run.clear()

    def null(self, field: Field, letter: str) -> None:
        """Put null at the end of the pending run."""
        self.run.append(PAD if field.compact else (letter, "-1"))
        self.flush()

    def variable(self, field: Field, value: str) -> None:
        """Emit code for a string, bytes or records."""
        self.line(f"s = {value}")
        if not field.nullable:
            self.sized(field)
            return
        self.flush()
        with self.source.block("if s is None"):
            self.null(field, "h" if field.kind == "string" else "i")
        with self.source.block("else"):
            self.sized(field)

    def sized(self, field: Field) -> None:
        """Emit code for the bytes in `s`, behind their length."""
        string = field.kind == "string"
        if string:
            self.line("s = s.encode()")
        if field.compact:
            self.flush()
            self.line("n = len(s) + 1")
            long = "string_length" if string else "uvarint"
            self.line(f"{self.sink}(ONE[n] if n < 128 else {long}(n))")
        else:
            self.run.append(("h" if string else "i", "len(s)"))
            self.flush()
        if field.kind == "records":
            # Records inside a tagged section would be copied; no message has any there.
            assert self.sink == "w"
            self.line("places.append(len(parts))")
        self.line(f"{self.sink}(s)")

    def struct_field(self, field: Field, value: str, path: str, depth: int) -> None:
        """Emit code for a struct in a field, behind a presence byte if it may be null.

        That byte is 1, else -1 in a field and 0 in a tagged one.
        """
        assert field.struct is not None
        inner = f"o{depth + 1}"
        self.line(f"{inner} = {value}")
        if not field.nullable:
            self.struct(field.struct, inner, path, depth + 1)
            return
        self.flush()
        with self.source.block(f"if {inner} is None"):
            null = bytes([0xFF if field.tag is None else 0])
            self.line(f"{self.sink}({null!r})")
        with self.source.block("else"):
            self.run.append(("b", "1"))
            self.struct(field.struct, inner, path, depth + 1)

    def array(self, field: Field, value: str, path: str, depth: int) -> None:
        """Emit code for an array."""
        self.flush()
        items = f"v{depth}"
        self.line(f"{items} = {value}")
        if not field.nullable:
            self.elements(field, items, path, depth)
            return
        with self.source.block(f"if {items} is None"):
            self.null(field, "i")
        with self.source.block("else"):
            self.elements(field, items, path, depth)

    def elements(self, field: Field, items: str, path: str, depth: int) -> None:
        """Emit code for the elements of an array, behind their count."""
        if (field.kind, field.compact) in PACKERS:
            table = f"{'compact' if field.compact else 'array'}_{field.kind}"
            self.line(f"{self.sink}({table}[len({items})](*{items}))")
            return
        if field.compact:
            self.line(f"n = len({items}) + 1")
            self.line(f"{self.sink}(ONE[n] if n < 128 else uvarint(n))")
        else:
            self.run.append(("i", f"len({items})"))
            self.flush()
        inner = f"o{depth + 1}"
        if field.struct is not None and depth == 0 and self.sink == "w":
            with self.source.block(f"if {items}.__class__ is Encoded"):
                self.line(f"parts.extend({items})")
                self.line(f"{items} = ()")
        with self.source.block(f"for {inner} in {items}"):
            if field.struct is not None:
                self.struct(field.struct, inner, path, depth + 1)
            elif field.kind == "uuid":
                self.scalar_element(inner)
            else:
                self.line(f"s = {inner}")
                self.sized(field)

    def scalar_element(self, value: str) -> None:
        """Emit code for a uuid in an array."""
        with self.source.block(f"if len({value}) != 16"):
            self.line("raise TypeError('a uuid is 16 bytes')")
        self.line(f"{self.sink}({value})")

    def tags(self, tagged: list[Field], value: str, path: str, depth: int) -> None:
        """Emit code for the tagged section: known fields that differ from their defaults."""
        if not tagged:
            self.run.append(PAD)
            return
        self.flush()
        conditions = [_differs(field, f"{value}.{field.name}") for field in tagged]
        outer, section, content = self.sink, f"t{depth}", f"c{depth}"
        with self.source.block(f"if {' or '.join(conditions)}"):
            self.line(f"{section} = []")
            for field, condition in zip(tagged, conditions, strict=True):
                with self.source.block(f"if {condition}"):
                    self.line(f"{content} = []")
                    self.sink = f"{content}.append"
                    self.field(field, f"{value}.{field.name}", path, depth)
                    self.flush()
                    self.line(f"{content} = join({content})")
                    head = f"{primitives.uvarint(field.tag or 0)!r} + uvarint(len({content}))"
                    self.line(f"{section}.append({head} + {content})")
            self.sink = outer
            self.line(f"{outer}(uvarint(len({section})))")
            self.line(f"{outer}(join({section}))")
        with self.source.block("else"):
            self.line(f"{outer}(b'\\x00')")


def _differs(field: Field, value: str) -> str:
    """Return an expression that tells whether a value is other than the field's default."""
    if field.null_by_default:
        return f"{value} is not None"
    if field.array:
        return f"{value} is None or {value}"
    if field.struct is not None:
        # A struct is at its default when all of it is, whatever the version.
        parts = [_differs(part, f"{value}.{part.name}") for part in fields_at(field.struct, 0)]
        return " or ".join([f"{value} is None"] * field.nullable + parts) or "False"
    return f"{value} != {field.default!r}"
