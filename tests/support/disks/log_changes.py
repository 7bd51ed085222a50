"""Applies changes to a log and carries out all their syncs at once."""

from barnabas.storage import trimming
from barnabas.storage.changes import carry_out_now
from barnabas.storage.compacting import compaction
from barnabas.storage.log import Log


def advance_start(log: Log, offset: int) -> None:
    """Delete the records below an offset."""
    carry_out_now(log.disk, trimming.advance_start(log, offset))


def drop_segments(log: Log, count: int) -> list[str]:
    """Remove the first segments of a log; return the files that can be deleted."""
    retired: list[str] = []
    before_offset = log.segments[count].base_offset
    assert carry_out_now(log.disk, trimming.drop_segments(log, before_offset, retired)) == count
    return retired


def swap_in(log: Log, cleaned: compaction.Cleaned) -> list[str]:
    """Swap in the result of a compaction; return the files that can be deleted."""
    return carry_out_now(log.disk, compaction.apply(log, cleaned))
