"""The reasons for which a message or a metric is refused, and the headers of dead letters.

A dead letter has the original key, value and headers, so that it can be sent again once its cause
is fixed, and additional headers:

    dlq.topic, dlq.partition, dlq.offset   where the message was; "", -1 and -1 for a line that
                                           a collector could not read, as it was on no topic
    dlq.reason                             a code; several are joined by commas
    dlq.detail                             a sentence for people
    dlq.time                               when it was refused, ISO 8601

A message has at most one dead letter, even if several of its metrics were refused.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

PREFIX = "dlq."
DETAILS_SHOWN = 10
"""The number of metrics that dlq.detail names; the dead letter has the original value."""


class Reason(StrEnum):
    """The values of dlq.reason. From WRONG_TYPE on, the rest of the message was accepted."""

    BAD_JSON = "bad-json"
    NOT_AN_OBJECT = "not-an-object"
    UNKNOWN_LAYOUT = "unknown-layout"
    MISSING_FIELD = "missing-field"
    BAD_FIELD = "bad-field"
    BAD_TIMESTAMP = "bad-timestamp"
    TOO_LARGE = "too-large"
    CLOCK_AHEAD = "clock-ahead"
    LATE = "late"
    DUPLICATE = "duplicate"
    UNREADABLE_LINE = "unreadable-line"
    WRONG_TYPE = "wrong-type"
    NO_VALUE = "no-value"
    OUT_OF_RANGE = "out-of-range"
    UNKNOWN_METRIC = "unknown-metric"


class Fault(NamedTuple):
    """One problem of a message."""

    reason: Reason
    detail: str


class Coordinates(NamedTuple):
    """The topic, partition and offset of a message."""

    topic: str
    partition: int
    offset: int


Header = tuple[str, bytes | None]


def words(faults: Iterable[Fault]) -> str:
    """Return the reasons of one message, each once, in the order in which they were found."""
    return ",".join(dict.fromkeys(fault.reason.value for fault in faults))


def sentence(faults: Sequence[Fault]) -> str:
    """Return the details of one message."""
    details = list(dict.fromkeys(fault.detail for fault in faults))
    more = len(details) - DETAILS_SHOWN
    return "; ".join(details[:DETAILS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def dead_letter_headers(
    original: Iterable[Header], where: Coordinates, faults: Sequence[Fault], time: str
) -> list[Header]:
    """Return the headers of a dead letter.

    They replace those of an earlier refusal: a message that was sent again and refused again has
    the headers of the last refusal.
    """
    kept = [(name, value) for name, value in original if not name.startswith(PREFIX)]
    added = {
        "topic": where.topic,
        "partition": str(where.partition),
        "offset": str(where.offset),
        "reason": words(faults),
        "detail": sentence(faults),
        "time": time,
    }
    return kept + [(PREFIX + name, text.encode()) for name, text in added.items()]
