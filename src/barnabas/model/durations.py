"""Durations as people write them: 500ms, 90s, 1h30m, 1.5h, 7d; Kafka's tools write PT1H30M.

Settings, the command line and Spark's options all read them here. Units go from weeks down to
milliseconds, each once. Integers are used, since a float would round values above 2**53.
"""

import re
from typing import Final

UNITS_MS: Final = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
_ORDER = tuple(UNITS_MS)
_PART = re.compile(r"(\d+)(?:\.(\d+))?\s*(ms|min|w|d|h|m|s)\s*", re.ASCII)
_ISO = re.compile(r"p(?=.)((?:\d+[wd])*)(?:t(?=.)(.+))?", re.ASCII)


def parse_duration_ms(text: str) -> int:
    """Return a number of milliseconds; raise ValueError if the text is not a duration."""
    plain = text.strip().lower()
    iso = _ISO.fullmatch(plain)
    if iso is not None:
        plain = f"{iso[1]}{iso[2] or ''}"
    total, position, last = 0, 0, -1
    while position < len(plain):
        part = _PART.match(plain, position)
        if part is None:
            raise ValueError(text)
        whole, decimals, unit = part[1], part[2] or "", part[3].replace("min", "m")
        place = _ORDER.index(unit)
        milliseconds, rest = divmod(int(whole + decimals) * UNITS_MS[unit], 10 ** len(decimals))
        if place <= last or rest:
            raise ValueError(text)
        total, position, last = total + milliseconds, part.end(), place
    if last < 0:
        raise ValueError(text)
    return total
