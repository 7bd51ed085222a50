"""Durations in the options of commands and in their tables."""

from barnabas.cli.failure import CommandError
from barnabas.model import durations

SHOWN_UNITS = "dhms"
TENTHS_BELOW_S = 10


def parse_duration_ms(text: str, option: str) -> int:
    """Read a duration, or say what to write."""
    try:
        return durations.parse_duration_ms(text)
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is not a duration; write 90s, 30m, 1h30m or 7d"
        ) from None


def format_duration(duration_ms: float) -> str:
    """Return a duration in its two greatest units: 1h 5m, 12s, 0.3s."""
    seconds = duration_ms / 1000
    if seconds < TENTHS_BELOW_S:
        return f"{seconds:.1f}s"
    left, parts = int(seconds), []
    for unit in SHOWN_UNITS:
        count, left = divmod(left, durations.UNITS_MS[unit] // 1000)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
