"""Finds how old the records of a segment are.

The age is that of a record's timestamp. If the records have none (-1: old clients and some tools
send that), the time of the file is used instead, as in Kafka. Otherwise they would never be too
old, and no records after them would be removed.
"""

from barnabas.model.errors import CorruptBatchError
from barnabas.storage.segment import Segment
from barnabas.storage.walk import header_at


def newest_ms(segment: Segment) -> int:
    """Return the time of the newest record; if no record has one, that of the last write."""
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.file.modified_ms()


def oldest_ms(segment: Segment) -> int:
    """Return the time of the first batch; if it has none, that of a write after it.

    The answer is kept: later appends change the time of the file, but do not make the first batch
    younger.
    """
    first_ms = segment.first_append_ms
    if first_ms is None:
        first_ms = segment.first_append_ms = _first_timestamp(segment)
    if first_ms < 0:
        first_ms = segment.first_append_ms = segment.file.modified_ms()
    return first_ms


def _first_timestamp(segment: Segment) -> int:
    """Read the timestamp of a segment that was on disk before this process started."""
    try:
        return header_at(segment.file, 0, segment.size).max_timestamp
    except CorruptBatchError:
        return segment.max_timestamp
