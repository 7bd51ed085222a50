"""Applies changes to a log and carries out all their syncs at once."""

from barnabas.storage import compaction, trimming
from barnabas.storage.changes import carry_out_now
from barnabas.storage.log import Log


def advance_start(log: Log, offset: int) -> None:
    """Make everything below an offset unreadable."""
    carry_out_now(log.disk, trimming.advance_start(log, offset))


def drop_segments(log: Log, count: int) -> list[str]:
    """Take the first segments out of a log; return the files that can be deleted."""
    retired: list[str] = []
    before_offset = log.segments[count].base_offset
    assert carry_out_now(log.disk, trimming.drop_segments(log, before_offset, retired)) == count
    return retired


def swap_in(log: Log, cleaned: compaction.Cleaned) -> list[str]:
    """Put what compaction made in its place; return the files that can be deleted."""
    return carry_out_now(log.disk, compaction.apply(log, cleaned))
