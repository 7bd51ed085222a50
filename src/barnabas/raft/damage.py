"""Damage that must not be repaired by forgetting: metadata that was committed stays.

Recovery cuts a log at the first bad byte, which is right for a tail that nobody was promised. Here
it is found out, before, whether the bad byte lies below what this node has synced: then others
count on it, and the start is refused.

How much was synced is told by the batches: each says how far its leader had synced when it wrote
it. That speaks for this node where this node was the leader (or where there was no quorum yet);
what a follower copied may lie unsynced in front of such a batch, so followers leave a note of
their own after each sync. The note itself is not synced: a lost or torn one says nothing.
"""

from bisect import bisect_right
from collections.abc import Iterator

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ids import NodeId
from barnabas.model.ports import Disk
from barnabas.protocol.records import HEADER_BYTES, BatchHeader, records, verify
from barnabas.raft.control import Headers
from barnabas.storage.checkpoints import read_number, write_number
from barnabas.storage.log import START_OFFSET_FILE
from barnabas.storage.names import LOG_SUFFIX, numbered, segment_name
from barnabas.storage.walk import plausible

SYNCED_HEADER = "synced"
WRITER_HEADER = "by"
END_FILE = "committed-end"


def claim(me: NodeId, synced_offset: int) -> Headers:
    """Return the headers by which a batch tells what its writer had synced."""
    synced = str(synced_offset).encode()
    return ((SYNCED_HEADER, synced), (WRITER_HEADER, str(me).encode()))


def note_end(disk: Disk, folder: str, offset: int, *, sync: bool) -> None:
    """Note how far this node has synced."""
    write_number(disk, f"{folder}/{END_FILE}", offset, sync=sync)


def refuse_damage(disk: Disk, folder: str, me: NodeId) -> None:
    """Raise `StorageError` where metadata that was synced here can no longer be read."""
    end, rest, where = 0, b"", folder
    for number, base in enumerate(_segments(disk, folder)):
        path = f"{folder}/{segment_name(base)}{LOG_SUFFIX}"
        content = disk.read_bytes(path)
        if rest or (number and base != end):
            rest += content  # whatever follows damage tells how much there was
            continue
        where = path
        end, rest = _readable_end(content, base)
    committed = _noted_end(disk, folder)
    for header, batch in _whole_batches(rest):
        committed = max(committed, _synced_when_written(header, batch, me))
    if committed > end:
        raise StorageError(
            f"{where} is damaged: metadata up to offset {committed} was committed, and only "
            f"that up to {end} can be read; restore {folder} from a backup"
        )


def _segments(disk: Disk, folder: str) -> list[int]:
    """Return where segments begin; those below the log's start may have been left by a crash."""
    bases = numbered(disk, folder, LOG_SUFFIX)
    start = read_number(disk, f"{folder}/{START_OFFSET_FILE}") or 0
    return bases[max(0, bisect_right(bases, start) - 1) :]


def _noted_end(disk: Disk, folder: str) -> int:
    try:
        return read_number(disk, f"{folder}/{END_FILE}") or 0
    except (StorageError, ValueError):
        return 0  # the note is damaged, which says nothing about the log


def _readable_end(content: bytes, end: int) -> tuple[int, bytes]:
    """Return the offset up to which a segment can be read, and the bytes that cannot."""
    view, position = memoryview(content), 0
    try:
        while position < len(view):
            header = plausible(view, position, len(view) - position)
            verify(view[position : position + header.size], header)
            if header.base_offset != end:
                break
            end, position = header.last_offset + 1, position + header.size
    except CorruptBatchError:
        pass
    return end, content[position:]


def _whole_batches(content: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Find good batches among bytes of which the first are not."""
    view = memoryview(content)
    for position in range(len(view) - HEADER_BYTES):
        try:
            header = plausible(view, position, len(view) - position)
            batch = view[position : position + header.size]
            verify(batch, header)
        except CorruptBatchError:
            continue
        yield header, batch


def _synced_when_written(header: BatchHeader, batch: memoryview, me: NodeId) -> int:
    for record in records(batch, header):
        headers = dict(record.headers)
        if (headers.get(WRITER_HEADER) or str(me).encode()) == str(me).encode():
            return int(headers.get(SYNCED_HEADER) or 0)
        break
    return 0
