"""The resume point: with it, recovery begins within the active segment instead of at its start.

`resume-point` has the totals of the batches below an offset: the totals and index entries of the
segment, epochs, producers and aborted transactions. It is taken at a checkpoint, while the log
grows, and stored at a later one, once everything below the offset was synced. After a crash
recovery loads it and reads only the headers behind it. It reads all headers if the file is missing
or damaged, or does not match the log.

    version int16, crc of the rest uint32
    totals of the segment, then how many epochs, and each epoch with its first offset
    producers, as in a snapshot of them, with the digest of the aborted transactions

A resume point counts only below the recovery point, which a truncation lowers. So one from before a
truncation is never used. A clean stop removes it, since truncations are forgotten from then on.
"""

import struct
from contextlib import suppress
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Disk
from barnabas.protocol.crc import crc32c
from barnabas.storage import producer_snapshots
from barnabas.storage.aborted import Digest
from barnabas.storage.changes import ChangeSteps, Sync, beside, carry_out_now, written_beside
from barnabas.storage.log import RESUME_FILE, Log
from barnabas.storage.producers import ProducerStates
from barnabas.storage.segment import Totals

VERSION = 1
PRODUCERS_MAX = 2_000
"""A log with more producers gets no resume point: encoding them would hold up the event loop."""
ENTRIES_MIN = 64
"""How many index entries a segment must have grown by before it gets another resume point."""

_HEAD = struct.Struct(">hI")
_TOTALS = struct.Struct(">9q")
_COUNT = struct.Struct(">I")
_EPOCH = struct.Struct(">iq")


class ResumePoint(NamedTuple):
    """The totals of the batches below an offset."""

    totals: Totals
    epochs: list[tuple[int, int]]
    producers: ProducerStates
    aborted: Digest


class Stored(NamedTuple):
    """A resume point that is being written, and the files that must be durable before it."""

    path: str
    content: bytes
    indexes: tuple[str, ...]


class Captured(NamedTuple):
    """A resume point that may be stored once everything below its offset was synced."""

    truncations: int
    """How often the log had been truncated: after a later truncation it is void."""
    offset: int
    stored: Stored


def growth(log: Log) -> int:
    """Return how many index entries the active segment got since its last resume point."""
    active = log.active
    base, entries = log.resumes_at
    return active.offset_index.count - (entries if base == active.base_offset else 0)


def capture(log: Log) -> None:
    """Capture the log's state as of its end; raise `OSError` if the disk refuses."""
    active = log.active
    log.resumes_at = active.base_offset, active.offset_index.count
    if not active.size or len(log.producers.by_id) > PRODUCERS_MAX:
        return
    active.write_indexes()
    totals = active.totals()
    content = _encode(totals, log.epochs.entries, log.producers, active.aborted.digest)
    indexes = tuple(path for path in active.paths[1:] if log.disk.exists(path))
    stored = Stored(f"{log.folder}/{RESUME_FILE}", content, indexes)
    log.captured = Captured(log.truncations, totals.next_offset, stored)


def take_ready(log: Log) -> Stored | None:
    """Return the captured resume point, once it may be stored."""
    found = log.captured
    if found is None or (
        found.truncations == log.truncations and found.offset > log.flushed_offset
    ):
        return None
    log.captured = None
    return found.stored if found.truncations == log.truncations else None


def storing(disk: Disk, found: Stored) -> ChangeSteps[None]:
    """Make a resume point durable, after the indexes that it depends on."""
    file = written_beside(disk, found.path, found.content)
    indexes = [disk.open(path) for path in found.indexes if disk.exists(path)]
    yield Sync(files=(*indexes, file))
    disk.rename(beside(found.path), found.path)
    yield Sync(folders=(found.path.rpartition("/")[0],))


def store(disk: Disk, found: Stored) -> None:
    """Do the same with blocking syncs, while no client is served."""
    # The log was truncated, or the disk is full: recovery then reads more headers.
    with suppress(OSError):
        carry_out_now(disk, storing(disk, found))


def load(disk: Disk, folder: str) -> ResumePoint | None:
    """Return the resume point of a log, if it has a good one."""
    path = f"{folder}/{RESUME_FILE}"
    if not disk.exists(path):
        return None
    try:
        return _decode(disk.read_bytes(path))
    except (struct.error, CorruptBatchError):
        return None


def _encode(
    totals: Totals, epochs: list[tuple[int, int]], producers: ProducerStates, aborted: Digest
) -> bytes:
    body = _TOTALS.pack(*totals) + _COUNT.pack(len(epochs))
    body += b"".join(_EPOCH.pack(*entry) for entry in epochs)
    body += producer_snapshots.encode(producers, aborted)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def _decode(content: bytes) -> ResumePoint:
    version, crc = _HEAD.unpack_from(content)
    body = content[_HEAD.size :]
    if version != VERSION or crc32c(body) != crc:
        raise CorruptBatchError("the resume point does not match its checksum")
    totals = Totals(*_TOTALS.unpack_from(body))
    (count,) = _COUNT.unpack_from(body, _TOTALS.size)
    start = _TOTALS.size + _COUNT.size
    end = start + count * _EPOCH.size
    epochs = [(epoch, offset) for epoch, offset in _EPOCH.iter_unpack(body[start:end])]
    states, aborted = (
        producer_snapshots.decode(body[end:]),
        producer_snapshots.digest_in(body[end:]),
    )
    if aborted is None:
        raise CorruptBatchError("the resume point does not say what was aborted")
    return ResumePoint(totals, epochs, states, aborted)
