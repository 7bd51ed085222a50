"""Parse positions in a topic, such as `consume` accepts for --from and --until.

    beginning   the oldest record
    end         after the newest record
    1234        this offset, in every partition
    -10         ten before the end of each partition
    @TIME       the first record at or after a time: 2026-03-01T12:00:00Z or milliseconds

A time without a zone is in this computer's time zone.
"""

from dataclasses import dataclass
from datetime import datetime

from barnabas.admin.admin_errors import AdminError

FORMS = "beginning, end, an OFFSET, -N, or @TIME (2026-03-01T12:00:00Z or milliseconds)"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The oldest record."""


@dataclass(frozen=True, slots=True)
class End:
    """After the record that is newest now."""


@dataclass(frozen=True, slots=True)
class At:
    """An offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Before:
    """A number of records before the end."""

    count: int


@dataclass(frozen=True, slots=True)
class Since:
    """The first record at or after a time."""

    timestamp_ms: int


Position = Beginning | End | At | Before | Since


def parse_position(text: str, option: str = "--from") -> Position:
    """Parse one of the forms above."""
    match text.strip():
        case "beginning":
            return Beginning()
        case "end":
            return End()
        case word if word.startswith("@"):
            return Since(parse_time_ms(word[1:], option))
        case word if word.startswith("-") and word[1:].isdecimal():
            return Before(int(word[1:]))
        case word if word.isdecimal():
            return At(int(word))
        case _:
            raise AdminError(f"{option} {text!r} is not a position; write {FORMS}")


def parse_time_ms(text: str, option: str = "--from") -> int:
    """Parse milliseconds since 1970, or an ISO date with or without time and zone."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise AdminError(
            f"{option} @{text} is not a time; write 2026-03-01T12:00:00Z or milliseconds"
        ) from error
    return round(moment.timestamp() * 1000)


def parse_until(text: str) -> End | At | Since:
    """Parse a stop position; a position relative to the end is not allowed."""
    position = parse_position(text, "--until")
    if isinstance(position, Beginning | Before):
        raise AdminError(f"--until {text!r} cannot be used here; write end, an OFFSET, or @TIME")
    return position
