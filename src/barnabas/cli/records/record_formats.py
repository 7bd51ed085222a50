r"""Format records for `consume`: a compiled format string, or one JSON object per line.

    %t topic   %p partition   %o offset   %T timestamp (ms)   %s size of the value
    %k key     %v value       %h headers (a=b,c=d)            %% a percent sign
    \n newline \t tab \r \0 \\

Keys and values are printed as bytes. Lines of JSON are those of `barnabas.admin.record_lines`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.admin.record_lines import record_line
from barnabas.cli.common.failure import CommandError

if TYPE_CHECKING:
    from confluent_kafka import Message

Render = Callable[["Message"], bytes]

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
FIELDS: dict[str, Render] = {
    "t": lambda message: message.topic().encode(),
    "p": lambda message: b"%d" % message.partition(),
    "o": lambda message: b"%d" % message.offset(),
    "k": lambda message: message.key() or b"",
    "v": lambda message: message.value() or b"",
    "T": lambda message: b"%d" % message.timestamp()[1],
    "s": lambda message: b"%d" % (-1 if message.value() is None else len(message.value())),
    "h": lambda message: b",".join(
        name.encode() + b"=" + (value or b"") for name, value in message.headers() or ()
    ),
}


def compile_format(template: str) -> Render:
    """Compile a format string to a function; raise for an unknown letter."""
    parts: list[Render] = []
    literal = bytearray()
    letters = iter(template)
    for letter in letters:
        if letter == "\\":
            literal += _escape(next(letters, ""), template).encode()
        elif letter != "%":
            literal += letter.encode()
        elif (name := next(letters, "")) == "%":
            literal += b"%"
        else:
            parts += [_constant(bytes(literal)), _field(name, template)]
            literal.clear()
    parts.append(_constant(bytes(literal)))
    return lambda message: b"".join([part(message) for part in parts])


def _constant(text: bytes) -> Render:
    return lambda _: text


def _field(name: str, template: str) -> Render:
    if name not in FIELDS:
        known = " ".join(f"%{each}" for each in FIELDS)
        raise CommandError(f"--format {template!r} uses %{name}, which is none of {known} %%")
    return FIELDS[name]


def _escape(name: str, template: str) -> str:
    if name not in ESCAPES:
        raise CommandError(f"--format {template!r} uses \\{name}; known are \\n \\t \\r \\0 \\\\")
    return ESCAPES[name]


def render_json(message: "Message") -> bytes:
    """Return a record as one line of JSON."""
    return record_line(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=message.headers() or (),
    )
