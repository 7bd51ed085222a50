"""Compute the new offsets of a group reset, without any request.

Every target gives an offset for each partition. Offsets are limited to the range of the log,
because members would discard a committed offset outside of it.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from io import StringIO

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.groups.group_admin import Ends
from barnabas.admin.scopes import Place


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The oldest record."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """After the newest record."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset; the end if nothing is committed."""


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """The committed offset plus or minus a number of records."""

    count: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ToGiven:
    """An offset for each partition, from a file."""

    offsets: Mapping[Place, int]


Target = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ToGiven


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The effect of a reset on one partition."""

    topic: str
    partition: int
    before: int | None
    after: int
    note: str | None

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic, self.partition

    @property
    def change(self) -> int | None:
        """By how many records the group moves; None if nothing was committed."""
        return None if self.before is None else self.after - self.before

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return asdict(self) | {"change": self.change}


def move(
    target: Target, place: Place, before: int | None, ends: Ends, at_time: int | None = None
) -> Move:
    """Return the new offset of a partition; `at_time` is the broker's offset for a `ToTime`."""
    wanted = _wanted(target, place, before, ends, at_time)
    after = min(max(wanted, ends.earliest), ends.end)
    note = None
    if wanted < ends.earliest:
        note = f"{wanted} is before the start of the log at {ends.earliest}"
    elif wanted > ends.end:
        note = f"{wanted} is past the end of the log at {ends.end}"
    elif isinstance(target, ToTime) and at_time is None:
        note = "there is no record at or after that time"
    elif isinstance(target, ToCurrent) and before is None:
        note = "nothing is committed"
    return Move(topic=place[0], partition=place[1], before=before, after=after, note=note)


def _wanted(
    target: Target, place: Place, before: int | None, ends: Ends, at_time: int | None
) -> int:
    found: int | None = None
    match target:
        case ToEarliest():
            return ends.earliest
        case ToOffset(offset):
            return offset
        case ToGiven(offsets):
            return offsets[place]
        case ShiftBy(count):
            return _shifted(place, before, count)
        case ToTime():
            found = at_time
        case ToCurrent():
            found = before
        case ToLatest():
            pass
    return ends.end if found is None else found


def _shifted(place: Place, before: int | None, count: int) -> int:
    if before is None:
        raise AdminError(
            f"Nothing is committed for {place[0]}:{place[1]} to shift; "
            "name other partitions with --topic, or use --to-offset"
        )
    return before + count


def read_csv(text: str, source: object = "--from-file") -> dict[Place, int]:
    """Read lines of topic,partition,offset."""
    found = {}
    for number, row in enumerate(csv.reader(StringIO(text)), 1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            found[topic.strip(), int(partition)] = int(offset)
        except ValueError as error:
            raise AdminError(
                f"{source}, line {number}: {','.join(row)!r} is not topic,partition,offset"
            ) from error
    if not found:
        raise AdminError(f"{source} names no partition; write lines of topic,partition,offset")
    return found


def write_csv(moves: Iterable[Move]) -> str:
    """Return lines of topic,partition,offset, which Kafka's own tool also reads."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((each.topic, each.partition, each.after) for each in moves)
    return text.getvalue()
