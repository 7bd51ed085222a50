"""Looks up records by timestamp; indexes and headers reduce the search to a few batches.

A lookup can take long: a batch may have a million records, and if timestamps are not in order the
index does not help. So it is done in steps (`model/steps.py`). It reads only the lengths and
timestamps of records, up to the first that fits. If the log is truncated or its segments are
replaced between two steps, the lookup starts again.
"""

from collections.abc import Callable
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.errors import CorruptBatchError, TooLargeError
from barnabas.model.steps import Steps, Work
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from barnabas.protocol.scanning import (
    Deltas,
    check_end,
    first_timestamp,
    largest_timestamp,
    portions,
    unpacked,
)
from barnabas.storage.trust import BYTES_PER_UNIT, Allowance
from barnabas.storage.walk import Located, walk

if TYPE_CHECKING:
    from barnabas.storage.log import Log
    from barnabas.storage.segment import Segment

UNPACKED_BYTES_MAX = 64 * 1024 * 1024
"""A batch with more uncompressed bytes is not opened: its first offset is used instead."""
HEADER_UNITS = 4
RECORDS_AT_ONCE = 500
CANDIDATES_MAX = 1_000
"""How many batches are remembered that may have the largest timestamp."""
KNOWN_MAX = 2
"""How many answers a log remembers: one for each isolation level."""
ANY_TIME = -(1 << 64)


class Found(NamedTuple):
    """A record that was found, and its leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int

    def beats(self, other: "Found | None") -> bool:
        """Tell whether it is later by its timestamp, or as late and earlier in the log."""
        if other is None:
            return True
        return (self.timestamp, -self.offset) > (other.timestamp, -other.offset)


class ChangedError(Exception):
    """The log has changed since the lookup began."""


class Look:
    """One lookup: the readable part of the log, and whether the log has changed."""

    __slots__ = ("_changes", "log", "start", "upper", "work")

    def __init__(self, log: "Log", upper_offset: int, work: Work) -> None:
        self.log = log
        self.start = log.start_offset
        self.upper = upper_offset
        self.work = work
        self._changes = log.changes

    def check(self) -> None:
        """Raise if the log was truncated, or segments were replaced or removed."""
        if self.log.changes != self._changes:
            raise ChangedError

    def offsets(self, header: BatchHeader) -> range:
        """Return which offsets of a batch can be read, as distances from its first."""
        return range(self.start - header.base_offset, self.upper - header.base_offset)


def first_at_or_after(
    log: "Log", timestamp: int, upper_offset: int, work: Work
) -> Steps[Found | None]:
    """Return the first readable record that is at least as young as a time."""
    return _until_unchanged(log, upper_offset, work, lambda look: _first(look, timestamp))


def latest(log: "Log", upper_offset: int, work: Work) -> Steps[Found | None]:
    """Return the first readable record that has the largest timestamp of all."""
    return _until_unchanged(log, upper_offset, work, _latest)


def _until_unchanged(
    log: "Log", upper_offset: int, work: Work, find: Callable[[Look], Steps[Found | None]]
) -> Steps[Found | None]:
    while True:
        try:
            return (yield from find(Look(log, upper_offset, work)))
        except ChangedError:
            continue


def _first(look: Look, timestamp: int) -> Steps[Found | None]:
    for segment in list(look.log.segments):
        if segment.max_timestamp < timestamp or segment.next_offset <= look.start:
            continue
        offset = max(segment.offset_before_time(timestamp), look.start)
        for found in walk(segment.file, segment.position_of(offset), segment.size, check=False):
            if found.header.base_offset >= look.upper:
                return None
            if look.work.spend(HEADER_UNITS):
                yield None
                look.check()
            if found.header.max_timestamp >= timestamp:
                answer = yield from _first_in(look, segment, found, timestamp)
                if answer is not None:
                    return answer
    return None


def _latest(look: Look) -> Steps[Found | None]:
    log = look.log
    key, known = (log.changes, look.start, look.upper), log.known_latest
    if key not in known:
        found = yield from _look_for_latest(look)
        while len(known) >= KNOWN_MAX:
            del known[next(iter(known))]
        known[key] = found
    return known[key]


def _look_for_latest(look: Look) -> Steps[Found | None]:
    best = -1
    for segment in list(look.log.segments):
        best = max(best, (yield from _largest_below(look, segment)))
    if best < 0:
        return None
    found = yield from _first(look, best)
    # Its record may have been compacted, or be below the start.
    return found if found is not None else (yield from _latest_of_all(look))


def _largest_below(look: Look, segment: "Segment") -> Steps[int]:
    """Return the largest timestamp of the batches that end below the upper offset."""
    if look.upper >= segment.next_offset:
        return segment.max_timestamp
    entry = segment.time_index.floor(look.upper - 1 - segment.base_offset, column=1)
    best, relative = (-1, 0) if entry is None else entry
    start = segment.position_of(segment.base_offset + relative)
    for found in walk(segment.file, start, segment.size, check=False):
        if found.header.last_offset >= look.upper:
            break
        best = max(best, found.header.max_timestamp)
        if look.work.spend(HEADER_UNITS):
            yield None
            look.check()
    return best


def _latest_of_all(look: Look) -> Steps[Found | None]:
    """Look at all headers, and open the batches that may hold the largest timestamp."""
    readable = [s for s in look.log.segments if s.next_offset > look.start]
    best: Found | None = None
    for segment in sorted(readable, key=lambda s: (-s.max_timestamp, s.base_offset)):
        if best is not None and segment.max_timestamp < best.timestamp:
            break
        best = yield from _latest_in_segment(look, segment, best)
    return best


def _latest_in_segment(look: Look, segment: "Segment", best: Found | None) -> Steps[Found | None]:
    passed: Found | None = None
    while True:
        candidates = yield from _candidates(look, segment, best, passed)
        for _, _, located in candidates:
            if not _claim(located.header).beats(best):
                return best
            found = yield from _latest_in(look, segment, located)
            if found is not None and found.beats(best):
                best = found
        if len(candidates) < CANDIDATES_MAX:
            return best
        passed = _claim(candidates[-1][2].header)


def _candidates(
    look: Look, segment: "Segment", best: Found | None, passed: Found | None
) -> Steps[list[tuple[int, int, Located]]]:
    """Return the batches that claim the largest timestamps and beat the best, largest first.

    At most `CANDIDATES_MAX`, without those that were examined before (up to `passed`).
    """
    heap: list[tuple[int, int, Located]] = []
    start = segment.position_of(look.start)
    for found in walk(segment.file, start, segment.size, check=False):
        if found.header.base_offset >= look.upper:
            break
        claim = _claim(found.header)
        if claim.beats(best) and (passed is None or passed.beats(claim)):
            entry = (claim.timestamp, -claim.offset, found)
            if len(heap) < CANDIDATES_MAX:
                heappush(heap, entry)
            else:
                heappushpop(heap, entry)
        if look.work.spend(HEADER_UNITS):
            yield None
            look.check()
    return sorted(heap, reverse=True)


def _claim(header: BatchHeader) -> Found:
    """Return the best record that a batch can have, as its header says."""
    return Found(header.base_offset, header.max_timestamp, header.leader_epoch)


def _first_in(
    look: Look, segment: "Segment", found: Located, timestamp: int
) -> Steps[Found | None]:
    """Return the first readable record of a batch that is at least as young as a time."""
    header, offsets = found.header, look.offsets(found.header)
    least = timestamp - header.base_timestamp
    if header.attributes & LOG_APPEND_TIME:
        least = ANY_TIME
    try:
        body, position = yield from _opened(look, segment, found)
    except TooLargeError:
        return _unopened(header, offsets)
    for count in portions(header.record_count, RECORDS_AT_ONCE):
        position, deltas = first_timestamp(body, position, count, least, offsets)
        if deltas is not None:
            return _made(header, deltas)
        if look.work.spend(count):
            yield None
            look.check()
    check_end(body, position)
    return None


def _latest_in(look: Look, segment: "Segment", found: Located) -> Steps[Found | None]:
    """Return the first readable record of a batch with the largest timestamp in it."""
    header, offsets = found.header, look.offsets(found.header)
    if header.attributes & LOG_APPEND_TIME:
        return (yield from _first_in(look, segment, found, header.max_timestamp))
    try:
        body, position = yield from _opened(look, segment, found)
    except TooLargeError:
        return _unopened(header, offsets)
    deltas: Deltas | None = None
    for count in portions(header.record_count, RECORDS_AT_ONCE):
        position, deltas = largest_timestamp(body, position, count, deltas, offsets)
        if look.work.spend(count):
            yield None
            look.check()
    check_end(body, position)
    return None if deltas is None else _made(header, deltas)


def _opened(look: Look, segment: "Segment", found: Located) -> Steps[tuple[bytes, int]]:
    """Return what holds the records of a batch, and where in it they begin."""
    position, header = found
    end = position + header.size
    good = yield from segment.trust.check(segment, position, end, look.work)
    look.check()
    if not good:
        segment.ensure_trusted(position, end, header.base_offset, Allowance(0))  # is it damaged?
    content = segment.file.read(position, header.size)
    if look.work.spend(header.size // BYTES_PER_UNIT):
        yield None
        look.check()
    if header.codec > Codec.ZSTD:
        raise CorruptBatchError(f"codec {header.codec} is not known")
    if header.codec == Codec.NONE:
        return content, HEADER_BYTES
    records = memoryview(content)[HEADER_BYTES:]
    body = yield from unpacked(Codec(header.codec), records, UNPACKED_BYTES_MAX)
    look.check()
    return body, 0


def _made(header: BatchHeader, deltas: Deltas) -> Found:
    timestamp, offset = deltas
    if header.attributes & LOG_APPEND_TIME:
        return Found(header.base_offset + offset, header.max_timestamp, header.leader_epoch)
    return Found(
        header.base_offset + offset, header.base_timestamp + timestamp, header.leader_epoch
    )


def _unopened(header: BatchHeader, offsets: range) -> Found | None:
    """Return the answer for a batch that is too large to be opened: its first readable offset."""
    first = max(0, offsets.start)
    if first not in offsets or first > header.last_offset_delta:
        return None
    return Found(header.base_offset + first, header.max_timestamp, header.leader_epoch)
