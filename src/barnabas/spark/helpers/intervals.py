"""Parses durations for windows, watermarks and joins: a timedelta, or text.

The text is an interval of Spark ("1 minute 30 seconds") or a duration as settings and commands
accept it ("90s", "1h30m"). Spark checks intervals late, and accepts months for a watermark, which
have no fixed length. This module checks them at once.
"""

import re
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

from barnabas.model.durations import parse_duration_ms

Duration: TypeAlias = str | timedelta

UNITS_US = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"(\d+)\s*([a-z]+)")
EXAMPLE = '"10 seconds", "90s", "1 minute 30 seconds" or timedelta(seconds=10)'


def microseconds(name: str, duration: Duration) -> int:
    """Return the length of a duration; `name` is its name in an error message."""
    if isinstance(duration, timedelta):
        return _not_negative(name, duration // timedelta(microseconds=1))
    with suppress(ValueError):
        return parse_duration_ms(duration) * 1000
    text = duration.strip().lower().removeprefix("interval ")
    parts = _PART.findall(text)
    units = [unit.removesuffix("s") for _, unit in parts]
    if not parts or _PART.sub("", text).strip() or not set(units) <= UNITS_US.keys():
        raise ValueError(
            f"{name} is {duration!r}; write a duration like {EXAMPLE}, in weeks at the most"
        )
    return sum(int(number) * UNITS_US[unit] for (number, _), unit in zip(parts, units, strict=True))


def positive(name: str, duration: Duration) -> str:
    """Return a duration in Spark's form; raise `ValueError` if it is zero."""
    if microseconds(name, duration) == 0:
        raise ValueError(f"{name} is {duration!r}; it must be longer than nothing")
    return spark_text(name, duration)


def spark_text(name: str, duration: Duration) -> str:
    """Return a duration in Spark's form."""
    return f"{microseconds(name, duration)} microseconds"


def _not_negative(name: str, length_us: int) -> int:
    if length_us < 0:
        raise ValueError(f"{name} is negative; write a duration of zero or more")
    return length_us
