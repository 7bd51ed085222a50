"""Parse durations in command options."""

from barnabas.cli.common.failure import CommandError
from barnabas.model import durations


def parse_duration_ms(text: str, option: str) -> int:
    """Parse a duration, or raise an error that says what to write."""
    try:
        return durations.parse_duration_ms(text)
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is not a duration; write 90s, 30m, 1h30m or 7d"
        ) from None
