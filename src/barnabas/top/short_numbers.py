"""Numbers, sizes and times in few characters; a dash is an unknown value, 0 is zero."""

import math

from barnabas.model import durations

UNKNOWN = "-"
NEVER = "never"
THOUSAND, KIBI = 1000, 1024
SPARKS = "▁▂▃▄▅▆▇█"
PLAIN_SPARKS = "_.-=+*#@"


def short(value: float | None) -> str:
    """Return a count: 7, 1.2k, 340k, 12M."""
    return UNKNOWN if value is None else _scaled(value, THOUSAND, ("", "k", "M", "G", "T"))


def size(value: float | None) -> str:
    """Return a number of bytes: 512 B, 1.2 MB."""
    units = (" B", " KB", " MB", " GB", " TB", " PB")
    return UNKNOWN if value is None else _scaled(value, KIBI, units)


def size_rate(value: float | None) -> str:
    """Return bytes a second: 1.2 MB/s."""
    return UNKNOWN if value is None else f"{size(value)}/s"


def rate(value: float | None) -> str:
    """Return records a second; below ten with a decimal."""
    if value is None:
        return UNKNOWN
    return f"{value:.1f}" if 0 < value < 9.95 else short(value)


def age(seconds: float | None) -> str:
    """Return a duration in its two greatest units: 0s, 4.2s, 4m 12s, 3d 4h."""
    if seconds is None:
        return UNKNOWN
    if math.isinf(seconds):
        return NEVER
    if seconds < 10:
        return f"{seconds:.1f}s" if seconds else "0s"
    left, parts = int(seconds), []
    for unit in "dhms":
        count, left = divmod(left, durations.UNITS_MS[unit] // 1000)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def millis(seconds: float | None) -> str:
    """Return a latency: 4.1 ms, 1.2 s."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def sparkline(values: list[int], width: int, *, is_plain: bool = False) -> str:
    """Return the last values as bars, from 0 to the greatest."""
    shown = values[-width:]
    most = max(shown, default=0)
    sparks = PLAIN_SPARKS if is_plain else SPARKS
    top = len(sparks) - 1
    return "".join(sparks[each * top // most if most else 0] for each in shown)


def clean(text: str) -> str:
    """Return a name without control characters, which a terminal would obey."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(value) < (THOUSAND if base == THOUSAND else 1000):
            return _digits(value, whole=unit == units[0]) + unit
        value /= base
    return _digits(value, whole=False) + units[-1]


def _digits(value: float, *, whole: bool) -> str:
    if whole or value >= 99.5:
        return f"{value:.0f}"
    return f"{value:.1f}"
