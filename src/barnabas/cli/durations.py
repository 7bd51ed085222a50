"""Spans of time, as people write and read them: 90s, 1h30m, 2d; Kafka's PT1H is taken too."""

import re

from barnabas.cli.failure import CommandError

SECONDS_BY_UNIT = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
SHOWN_UNITS = "dhms"
TENTHS_BELOW_S = 10
FORM = re.compile(
    r"p?(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?t?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?"
)


def parse_duration_ms(text: str, option: str) -> int:
    """Read a duration; units go from weeks down to seconds, each once."""
    found = FORM.fullmatch(text.strip().lower())
    counts = {} if found is None else {u: int(n) for u, n in found.groupdict().items() if n}
    if not counts:
        raise CommandError(f"{option} {text!r} is not a duration; write 90s, 30m, 1h30m or 7d")
    return 1000 * sum(SECONDS_BY_UNIT[unit] * count for unit, count in counts.items())


def format_duration(duration_ms: float) -> str:
    """Return a duration in its two greatest units: 1h 5m, 12s, 0.3s."""
    seconds = duration_ms / 1000
    if seconds < TENTHS_BELOW_S:
        return f"{seconds:.1f}s"
    left, parts = int(seconds), []
    for unit in SHOWN_UNITS:
        count, left = divmod(left, SECONDS_BY_UNIT[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
