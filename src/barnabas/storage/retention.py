"""Finds the segments that exceed the retention limits. Whole segments are deleted, oldest first."""

from barnabas.storage.ages import newest_ms, oldest_ms
from barnabas.storage.log import Log
from barnabas.storage.rolling import age_limit_ms

UNLIMITED = -1


def expired(log: Log, *, retention_ms: int, retention_bytes: int, now_ms: int, upto: int) -> int:
    """Return how many of the first segments can be deleted; all of them end at or below `upto`."""
    sealed = [s for s in log.segments[:-1] if s.next_offset <= upto]
    by_start = min(log.droppable(), len(sealed))
    by_time = by_size = 0
    if retention_ms != UNLIMITED:
        for segment in sealed:
            if segment.size and newest_ms(segment) >= now_ms - retention_ms:
                break
            by_time += 1
    if retention_bytes != UNLIMITED:
        surplus = log.size - retention_bytes
        for segment in sealed:
            surplus -= segment.size
            if surplus < 0:
                break
            by_size += 1
    return max(by_start, by_time, by_size)


def active_expired(log: Log, *, retention_ms: int, now_ms: int) -> bool:
    """Whether even the newest record is too old, so that the active segment should be sealed."""
    active = log.active
    if retention_ms == UNLIMITED or not active.size:
        return False
    return newest_ms(active) < now_ms - retention_ms


def active_overdue(log: Log, *, now_ms: int) -> bool:
    """Whether the active segment has been open for longer than it should."""
    active = log.active
    if not active.size:
        return False
    return now_ms - oldest_ms(active) > age_limit_ms(log.settings, active)
