"""Format counts and durations for messages."""

from barnabas.model import durations

SHOWN_UNITS = "dhms"
TENTHS_BELOW_S = 10


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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
