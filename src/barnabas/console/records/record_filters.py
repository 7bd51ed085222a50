"""Filters of records by key, value, header or any text; CEL comes after these.

key=abc          the key contains this text
value=0xCAFE     the value contains these bytes
header=trace     there is a header of this name; header=trace=42 with this text in its value
text=Error       key, value or a header contains this text, in upper or lower case
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import QueryParams

from barnabas.console.web.problems import bad_input
from barnabas.protocol.records import Record

PATTERN_MAX = 1_000
CEL_MAX = 4_000

Test = Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class Filters:
    """What records must contain."""

    tests: tuple[Test, ...] = ()
    cel: str | None = None

    def matches(self, record: Record) -> bool:
        """Return whether a record passes all filters but CEL."""
        return all(test(record) for test in self.tests)


def parse_filters(parameters: QueryParams) -> Filters:
    """Return the filters in the parameters of a URL."""
    tests: list[Test] = []
    for name, make in _MAKERS.items():
        text = parameters.get(name, "")
        if len(text) > PATTERN_MAX:
            raise bad_input(f"{name} is longer than {PATTERN_MAX:,} characters; write less")
        if text:
            tests.append(make(text))
    cel = parameters.get("cel", "").strip()
    if len(cel) > CEL_MAX:
        raise bad_input(f"cel is longer than {CEL_MAX:,} characters; write less")
    return Filters(tuple(tests), cel or None)


def pattern(text: str) -> bytes:
    """Return the bytes to look for: those after 0x, or the text in UTF-8."""
    if text[:2] in ("0x", "0X"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            pass
    return text.encode("utf-8", "replace")


def _by_key(text: str) -> Test:
    wanted = pattern(text)
    return lambda record: record.key is not None and wanted in record.key


def _by_value(text: str) -> Test:
    wanted = pattern(text)
    return lambda record: record.value is not None and wanted in record.value


def _by_header(text: str) -> Test:
    name, equals, value = text.partition("=")
    wanted = pattern(value)
    if not equals:
        return lambda record: any(each == name for each, _ in record.headers)
    return lambda record: any(
        each == name and content is not None and wanted in content
        for each, content in record.headers
    )


def _by_text(text: str) -> Test:
    wanted = text.casefold().encode("utf-8", "replace")

    def has(content: bytes | None) -> bool:
        return content is not None and wanted in _folded(content)

    def test(record: Record) -> bool:
        if has(record.value) or has(record.key):
            return True
        return any(has(name.encode()) or has(content) for name, content in record.headers)

    return test


def _folded(content: bytes) -> bytes:
    """Return bytes in lower case, those of other alphabets too if they are text."""
    if content.isascii():
        return content.lower()
    return content.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")


_MAKERS: dict[str, Callable[[str], Test]] = {
    "key": _by_key,
    "value": _by_value,
    "header": _by_header,
    "text": _by_text,
}
