"""Lists dead letters and sends chosen ones back to the topic they came from.

A record of the DLQ has the original key, value and headers, and additional headers with its origin
and the reason of the refusal:

    dlq.topic, dlq.partition, dlq.offset, dlq.reason, dlq.detail, dlq.time

Redriving sends the original bytes to their original partition, with one more header, dlq.redriven,
which counts the redrives. Progress is stored as committed offsets of groups, which every Kafka tool
can show and change: one group for runs over everything, and one for each reason, since a run for
one reason skips the records of the others.

    a record is due  <=>  its offset is at or past the commits of all groups that it belongs to

Offsets are committed after the broker's acknowledgement, so a crash in between sends some records
twice: silver drops duplicates.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.telemetry.samples.sample_refusals import Reason
from barnabas.telemetry.samples.telemetry_topics import REFUSED

GROUP = "barnabas-dlq-redrive"
OWN = "dlq."
REDRIVEN = "dlq.redriven"
TIMES_MAX = 3
NO_REASON = "unknown"

Header = tuple[str, bytes | None]
Committed = Mapping[int, int]
"""The next offset of each partition of the DLQ."""


class Origin(NamedTuple):
    """The topic, partition and offset at which a record was refused."""

    topic: str
    partition: int | None
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A record of the DLQ."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    def header(self, name: str) -> str | None:
        """Return the last header of a name, as text."""
        for key, value in reversed(self.headers):
            if key == name:
                return None if value is None else value.decode(errors="replace")
        return None

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the refusal; a message with several metrics can have several."""
        words = (self.header("dlq.reason") or NO_REASON).split(",")
        return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))

    @property
    def detail(self) -> str:
        """The description of the problem."""
        return self.header("dlq.detail") or ""

    @property
    def origin(self) -> Origin | None:
        """The origin of the record; None if it does not say."""
        topic = self.header("dlq.topic")
        if not topic:
            return None
        return Origin(
            topic, _whole(self.header("dlq.partition")), _whole(self.header("dlq.offset"))
        )

    @property
    def redriven(self) -> int:
        """The number of earlier redrives."""
        return _whole(self.header(REDRIVEN)) or 0

    def headers_to_send(self) -> list[Header]:
        """Return the original headers, and the count of redrives."""
        original = [pair for pair in self.headers if not pair[0].startswith(OWN)]
        return [*original, (REDRIVEN, str(self.redriven + 1).encode())]


class Choice(NamedTuple):
    """The records that a run selects."""

    reason: str | None = None
    partition: int | None = None
    offset: int | None = None
    times_max: int = TIMES_MAX
    is_forced: bool = False

    def names(self, refusal: Refusal) -> bool:
        """Return whether a record is selected."""
        return (
            (self.reason is None or self.reason in refusal.reasons)
            and self.partition in (None, refusal.partition)
            and self.offset in (None, refusal.offset)
        )

    @property
    def group(self) -> str:
        """The group that stores the progress of a run with this selection."""
        return GROUP if self.reason is None else reason_group(self.reason)

    @property
    def is_remembered(self) -> bool:
        """Whether progress can be committed; for a single record it cannot."""
        return self.offset is None


def reason_group(reason: str) -> str:
    """Return the group that stores the progress of redrives for one reason."""
    return f"{GROUP}.{reason}"


@dataclass
class Plan:
    """The decisions about records, and their counts."""

    choice: Choice
    everything: Committed
    by_reason: dict[str, Committed] = field(default_factory=dict)
    due: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    """The number of records that stay, by reason."""

    def takes(self, refusal: Refusal) -> bool:
        """Return whether a record is sent back, and count it."""
        why = self._why_not(refusal)
        if why == "":
            self.due.update(refusal.reasons)
        elif why is not None:
            self.passed[why] += 1
        return why == ""

    def _why_not(self, refusal: Refusal) -> str | None:
        """Return the reason why a record stays: "" if it does not, None if it was not selected."""
        choice = self.choice
        if not choice.names(refusal):
            return None
        if not choice.is_forced and self._is_done(refusal):
            return "redriven before"
        if refusal.origin is None:
            is_line = Reason.UNREADABLE_LINE in refusal.reasons
            return "a collector's line, never a message" if is_line else "no dlq.topic header"
        if refusal.redriven >= choice.times_max and not choice.is_forced:
            return f"came back {choice.times_max} times"
        return ""

    def _is_done(self, refusal: Refusal) -> bool:
        groups = (self.everything, *(self.by_reason.get(word, {}) for word in refusal.reasons))
        return any(refusal.offset < each.get(refusal.partition, 0) for each in groups)

    def start(self, partition: int, earliest: int) -> int:
        """Return the first offset that can hold a due record."""
        if self.choice.offset is not None:
            return max(earliest, self.choice.offset)
        if self.choice.is_forced:
            return earliest
        committed = self.everything.get(partition, 0)
        if self.choice.reason is not None:
            own = self.by_reason.get(self.choice.reason, {})
            committed = max(committed, own.get(partition, 0))
        return max(earliest, committed)


@dataclass
class Tally:
    """The refused records of one reason."""

    reason: str
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    origins: Counter[str] = field(default_factory=Counter)


def tally(refusals: Iterable[Refusal], into: dict[str, Tally]) -> None:
    """Count records by reason; a record with several reasons counts for each."""
    for each in refusals:
        origin = each.origin
        for reason in each.reasons:
            known = into.setdefault(reason, Tally(reason, 0, each.timestamp_ms))
            known.count += 1
            known.first_ms = min(known.first_ms, each.timestamp_ms)
            known.last_ms = max(known.last_ms, each.timestamp_ms)
            known.origins[origin.topic if origin else "?"] += 1


def how_to_force(choice: Choice) -> str:
    """Return the command that redrives the same records again."""
    return (
        f"--force sends again what was sent; `barnabas group reset {choice.group} "
        f"--topic {REFUSED} --to-earliest --execute` forgets that it was"
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
