"""Parse and format sizes and times such as `512MB`, `16KiB`, `24h`, `500ms` and `unlimited`.

KB and KiB both mean 1024 bytes: defaults are powers of two, and a segment of "1GB" should be as
large as Kafka's. A bare number is bytes or milliseconds. `format_size` and `format_time` use the
largest unit without a remainder, so parsing gives the same number again.
"""

import re
from collections.abc import Mapping

from barnabas.model.durations import UNITS_MS, parse_duration_ms
from barnabas.model.settings import GIB, KIB, MIB, UNLIMITED

TIB = 1024 * GIB

_SIZES: Mapping[str, int] = {"TB": TIB, "GB": GIB, "MB": MIB, "KB": KIB, "B": 1}
_TIMES = {unit: UNITS_MS[unit] for unit in ("d", "h", "m", "s", "ms")}
_UNLIMITED = ("unlimited", "-1")
_NUMBER_AND_UNIT = re.compile(r"([0-9]+)(?:\.([0-9]+))?\s*([A-Za-z]*)", re.ASCII)
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_size(text: str) -> int:
    """Return a number of bytes, or raise ValueError."""
    scale = {unit.lower(): size for unit, size in _SIZES.items()}
    for unit in ("k", "m", "g", "t"):
        scale[unit] = scale[unit + "ib"] = scale[unit + "b"]
    return _parse(text, {"": 1, **scale})


def parse_time(text: str) -> int:
    """Return a number of milliseconds, or raise ValueError."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdecimal():
        return int(stripped)
    return UNLIMITED if stripped.lower() in _UNLIMITED else parse_duration_ms(stripped)


def parse_boolean(text: str) -> bool:
    """Return a boolean, or raise ValueError."""
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def parse_integer(text: str) -> int:
    """Return a whole number, or raise ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text.strip(), re.ASCII):
        raise ValueError(text)
    return int(text)


def format_size(size: int) -> str:
    """Return a number of bytes in the largest unit that divides it."""
    return _format(size, _SIZES)


def format_time(time_ms: int) -> str:
    """Return a number of milliseconds in the largest unit that divides it."""
    return _format(time_ms, _TIMES)


def _parse(text: str, scale: Mapping[str, int]) -> int:
    stripped = text.strip()
    if stripped.lower() in _UNLIMITED:
        return UNLIMITED
    found = _NUMBER_AND_UNIT.fullmatch(stripped)
    if found is None or found[3].lower() not in scale:
        raise ValueError(text)
    whole, decimals, unit = found[1], found[2] or "", found[3].lower()
    # Integers only: a float would round numbers above 2**53.
    divisor: int = 10 ** len(decimals)
    number, rest = divmod(int(whole + decimals) * scale[unit], divisor)
    if rest:
        raise ValueError(text)
    return number


def _format(number: int, scale: Mapping[str, int]) -> str:
    if number == UNLIMITED:
        return "unlimited"
    if number == 0:
        return "0"
    unit = next(unit for unit, size in scale.items() if number % size == 0)
    return f"{number // scale[unit]}{unit}"
