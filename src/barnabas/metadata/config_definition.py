"""Defines Kafka configs: a name, a type, a default, and a rule for the values.

Values travel and are stored as strings; `ConfigDefinition.parse` is the one way from a string to
a typed value, so what a client may write is exactly what the broker can read. A refused value
answers INVALID_CONFIG with a message that says what is allowed, a refused name with the nearest
one that exists.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from barnabas.model.errors import ApiError, ErrorCode

SHORT_MAX = 2**15 - 1
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHOWN_CHARACTERS_MAX = 200

Value = bool | int | float | str | frozenset[str] | tuple[str, ...]
Parse = Callable[[str], Value]


class ConfigType(IntEnum):
    """The type codes of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Rule:
    """How the text of a config is parsed, and a description of the allowed values."""

    type: ConfigType
    """The type that DescribeConfigs reports."""

    allowed: str
    """The end of the sentence that begins with "must be"."""

    parse: Parse
    """Return the typed value, or raise ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDefinition:
    """One config that clients can describe and perhaps alter."""

    name: str
    """Kafka's name, or ours where Kafka has no such config."""

    rule: Rule
    """The rule for its values."""

    default: str
    """The value if none is set."""

    documentation: str
    """One sentence for DescribeConfigs."""

    synonyms: tuple[str, ...] = ()
    """The broker configs that set its default, the strongest first."""

    @property
    def type(self) -> ConfigType:
        """The type that DescribeConfigs reports."""
        return self.rule.type

    def parse(self, value: str) -> Value:
        """Return the typed value, or raise INVALID_CONFIG with the allowed values."""
        try:
            return self.rule.parse(value.strip())
        except ValueError:
            # A client chose the value, and may have chosen a very long one.
            shown = repr(value[:SHOWN_CHARACTERS_MAX])
            message = f"Invalid value {shown} for {self.name}: it must be {self.rule.allowed}."
            raise ApiError(ErrorCode.INVALID_CONFIG, message) from None


def unknown(kind: str, name: str, known: Iterable[str]) -> ApiError:
    """Return the error for an unknown name, with the nearest known one."""
    shown = name[:SHOWN_CHARACTERS_MAX]
    near = difflib.get_close_matches(shown, list(known), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return ApiError(ErrorCode.INVALID_CONFIG, f"Unknown {kind} config {shown!r}.{hint}")


def boolean() -> Rule:
    """Accept true or false, in any case."""
    return Rule(ConfigType.BOOLEAN, "true or false", _read_boolean)


def only_false(reason: str) -> Rule:
    """Accept only false, for features that this broker lacks."""

    def read(text: str) -> Value:
        if _read_boolean(text):
            raise ValueError
        return False

    return Rule(ConfigType.BOOLEAN, f"false ({reason})", read)


def int16(least: int, most: int = SHORT_MAX) -> Rule:
    """Accept a 16-bit number within bounds."""
    return Rule(ConfigType.SHORT, _bounds(least, most, SHORT_MAX), _read_within(least, most))


def int32(least: int, most: int = INT_MAX) -> Rule:
    """Accept a 32-bit number within bounds."""
    return Rule(ConfigType.INT, _bounds(least, most, INT_MAX), _read_within(least, most))


def int64(least: int, most: int = LONG_MAX) -> Rule:
    """Accept a 64-bit number within bounds."""
    return Rule(ConfigType.LONG, _bounds(least, most, LONG_MAX), _read_within(least, most))


def double() -> Rule:
    """Accept a number that is finite."""

    def read(text: str) -> Value:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError
        return number

    return Rule(ConfigType.DOUBLE, "a number", read)


def ratio() -> Rule:
    """Accept a share between 0 and 1."""

    def read(text: str) -> Value:
        number = float(text)
        if not 0 <= number <= 1:
            raise ValueError
        return number

    return Rule(ConfigType.DOUBLE, "a number between 0 and 1", read)


def choice(*options: str) -> Rule:
    """Accept one of a few words."""

    def read(text: str) -> Value:
        if text not in options:
            raise ValueError
        return text

    return Rule(ConfigType.STRING, f"one of {', '.join(options)}", read)


def text() -> Rule:
    """Accept any text."""
    return Rule(ConfigType.STRING, "text", str)


def subset(*options: str) -> Rule:
    """Accept a list of some of a few words; the list may be empty."""

    def read(text: str) -> Value:
        chosen = split_list(text)
        if len(set(chosen)) < len(chosen) or not set(chosen) <= set(options):
            raise ValueError
        return frozenset(chosen)

    return Rule(ConfigType.LIST, f"a list of {', '.join(options)}, each at most once", read)


def listing() -> Rule:
    """Accept any words, with commas between them."""
    return Rule(ConfigType.LIST, "a list with commas between its items", split_list)


def throttled_replicas() -> Rule:
    """Accept Kafka's list of partition:broker pairs, or a star for all."""

    def read(text: str) -> Value:
        pairs = split_list(text)
        if pairs != ("*",) and not all(re.fullmatch(r"[0-9]+:[0-9]+", pair) for pair in pairs):
            raise ValueError
        return pairs

    return Rule(ConfigType.LIST, "*, or a list such as 0:1,1:2 of partition:broker", read)


def split_list(text: str) -> tuple[str, ...]:
    """Return the items of a list; an empty text has none."""
    if not text.strip():
        return ()
    return tuple(item.strip() for item in text.split(","))


def _read_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _read_within(least: int, most: int) -> Parse:
    def read(text: str) -> Value:
        # Python's int() also takes 1_000 and digits of other scripts, which Kafka refuses.
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII):
            raise ValueError
        number = int(text)
        if not least <= number <= most:
            raise ValueError
        return number

    return read


def _bounds(least: int, most: int, natural: int) -> str:
    if most == natural:
        return f"a whole number of at least {least}"
    return f"a whole number from {least} to {most}"
