"""What a search or a tail reads: which partitions, from which offsets, up to which.

`from` and `until` are as in `barnabas consume`: beginning, end, an offset, -100 (the last of each
partition), -1h (as old as that), a time; and positions of a search before: 0:1234,1:99.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import (
    At,
    Before,
    Beginning,
    End,
    Position,
    Since,
    parse_position,
    parse_time_ms,
)
from barnabas.admin.topic_requests import leaders_of
from barnabas.console.records.log_positions import READ_COMMITTED, log_ranges, offsets_at
from barnabas.console.web.problems import bad_input, not_found
from barnabas.model import durations
from barnabas.wire.cluster_wire import Node, Wire

PARTITIONS_MAX = 2_000
IDENTITY_BYTES_MAX = 32 << 10
_POSITIONS = re.compile(r"\d{1,6}:\d{1,18}(?:,\d{1,6}:\d{1,18})*")
_IDENTITY = re.compile(r"\d{1,6}:-?\d{1,18}(?:,\d{1,6}:-?\d{1,18})*")
_SELECTION = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The offsets to read from each partition."""

    topic: str
    starts: dict[int, int]
    stops: dict[int, int]
    """The offsets before which reading ends; empty for a tail."""
    missing: tuple[int, ...] = ()
    """Partitions that have no leader now."""


Positions = Position | Mapping[int, int]


def parse_from(text: str) -> Positions:
    """Parse where to begin."""
    word = text.strip()
    if _POSITIONS.fullmatch(word):
        return parse_positions(word)
    if word.startswith("-") and not word[1:].isdigit():
        try:
            age_ms = durations.parse_duration_ms(word[1:])
        except ValueError:
            raise bad_input(_wrong("from", text)) from None
        return Since(time.time_ns() // 1_000_000 - age_ms)
    try:
        return parse_position(word, "from")
    except AdminError:
        pass
    try:
        return Since(parse_time_ms(word.removeprefix("@"), "from"))
    except AdminError:
        raise bad_input(_wrong("from", text)) from None


def parse_until(text: str) -> Positions:
    """Parse where to end: as `from`, but not relative to the end."""
    found = parse_from(text)
    if isinstance(found, Beginning | Before):
        raise bad_input(_wrong("until", text))
    return found


def parse_positions(text: str) -> dict[int, int]:
    """Parse offsets by partition: 0:1234,1:99."""
    pairs = (each.split(":") for each in text.split(",") if each)
    return {int(partition): int(offset) for partition, offset in pairs}


def positions_text(positions: Mapping[int, int]) -> str:
    """Return offsets by partition as text, which `from` takes."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def positions_after(identity: str) -> dict[int, int]:
    """Return where a tail continues after the last event that a page has seen."""
    if len(identity) > IDENTITY_BYTES_MAX or not _IDENTITY.fullmatch(identity):
        return {}
    return {partition: max(0, last + 1) for partition, last in parse_positions(identity).items()}


def parse_selection(text: str) -> set[int] | None:
    """Parse a list of partitions: 0,2-4; None for all."""
    word = text.strip()
    if not word:
        return None
    if not _SELECTION.fullmatch(word):
        raise bad_input(f"partitions {text[:60]!r} is not a list such as 0,2-4")
    found: set[int] = set()
    for part in word.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if len(numbers) > PARTITIONS_MAX:
            raise bad_input(f"partitions {text[:60]!r} names more than {PARTITIONS_MAX:,}")
        found.update(numbers)
    return found


def make_plan(
    wire: Wire, topic: str, selected: set[int] | None, first: Positions, last: Positions | None
) -> ReadPlan:
    """Ask leaders for the offsets that a search needs; `last` is None for a tail."""
    leaders = leaders_of(wire, topic)
    strangers = sorted((selected or set()) - leaders.keys())
    if strangers:
        raise not_found(f"Topic {topic} has no partition {strangers[0]}; it has {len(leaders)}")
    wanted = sorted(leaders if selected is None else selected)
    if len(wanted) > PARTITIONS_MAX:
        raise bad_input(f"Topic {topic} has more than {PARTITIONS_MAX:,} partitions; choose some")
    lows, highs = log_ranges(wire, topic, wanted, READ_COMMITTED)
    there = sorted(highs)
    times = _times(wire, topic, first, there, leaders)
    starts = {each: _resolved(first, each, lows, highs, times) for each in there}
    stops: dict[int, int] = {}
    if last is not None:
        until = _times(wire, topic, last, there, leaders)
        # What is written from now on belongs to a tail.
        stops = {
            each: min(highs[each], _resolved(last, each, lows, highs, until)) for each in there
        }
    missing = tuple(each for each in wanted if each not in highs)
    return ReadPlan(topic=topic, starts=starts, stops=stops, missing=missing)


def _times(
    wire: Wire,
    topic: str,
    position: Positions,
    wanted: list[int],
    leaders: Mapping[int, Node | None],
) -> Mapping[int, int]:
    if not isinstance(position, Since):
        return {}
    asked = dict.fromkeys(wanted, position.timestamp_ms)
    return offsets_at(wire, topic, asked, leaders, READ_COMMITTED)


def _resolved(
    position: Positions,
    partition: int,
    lows: Mapping[int, int],
    highs: Mapping[int, int],
    times: Mapping[int, int],
) -> int:
    low, high = lows[partition], highs[partition]
    match position:
        case Beginning():
            return low
        case End():
            return high
        case At(offset):
            return max(low, offset)
        case Before(count):
            return max(low, high - count)
        case Since():
            found = times.get(partition, -1)
            return high if found < 0 else found
        case _:
            return max(low, position.get(partition, high))


def _wrong(name: str, text: str) -> str:
    return (
        f"{name} {text[:60]!r} is not a position; write beginning, end, an offset, -100, -1h, or a "
        "time such as 2026-03-01T12:00:00Z"
    )
