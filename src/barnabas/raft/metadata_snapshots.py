"""Snapshot files: the metadata as of an offset, which replaces the log before it (KIP-630).

    <offset in 20 digits>-<epoch in 10>.checkpoint

contains a control batch with the header and the voters, the records in batches, and a control batch
with the footer. Each batch has a checksum; offsets without a gap and a footer at the end prove that
none is missing.

After the log below it is deleted, a snapshot is the only source of that metadata. A damaged one
stops the start and is never deleted: an older snapshot or an empty image would be wrong
(KAFKA-14618).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ports import Buffer, Disk
from barnabas.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from barnabas.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from barnabas.protocol.messages.voters_record import VotersRecord
from barnabas.protocol.records import Record, build, records, stamp, verify
from barnabas.raft.control import build_control, control_messages
from barnabas.raft.voters import VoterSet
from barnabas.storage.changes import ChangeSteps, Sync, beside, emptied_beside
from barnabas.storage.walk import plausible

SUFFIX = ".checkpoint"
FILE_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
RECORDS_A_BATCH = 100
"""How many records are encoded within one event of the event loop."""

Pair = tuple[bytes, bytes]


class SnapshotId(NamedTuple):
    """The offset at which a snapshot ends, and the epoch of its last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


NO_SNAPSHOT = SnapshotId(0, -1)


class Snapshot(NamedTuple):
    """The content of a snapshot."""

    id: SnapshotId
    voters: VoterSet | None
    records: list[Pair]


def encode(
    snapshot_id: SnapshotId, voters: VoterSet | None, content: Iterable[Pair], now_ms: int
) -> bytes:
    """Return the bytes of a snapshot's file."""
    return b"".join(pieces(snapshot_id, voters, content, now_ms))


def pieces(
    snapshot_id: SnapshotId, voters: VoterSet | None, content: Iterable[Pair], now_ms: int
) -> Iterator[bytearray]:
    """Return the bytes of a snapshot's file batch by batch; each is encoded when it is needed."""
    offset = 0
    for batch, count in _batches(voters, content, now_ms):
        stamp(batch, 0, offset, snapshot_id.epoch)
        yield batch
        offset += count


def _batches(
    voters: VoterSet | None, content: Iterable[Pair], now_ms: int
) -> Iterator[tuple[bytearray, int]]:
    first = [SnapshotHeaderRecord(last_contained_log_timestamp=now_ms)]
    opening = first if voters is None else [*first, voters.record()]
    yield build_control(opening, now_ms), len(opening)
    left = iter(content)
    while pairs := list(islice(left, RECORDS_A_BATCH)):
        yield build([Record(n, now_ms, *pair) for n, pair in enumerate(pairs)]), len(pairs)
    yield build_control([SnapshotFooterRecord()], now_ms), 1


def decode(snapshot_id: SnapshotId, content: bytes) -> Snapshot:
    """Read a snapshot; raise `CorruptBatchError` unless it is complete and undamaged."""
    view, position, offset = memoryview(content), 0, 0
    voters: VoterSet | None = None
    pairs: list[Pair] = []
    opened = closed = False
    while position < len(view):
        header = plausible(view, position, len(view) - position)
        batch = view[position : position + header.size]
        verify(batch, header)
        if closed or header.base_offset != offset or header.leader_epoch != snapshot_id.epoch:
            raise CorruptBatchError(
                f"the batch at byte {position} belongs to another place or snapshot"
            )
        position, offset = position + header.size, header.last_offset + 1
        if not header.is_control:
            pairs += [(record.key or b"", record.value or b"") for record in records(batch, header)]
            continue
        for message in control_messages(batch, header):
            opened |= isinstance(message, SnapshotHeaderRecord)
            closed |= isinstance(message, SnapshotFooterRecord)
            if isinstance(message, VotersRecord):
                voters = VoterSet.of_record(message)
    if not (opened and closed):
        raise CorruptBatchError("its header or footer is missing")
    return Snapshot(snapshot_id, voters, pairs)


class Snapshots:
    """The snapshots in a folder; the newest is in use."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self.newest = NO_SNAPSHOT

    def open(self) -> Snapshot | None:
        """Return the newest snapshot, if there is one; raise `StorageError` if it is damaged."""
        found = self.listed()
        if not found:
            return None
        self.newest = found[-1]
        path = self.path(self.newest)
        try:
            return decode(self.newest, self._disk.read_bytes(path))
        except CorruptBatchError as error:
            raise StorageError(
                f"{path} is damaged: {error}; the metadata below offset {self.newest.end_offset} "
                f"exists nowhere else on this node. Restore the file, or remove this node from the "
                f"quorum, empty its metadata folder and add it again"
            ) from error

    def path(self, snapshot_id: SnapshotId) -> str:
        """Return the path of a snapshot."""
        return f"{self._folder}/{snapshot_id.file_name}"

    def listed(self) -> list[SnapshotId]:
        """Return the ids of all snapshots, the newest last; other files are ignored."""
        found = (FILE_NAME.fullmatch(name) for name in self._disk.files(self._folder))
        return sorted(SnapshotId(int(named[1]), int(named[2])) for named in found if named)

    def store(self, snapshot_id: SnapshotId, content: bytes) -> None:
        """Write a snapshot durably, and make it the newest."""
        self._disk.write_atomic(self.path(snapshot_id), content)
        self.newest = snapshot_id

    def storing(self, snapshot_id: SnapshotId, content: Iterable[Buffer]) -> ChangeSteps[None]:
        """Do what `store` does in steps, with other events of the loop in between."""
        path = self.path(snapshot_id)
        file = emptied_beside(self._disk, path)
        try:
            for piece in content:
                file.append((piece,))
                yield Sync()
            yield Sync(files=(file,))
            self._disk.rename(beside(path), path)
        except OSError:
            self._disk.remove(beside(path))  # free the space: the disk may be full
            raise
        yield Sync(folders=(self._folder,))
        self.newest = snapshot_id

    def give_up(self, snapshot_id: SnapshotId) -> None:
        """Delete the part of a snapshot that was written before it was abandoned."""
        self._disk.remove(beside(self.path(snapshot_id)))

    def read(self, snapshot_id: SnapshotId, position: int, length: int) -> tuple[bytes, int] | None:
        """Return a piece of a snapshot and the snapshot's size; None if it does not exist."""
        path = self.path(snapshot_id)
        if not self._disk.exists(path):
            return None
        file = self._disk.open(path)
        try:
            return file.read(position, length), file.size()
        finally:
            file.close()

    def older(self) -> tuple[str, ...]:
        """Return the paths of all snapshots but the newest."""
        return tuple(self.path(found) for found in self.listed() if found < self.newest)
