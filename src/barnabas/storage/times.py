"""Looking up records by time, exactly: the index narrows it down, single batches are opened."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.records import Record, records
from barnabas.storage.segment import Segment
from barnabas.storage.walk import Located, walk

if TYPE_CHECKING:
    from barnabas.storage.log import Log

Found = tuple[Record, int]
"""A record, and the epoch it was written in."""


def first_at_or_after(log: "Log", timestamp: int, upper_offset: int) -> Found | None:
    """Return the first readable record that is at least as young as a time."""
    for segment in log.segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= log.start_offset:
            continue
        offset = max(segment.offset_before_time(timestamp), log.start_offset)
        for found in walk(segment.file, segment.position_of(offset), segment.size, check=False):
            if found.header.base_offset >= upper_offset:
                return None
            if found.header.max_timestamp < timestamp:
                continue
            for record in _readable(log, segment, found, upper_offset):
                if record.timestamp >= timestamp:
                    return record, found.header.leader_epoch
    return None


def latest(log: "Log", upper_offset: int) -> Found | None:
    """Return the first readable record that has the largest timestamp of all."""
    best = max((s.max_timestamp_below(upper_offset) for s in log.segments), default=-1)
    if best < 0:
        return None
    found = first_at_or_after(log, best, upper_offset)
    # Its record may be gone: compacted away, or below the start.
    return found if found is not None else _latest_of_all(log, upper_offset)


def _latest_of_all(log: "Log", upper_offset: int) -> Found | None:
    best: Found | None = None
    for segment in log.segments:
        if segment.next_offset <= log.start_offset:
            continue
        start = segment.position_of(log.start_offset)
        for found in walk(segment.file, start, segment.size, check=False):
            if best is not None and found.header.max_timestamp <= best[0].timestamp:
                continue
            for record in _readable(log, segment, found, upper_offset):
                if best is None or record.timestamp > best[0].timestamp:
                    best = record, found.header.leader_epoch
    return best


def _readable(log: "Log", segment: Segment, found: Located, upper_offset: int) -> Iterator[Record]:
    position, header = found
    segment.ensure_trusted(position, position + header.size, header.base_offset)
    for record in records(segment.file.read(position, header.size), header):
        if log.start_offset <= record.offset < upper_offset:
            yield record
