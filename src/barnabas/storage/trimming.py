"""Moves the start of a log, for DeleteRecords, retention and snapshots of the metadata log.

The new start is stored and synced before any segment below it is removed. Without that, a power
failure could bring back the first segment and not the second, as if the second had been lost.
"""

from barnabas.storage.changes import ChangeAbandonedError, ChangeSteps, Sync, beside, written_beside
from barnabas.storage.checkpoints import seal
from barnabas.storage.log import START_OFFSET_FILE, Log


def advance_start(log: Log, offset: int) -> ChangeSteps[None]:
    """Make everything below an offset unreadable; readers see that once it is durable."""
    if offset <= log.start_offset:
        return
    if offset > log.end_offset:
        raise _truncated(log)
    path = f"{log.folder}/{START_OFFSET_FILE}"
    file = written_beside(log.disk, path, seal(f"{offset}\n"))
    yield Sync(files=(file,))
    log.disk.rename(beside(path), path)
    yield Sync(folders=(log.folder,))
    log.start_offset = offset
    log.epochs.truncate_start(offset)


def drop_segments(log: Log, before_offset: int, retired: list[str]) -> ChangeSteps[int]:
    """Remove the segments below an offset from a log; return how many there were.

    Records below the offset cannot be read afterwards, even those in a segment that stays. The
    files that can be deleted are added to `retired`. A full disk may refuse to store the new start
    of the log, and must be freed all the same: then each removal is durable before the next one.
    """
    if before_offset > log.end_offset:
        raise _truncated(log)
    noted = yield from _note_start(log, before_offset)
    count = sum(1 for segment in log.segments[1:] if segment.base_offset <= before_offset)
    for segment in log.segments[:count]:
        retired += log.retire(segment)
        log.splice(0, 1, [])
        log.start_offset = max(log.start_offset, log.segments[0].base_offset)
        if not noted:
            yield Sync(folders=(log.folder,))
    log.epochs.truncate_start(log.start_offset)
    return count


def _note_start(log: Log, offset: int) -> ChangeSteps[bool]:
    """Store where a log will start; tell whether the disk accepted that."""
    try:
        yield from advance_start(log, offset)
    except OSError:
        return False
    return True


def _truncated(log: Log) -> ChangeAbandonedError:
    return ChangeAbandonedError(f"the log was truncated to {log.end_offset} meanwhile")
