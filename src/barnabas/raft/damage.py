"""Detects damage to synced metadata before recovery, and refuses to start on it.

Recovery truncates a log at the first bad byte. That is right for a tail that was never
acknowledged. Here the start is refused if the bad byte lies below the offset that this node has
synced, because other nodes rely on those records.

The batches say how much was synced: each names the offset that its leader had synced when it wrote
the batch. That holds for this node if this node was the leader (or if there was no quorum yet). A
follower may not have synced the records before such a batch, so a follower writes its synced offset
to a file after each sync. The file itself is not synced: a lost or torn one is ignored.
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
    """Return the record headers that name the writer and the offset it has synced."""
    synced = str(synced_offset).encode()
    return ((SYNCED_HEADER, synced), (WRITER_HEADER, str(me).encode()))


def note_end(disk: Disk, folder: str, offset: int, *, sync: bool) -> None:
    """Write down the offset that this node has synced."""
    write_number(disk, f"{folder}/{END_FILE}", offset, sync=sync)


def refuse_damage(disk: Disk, folder: str, me: NodeId) -> None:
    """Raise `StorageError` if metadata that was synced here can no longer be read."""
    end, rest, where = 0, b"", folder
    for number, base in enumerate(_segments(disk, folder)):
        path = f"{folder}/{segment_name(base)}{LOG_SUFFIX}"
        content = disk.read_bytes(path)
        if rest or (number and base != end):
            rest += content  # what follows the damage shows how much there was
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
    """Return the base offsets of segments; skip those that a crash left below the log's start."""
    bases = numbered(disk, folder, LOG_SUFFIX)
    start = read_number(disk, f"{folder}/{START_OFFSET_FILE}") or 0
    return bases[max(0, bisect_right(bases, start) - 1) :]


def _noted_end(disk: Disk, folder: str) -> int:
    try:
        return read_number(disk, f"{folder}/{END_FILE}") or 0
    except (StorageError, ValueError):
        return 0  # the file is damaged, which says nothing about the log


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
    """Find valid batches after the first damaged bytes."""
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
