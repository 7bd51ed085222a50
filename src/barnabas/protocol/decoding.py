"""Generates the source of a decoder from the wire facts of a message.

A decoder is straight-line code over `buf`, `pos` and `size`. Neighbouring fields of fixed
size are read by one `unpack_from` right into the attributes, together with the length or
count that follows them:

    o0.error_code, o0.partition, n = unpack_from_hiB(buf, pos)
    pos += 7

Truncated input raises `struct.error` or `IndexError`, or fails the check of a length against
`size`; the generated function turns all of them into `WireError`. Every loop consumes at least
one byte per iteration, and lists grow only by what was read.
"""

from contextlib import AbstractContextManager, nullcontext
from struct import error as struct_error
from typing import Any

from barnabas.model.errors import WireError
from barnabas.protocol import primitives
from barnabas.protocol.fields import (
    SCALAR_FORMATS,
    SCALAR_SIZES,
    Field,
    element_minimum_size,
    fields_at,
)
from barnabas.protocol.message import Message
from barnabas.protocol.source import Source

UNPACKERS = {
    kind: primitives.ArrayUnpackers(letter)
    for kind, letter in SCALAR_FORMATS.items()
    if kind != "uuid"
}

NAMES: dict[str, Any] = {
    "WireError": WireError,
    "struct_error": struct_error,
    "new": object.__new__,
    "uvarint": primitives.read_uvarint,
    "string_length": primitives.read_string_length,
    "skip_tags": primitives.skip_tags,
    "bad_length": primitives.bad_length,
    "bad_tag": primitives.bad_tag,
    **{f"array_{kind}": unpackers for kind, unpackers in UNPACKERS.items()},
}


def decoder_source(cls: type[Message], version: int) -> Source:
    """Return the source of `decode(buf, pos)` for a class and version."""
    source = Source(NAMES)
    with source.block("def decode(buf, pos)"):
        source.line("size = len(buf)")
        with source.block("try"):
            _Decoder(source, version).struct(cls, "o0", 0)
        failures = "(struct_error, IndexError, UnicodeDecodeError)"
        with source.block(f"except {failures} as problem"):
            title = f"{cls.__name__} v{version}"
            source.line(f"raise WireError(f'{title}, at byte {{pos}}: {{problem}}') from None")
        source.line("return o0, pos")
    return source


class _Decoder:
    def __init__(self, source: Source, version: int) -> None:
        self.source = source
        self.line = source.line
        self.version = version
        self.run: list[tuple[str, str]] = []

    def struct(self, cls: type[Message], target: str, depth: int) -> None:
        """Emit code that leaves a new instance in a variable."""
        self.line(f"{target} = new({self.source.constant(cls, cls.__name__ + '_')})")
        fields = fields_at(cls, self.version)
        for field in fields:
            if not field.present or field.tag is not None:
                self.line(f"{target}.{field.name} = {self._default(field)}")
        for field in fields:
            if field.present and field.tag is None:
                self.field(field, f"{target}.{field.name} = ", depth)
        if self.version >= cls.FLEXIBLE_FROM:
            tagged = [field for field in fields if field.present and field.tag is not None]
            self.tags(cls, tagged, target, depth)
        self.flush()

    def _default(self, field: Field) -> str:
        if field.null_by_default:
            return "None"
        if field.array:
            return "[]"
        if field.struct is not None:
            return self.source.constant(field.struct, field.struct.__name__ + "_") + "()"
        return repr(field.default)

    def field(self, field: Field, sink: str, depth: int) -> None:
        """Emit code that assigns a field; `sink` ends in `= `."""
        if field.array:
            self.array(field, sink, depth)
        elif field.format is not None:
            self.read(field.format, sink.removesuffix(" = "))
        elif field.struct is not None:
            self.struct_field(field, field.struct, sink, depth)
        else:
            self.variable(field, sink, "")

    def read(self, letter: str, target: str) -> None:
        """Put a fixed-size value at the end of the pending run."""
        self.run.append((letter, target))

    def flush(self) -> None:
        """Emit the pending run."""
        if not self.run:
            return
        letters = "".join(letter for letter, _ in self.run)
        if letters == "B":
            self.line(f"{self.run[0][1]} = buf[pos]")
        else:
            targets = "".join(f"{target}, " for _, target in self.run)
            method = self.source.struct_method(letters, "unpack_from")
            self.line(f"{targets.strip()} = {method}(buf, pos)")
        self.line(f"pos += {sum(SCALAR_SIZES[letter] for letter, _ in self.run)}")
        self.run.clear()

    def length(self, field: Field, *, letter: str, long: str = "uvarint") -> None:
        """Emit code that leaves a length or count in `n`, -1 for null."""
        self.read("B" if field.compact else letter, "n")
        self.flush()
        if field.compact:
            with self.source.block("if n > 127"):
                self.line(f"n, pos = {long}(buf, pos - 1)")
            self.line("n -= 1")

    def unless_null(self, field: Field, sink: str, end: str) -> AbstractContextManager[None]:
        """Emit the null branch where null is allowed, and open the other."""
        if not field.nullable:
            return nullcontext()
        with self.source.block("if n == -1"):
            self.line(f"{sink}None{end}")
        return self.source.block("else")

    def variable(self, field: Field, sink: str, end: str) -> None:
        """Emit code for a string, bytes or records; `sink` and `end` surround the value."""
        if field.kind == "string":
            self.length(field, letter="h", long="string_length")
            value = "str(buf[pos:end], 'utf-8')"
        else:
            self.length(field, letter="i")
            value = "buf[pos:end]" if field.kind == "records" else "bytes(buf[pos:end])"
        with self.unless_null(field, sink, end):
            self.line("end = pos + n")
            with self.source.block("if not pos <= end <= size"):
                self.line(f"bad_length('{field.name}', n)")
            self.line(f"{sink}{value}{end}")
            self.line("pos = end")

    def struct_field(self, field: Field, cls: type[Message], sink: str, depth: int) -> None:
        """Emit code for a struct in a field, behind a presence byte if it may be null."""
        inner = f"o{depth + 1}"
        if not field.nullable:
            self.struct(cls, inner, depth + 1)
            self.line(f"{sink}{inner}")
            return
        self.read("b", "n")
        self.flush()
        with self.source.block("if n < 0" if field.tag is None else "if n == 0"):
            self.line(f"{sink}None")
        with self.source.block("else"):
            self.struct(cls, inner, depth + 1)
            self.line(f"{sink}{inner}")

    def array(self, field: Field, sink: str, depth: int) -> None:
        """Emit code for an array."""
        self.length(field, letter="i")
        with self.unless_null(field, sink, ""):
            least = element_minimum_size(field, self.version)
            need = "n" if least == 1 else f"n * {least}"
            with self.source.block(f"if n < 0 or {need} > size - pos"):
                self.line(f"bad_length('{field.name}', n)")
            self.elements(field, sink, depth, least)

    def elements(self, field: Field, sink: str, depth: int, least: int) -> None:
        """Emit code that reads `n` elements into a list."""
        if field.kind == "uuid":
            self.line("end = pos + n * 16")
            self.line(f"{sink}[bytes(buf[at:at + 16]) for at in range(pos, end, 16)]")
            self.line("pos = end")
            return
        if field.kind in UNPACKERS:
            self.line(f"{sink}list(array_{field.kind}[n](buf, pos))")
            self.line(f"pos += n * {least}" if least > 1 else "pos += n")
            return
        items = f"v{depth}"
        self.line(f"{items} = []")
        self.line(f"{sink}{items}")
        with self.source.block("for _ in range(n)"):
            if field.struct is None:
                self.variable(_not_null(field), f"{items}.append(", ")")
            else:
                self.struct(field.struct, f"o{depth + 1}", depth + 1)
                self.line(f"{items}.append(o{depth + 1})")

    def tags(self, cls: type[Message], tagged: list[Field], target: str, depth: int) -> None:
        """Emit code for the tagged section at the end of a struct."""
        self.read("B", "n")
        self.flush()
        if not tagged:
            with self.source.block("if n"):
                self.line("pos = skip_tags(buf, pos - 1, size)")
            return
        with self.source.block("if n"):
            self.line("n, pos = uvarint(buf, pos - 1)")
            with self.source.block("for _ in range(n)"):
                self.one_tag(cls, tagged, target, depth)

    def one_tag(self, cls: type[Message], tagged: list[Field], target: str, depth: int) -> None:
        """Emit code for one tagged field; unknown tags are skipped."""
        self.line("tag, pos = uvarint(buf, pos)")
        self.line("n, pos = uvarint(buf, pos)")
        stop = f"stop{depth}"
        self.line(f"{stop} = pos + n")
        with self.source.block(f"if {stop} > size"):
            self.line("bad_length('tagged field', n)")
        word = "if"
        for field in tagged:
            with self.source.block(f"{word} tag == {field.tag}"):
                self.field(field, f"{target}.{field.name} = ", depth)
                self.flush()
            word = "elif"
        with self.source.block("else"):
            self.line(f"pos = {stop}")
        with self.source.block(f"if pos != {stop}"):
            self.line(f"bad_tag('{cls.__name__}')")


def _not_null(field: Field) -> Field:
    """Return the element of an array as a field of its own; only arrays may be null."""
    return Field(
        name=field.name,
        kind=field.kind,
        array=False,
        struct=field.struct,
        present=True,
        nullable=False,
        compact=field.compact,
        tag=None,
        ignorable=False,
        null_by_default=False,
        default=None,
    )
