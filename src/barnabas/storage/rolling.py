"""Decides when a segment is sealed: by its size, its age, or the size of its index."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from barnabas.protocol.records import LENGTH_OVERHEAD, BatchHeader
from barnabas.storage.index import OffsetIndex, TimeIndex
from barnabas.storage.segment import RELATIVE_OFFSET_MAX, Segment

if TYPE_CHECKING:
    from barnabas.storage.log import LogSettings

OFFSET_ENTRY_BYTES = OffsetIndex.ENTRY.size
TIME_ENTRY_BYTES = TimeIndex.ENTRY.size
SEALED_AN_EVENT = 1


class SealingByAge:
    """How many segments of a node are sealed for their age in one event.

    Sealing one makes some files, and one request may append to a thousand partitions whose segments
    are all old enough. The others wait for the next batch, or for the chore that looks for them.
    """

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._event_ms = -1
        self._left = 0

    def is_allowed(self) -> bool:
        """Tell whether one more may be sealed now, and count it."""
        now_ms = self._clock_ms()
        if now_ms != self._event_ms:
            self._event_ms, self._left = now_ms, SEALED_AN_EVENT
        self._left -= 1
        return self._left >= 0


class Unlimited(SealingByAge):
    """For a log that no client waits for."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)

    def is_allowed(self) -> bool:
        """Allow it."""
        return True


def must_roll(
    settings: "LogSettings",
    active: Segment,
    size: int,
    first_ms: int | None,
    header: BatchHeader,
    base_offset: int,
    by_age: "SealingByAge",
) -> bool:
    """Tell whether a batch is too much for the active segment.

    The segment has `size` bytes by then, and its first batch is of the time `first_ms`.
    """
    if not size:
        return False
    if size + header.length + LENGTH_OVERHEAD > settings.segment_bytes:
        return True
    if first_ms is not None and first_ms >= 0:
        limit_ms = settings.segment_ms
        if settings.segment_jitter_ms:
            limit_ms = age_limit_ms(settings, active)
        if header.max_timestamp - first_ms > limit_ms and by_age.is_allowed():
            return True
    if size > settings.index_fits_bytes and _is_index_full(active, settings.index_bytes):
        return True
    last_offset = base_offset + header.last_offset_delta
    return last_offset - active.base_offset > RELATIVE_OFFSET_MAX


def age_limit_ms(settings: "LogSettings", segment: Segment) -> int:
    """Return how old a segment may become before it is sealed.

    Kafka draws the jitter. A checksum of the file's path differs between partitions and segments,
    too, and is the same again after a restart.
    """
    jitter_ms = min(settings.segment_jitter_ms, settings.segment_ms)
    if not jitter_ms:
        return settings.segment_ms
    return settings.segment_ms - crc32(segment.file.path.encode()) % jitter_ms


def index_fits_bytes(index_bytes: int, interval_bytes: int) -> int:
    """Return a size of a segment up to which its indexes cannot be full."""
    return max(0, index_bytes // TIME_ENTRY_BYTES - 2) * interval_bytes


def _is_index_full(segment: Segment, limit_bytes: int) -> bool:
    """Tell whether one more entry would be too much for an index that has any.

    The index of times has an entry more in the end, which is written when the segment is sealed.
    """
    offsets, times = segment.offset_index.count, segment.time_index.count
    return offsets > 0 and (
        (offsets + 1) * OFFSET_ENTRY_BYTES > limit_bytes
        or (times + 2) * TIME_ENTRY_BYTES > limit_bytes
    )
