"""Producer snapshots, and how the producer state of a log is rebuilt from them.

`<offset>.snapshot` holds the state as of an offset. There is one at the start of every segment,
since compaction may have removed the batches from which it could be rebuilt.

    version int16, crc of the rest uint32
    digest of the index of aborted transactions of the segment that ends here (from version 2)
    count uint32, then each producer with its last batches

Version 1 has no transactions, so there were none before a snapshot of that version.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Disk
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import BatchHeader, verify
from barnabas.storage.aborted import Aborted, Digest
from barnabas.storage.changes import ChangeSteps, Sync, beside, written_beside
from barnabas.storage.names import numbered
from barnabas.storage.producers import NONE, Producer, ProducerStates, SentBatch
from barnabas.storage.segment import Segment
from barnabas.storage.walk import walk

if TYPE_CHECKING:
    from barnabas.storage.log import Log

SUFFIX = ".snapshot"
VERSION = 2
BEFORE_TRANSACTIONS = 1
NO_ABORTS = Digest(NONE, 0, crc32c(b""))


class Doubt(NamedTuple):
    """The description of the problem."""

    problem: str
    damaged_at: int | None = None
    """The offset from which on the log's records cannot be read, if they are the problem."""


_HEAD = struct.Struct(">hI")
_DIGEST = struct.Struct(">qII")
_COUNT = struct.Struct(">I")
_PRODUCER = struct.Struct(">qhqqiH")
_PRODUCER_V1 = struct.Struct(">qhqqH")
_BATCH = struct.Struct(">iiqq")

_DIGEST_UPTO = _HEAD.size + _DIGEST.size


def encode(states: ProducerStates, aborted: Digest = NO_ABORTS) -> bytes:
    """Return the whole state as a snapshot's content."""
    producers = b"".join(_encode_producers(states))
    return _sealed(aborted, _COUNT.pack(len(states.by_id)) + producers)


def decode(content: bytes) -> ProducerStates:
    """Read a snapshot; raise `CorruptBatchError` if it is damaged."""
    by_id: dict[int, Producer] = {}
    try:
        version, crc = _HEAD.unpack_from(content)
        known = version in (BEFORE_TRANSACTIONS, VERSION)
        if not known or crc32c(content[_HEAD.size :]) != crc:
            raise CorruptBatchError("the producer snapshot does not match its checksum")
        position = _HEAD.size if version == BEFORE_TRANSACTIONS else _DIGEST_UPTO
        (count,) = _COUNT.unpack_from(content, position)
        position += _COUNT.size
        for _ in range(count):
            position = _decode_producer(by_id, content, position, version)
    except struct.error as error:
        raise CorruptBatchError("the producer snapshot is incomplete") from error
    return ProducerStates(by_id)


def snapshot_offsets(disk: Disk, folder: str) -> list[int]:
    """Return the offsets at which there are snapshots, ascending."""
    return numbered(disk, folder, SUFFIX)


def snapshot_path(folder: str, offset: int) -> str:
    """Return the path of the snapshot at an offset."""
    return f"{folder}/{offset:020d}{SUFFIX}"


def vouches_for(log: "Log", segment: Segment, end_offset: int) -> bool:
    """Tell whether a segment's index of aborted transactions is the one that was sealed."""
    path = snapshot_path(log.folder, end_offset)
    digest = digest_in(_read_head(log.disk, path)) if log.disk.exists(path) else None
    if digest == NO_ABORTS:
        return not segment.aborted.content
    return digest == segment.aborted.digest


def vouching(log: "Log", segment: Segment) -> ChangeSteps[None]:
    """Write the digest of a segment's index of aborted transactions to the snapshot at its end.

    If the disk is full this fails, and the index is rebuilt at the next start.
    """
    if vouches_for(log, segment, segment.next_offset):
        return
    path = snapshot_path(log.folder, segment.next_offset)
    # Always synced: compaction may have removed all other information about producers.
    with suppress(OSError, CorruptBatchError):
        states = decode(log.disk.read_bytes(path))
        file = written_beside(log.disk, path, encode(states, segment.aborted.digest))
        yield Sync(files=(file,))
        log.disk.rename(beside(path), path)
        yield Sync(folders=(log.folder,))


def rebuild(log: "Log") -> tuple[ProducerStates, list[Doubt]]:
    """Return the state as of the end of a log, and the problems of the log and its snapshots.

    Starts from the newest good snapshot and replays the batches behind it. Snapshots from beyond
    the end are removed: they describe batches that no longer exist. The caller then reports to the
    state which markers are committed.
    """
    states, start, doubts = _newest(log)
    doubts += _follow(log, states, start, [])
    if doubts:
        _forget_vanished(log, states)
    doubts += _damaged_beginnings(log, states)
    return states, doubts


def resume(log: "Log", states: ProducerStates, start: int) -> tuple[list[Aborted], list[Doubt]]:
    """Bring a state that is known as of an offset to the end of the log.

    Returns the transactions that markers from that offset on abort, and the problems.
    """
    _, _, doubts = _newest(log)  # this removes snapshots from beyond the end
    aborted: list[Aborted] = []
    doubts += _follow(log, states, start, aborted)
    if doubts:
        _forget_vanished(log, states)
    doubts += _damaged_beginnings(log, states)
    return aborted, doubts


def aborted_in(log: "Log", segment: Segment) -> tuple[list[Aborted], list[Doubt]]:
    """Return the transactions that markers in a segment abort, and the problems."""
    states, start = _as_of(log, segment.base_offset)
    found: list[Aborted] = []
    reached = segment
    try:
        for reached in log.segments:
            if start < reached.next_offset <= segment.base_offset:
                for _ in _replay(states, reached, start):
                    pass
        reached = segment
        found.extend(_replay(states, segment, segment.base_offset))
    except CorruptBatchError as error:
        problem = f"{reached.file.path}: {error}; its aborts are not all known"
        return found, [Doubt(problem, reached.base_offset)]
    return found, []


def _follow(
    log: "Log", states: ProducerStates, start: int, aborted: list[Aborted]
) -> Iterator[Doubt]:
    """Record every batch from an offset on; yield the problems."""
    for segment in log.segments:
        if segment.next_offset <= start:
            continue
        try:
            aborted.extend(_replay(states, segment, start))
        except CorruptBatchError as error:
            problem = f"{segment.file.path}: {error}; its producers are not all known"
            yield Doubt(problem, max(start, segment.base_offset))


def _replay(states: ProducerStates, segment: Segment, start: int) -> Iterator[Aborted]:
    """Record the batches from an offset on; yield the transactions that were aborted."""
    for position, header in walk(
        segment.file, segment.position_of(start), segment.size, check=False
    ):
        if header.producer_id < 0 or header.last_offset < start:
            continue
        marker = _marker(segment, position, header) if header.is_control else b""
        aborted = states.follow(header, header.base_offset, marker)
        if aborted is not None:
            yield aborted


def _marker(segment: Segment, position: int, header: BatchHeader) -> bytes:
    batch = segment.file.read(position, header.size)
    verify(batch, header)
    return batch


def _newest(log: "Log") -> tuple[ProducerStates, int, list[Doubt]]:
    doubts = []
    for offset in reversed(snapshot_offsets(log.disk, log.folder)):
        path = snapshot_path(log.folder, offset)
        if offset <= log.end_offset:
            try:
                states = decode(log.disk.read_bytes(path))
            except CorruptBatchError as error:
                doubts.append(Doubt(f"{path}: {error}; rebuilt from the log"))
            else:
                return states, offset, doubts
        log.disk.remove(path)
    return ProducerStates(), log.start_offset, doubts


def _as_of(log: "Log", upto: int) -> tuple[ProducerStates, int]:
    """Return the newest state that is known up to an offset, and the offset of its snapshot."""
    for offset in reversed(snapshot_offsets(log.disk, log.folder)):
        if offset <= upto:
            with suppress(CorruptBatchError):
                return decode(log.disk.read_bytes(snapshot_path(log.folder, offset))), offset
    return ProducerStates(), log.start_offset


def _forget_vanished(log: "Log", states: ProducerStates) -> None:
    """Close transactions whose marker compaction has removed after an old snapshot was written.

    Open transactions are not affected: if the first batch is gone, the transaction is over.
    """
    for producer_id, first_offset in states.open_transactions().items():
        if first_offset >= log.start_offset and not _may_begin_at(log, first_offset, producer_id):
            states.forget_transaction(producer_id)


def _damaged_beginnings(log: "Log", states: ProducerStates) -> Iterator[Doubt]:
    """Check the batches with which open transactions begin.

    Headers are not checked otherwise. A flipped bit in one may open a transaction that no producer
    ends. No read_committed consumer reads beyond it, so no reader would find the damage.
    """
    for first_offset in states.open_transactions().values():
        if first_offset < log.start_offset:
            continue
        segment = next(s for s in reversed(log.segments) if s.base_offset <= first_offset)
        try:
            found = segment.locate(first_offset)
            if found is not None:
                verify(segment.file.read(found.position, found.header.size), found.header)
        except CorruptBatchError as error:
            problem = f"{segment.file.path}: {error}; a transaction seems to begin there"
            yield Doubt(problem, first_offset)


def _may_begin_at(log: "Log", offset: int, producer_id: int) -> bool:
    """Tell whether a producer's batch is at an offset, or may be, since the log is damaged."""
    segment = next(s for s in reversed(log.segments) if s.base_offset <= offset)
    try:
        found = segment.locate(offset)
    except CorruptBatchError:
        return True
    if found is None:
        return False
    return (found.header.base_offset, found.header.producer_id) == (offset, producer_id)


def _encode_producers(states: ProducerStates) -> Iterator[bytes]:
    for producer_id, state in states.by_id.items():
        yield _PRODUCER.pack(
            producer_id,
            state.epoch,
            state.last_timestamp,
            state.transaction_start,
            state.coordinator_epoch,
            len(state.batches),
        )
        for batch in state.batches:
            yield _BATCH.pack(*batch)


def _decode_producer(
    by_id: dict[int, Producer], content: bytes, position: int, version: int
) -> int:
    layout = _PRODUCER_V1 if version == BEFORE_TRANSACTIONS else _PRODUCER
    producer_id, epoch, timestamp, start, *rest = layout.unpack_from(content, position)
    position += layout.size
    producer = by_id[producer_id] = Producer(epoch)
    producer.last_timestamp, producer.transaction_start = timestamp, start
    if version > BEFORE_TRANSACTIONS:
        producer.coordinator_epoch = rest[0]
    for _ in range(rest[-1]):
        producer.batches.append(SentBatch(*_BATCH.unpack_from(content, position)))
        position += _BATCH.size
    return position


def _sealed(aborted: Digest, producers: bytes) -> bytes:
    body = _DIGEST.pack(*aborted) + producers
    return _HEAD.pack(VERSION, crc32c(body)) + body


def _read_head(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read(0, _DIGEST_UPTO)
    finally:
        file.close()


def digest_in(head: bytes) -> Digest | None:
    """Read the digest at the beginning of a snapshot; None if the snapshot is too short.

    The checksum is not checked: a wrong digest only causes a rebuild of the index.
    """
    try:
        version, _ = _HEAD.unpack_from(head)
        if version == BEFORE_TRANSACTIONS:
            return NO_ABORTS
        return Digest(*_DIGEST.unpack_from(head, _HEAD.size)) if version == VERSION else None
    except struct.error:
        return None
