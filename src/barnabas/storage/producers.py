"""What a partition remembers of idempotent producers, so that a retry is not a duplicate.

For each producer id: its epoch and its last five batches. A batch that repeats one of those is
answered with the offset it got the first time; one that does not follow the last is refused
(KIP-98). The state is a function of the log: a snapshot at an offset plus the headers after it.

Unlike Kafka's, our snapshots keep all five batches, so that a retry across a restart finds its
first offset whichever of the five it was.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ports import Disk
from barnabas.protocol.crc import crc32c
from barnabas.protocol.records import BatchHeader
from barnabas.storage.names import numbered
from barnabas.storage.walk import walk

if TYPE_CHECKING:
    from barnabas.storage.log import Log

WINDOW = 5
SEQUENCE_MASK = 0x7FFFFFFF
SUFFIX = ".snapshot"
VERSION = 1

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">I")
_PRODUCER = struct.Struct(">qhqqH")
_BATCH = struct.Struct(">iiqq")


class SentBatch(NamedTuple):
    """A batch that is in the log: its sequences, and the offsets it was given."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int


class Producer:
    """One producer id in one partition."""

    __slots__ = ("batches", "epoch", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[SentBatch] = []
        self.last_timestamp = -1
        self.transaction_start = -1


class ProducerStates:
    """Every producer a partition knows."""

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}

    def check(self, header: BatchHeader) -> SentBatch | None:
        """Return the earlier batch that this one repeats; raise where it does not follow."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return None  # nothing is remembered: any sequence is taken
        if header.producer_epoch != producer.epoch:
            return self._check_new_epoch(producer, header)
        first, last = header.base_sequence, header.last_sequence
        for sent in producer.batches:
            if sent.first_sequence == first and sent.last_sequence == last:
                return sent
        if producer.batches and first != (producer.batches[-1].last_sequence + 1) & SEQUENCE_MASK:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sent sequence {first} after "
                f"{producer.batches[-1].last_sequence}",
            )
        return None

    def record(self, header: BatchHeader, first_offset: int) -> None:
        """Take in a batch that is now in the log."""
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        last_offset = first_offset + header.last_offset_delta
        batches = producer.batches
        batches.append(
            SentBatch(header.base_sequence, header.last_sequence, first_offset, last_offset)
        )
        if len(batches) > WINDOW:
            del batches[0]
        producer.last_timestamp = header.max_timestamp

    def expire(self, before_ms: int) -> None:
        """Forget producers that were last heard of before a time."""
        for producer_id in [p for p, s in self.by_id.items() if s.last_timestamp < before_ms]:
            del self.by_id[producer_id]

    def encode(self) -> bytes:
        """Return the whole state as a snapshot's content."""
        body = _COUNT.pack(len(self.by_id)) + b"".join(self._encode_producers())
        return _HEAD.pack(VERSION, crc32c(body)) + body

    @classmethod
    def decode(cls, content: bytes) -> "ProducerStates":
        """Read a snapshot; raise `CorruptBatchError` where it is damaged."""
        states = cls()
        try:
            version, crc = _HEAD.unpack_from(content)
            if version != VERSION or crc32c(content[_HEAD.size :]) != crc:
                raise CorruptBatchError("the producer snapshot does not match its checksum")
            (count,) = _COUNT.unpack_from(content, _HEAD.size)
            position = _HEAD.size + _COUNT.size
            for _ in range(count):
                position = states._decode_producer(content, position)
        except struct.error as error:
            raise CorruptBatchError("the producer snapshot is cut short") from error
        return states

    @staticmethod
    def _check_new_epoch(producer: Producer, header: BatchHeader) -> None:
        if header.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {producer.epoch} by now, "
                f"not {header.producer_epoch}",
            )
        if header.base_sequence != 0:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"epoch {header.producer_epoch} of producer {header.producer_id} must start "
                f"at sequence 0, not {header.base_sequence}",
            )

    def _encode_producers(self) -> Iterator[bytes]:
        for producer_id, state in self.by_id.items():
            yield _PRODUCER.pack(
                producer_id,
                state.epoch,
                state.last_timestamp,
                state.transaction_start,
                len(state.batches),
            )
            for batch in state.batches:
                yield _BATCH.pack(*batch)

    def _decode_producer(self, content: bytes, position: int) -> int:
        producer_id, epoch, timestamp, start, count = _PRODUCER.unpack_from(content, position)
        position += _PRODUCER.size
        producer = self.by_id[producer_id] = Producer(epoch)
        producer.last_timestamp, producer.transaction_start = timestamp, start
        for _ in range(count):
            producer.batches.append(SentBatch(*_BATCH.unpack_from(content, position)))
            position += _BATCH.size
        return position


def snapshot_offsets(disk: Disk, folder: str) -> list[int]:
    """Return the offsets at which there are snapshots, ascending."""
    return numbered(disk, folder, SUFFIX)


def snapshot_path(folder: str, offset: int) -> str:
    """Return where the snapshot at an offset lies."""
    return f"{folder}/{offset:020d}{SUFFIX}"


def rebuild(log: "Log") -> tuple[ProducerStates, list[str]]:
    """Return the state as of the end of a log, and what was wrong with its snapshots.

    Starts from the newest good snapshot and replays the headers behind it. Snapshots from beyond
    the end are removed: they speak of batches that are no longer there.
    """
    states, start, problems = _newest_snapshot(log)
    for segment in log.segments:
        if segment.next_offset <= start:
            continue
        try:
            position = segment.position_of(start)
            for _, header in walk(segment.file, position, segment.size, check=False):
                if header.producer_id >= 0 and header.last_offset >= start:
                    states.record(header, header.base_offset)
        except CorruptBatchError as error:
            problems.append(f"{segment.file.path}: {error}; its producers are not all known")
    return states, problems


def _newest_snapshot(log: "Log") -> tuple[ProducerStates, int, list[str]]:
    problems = []
    for offset in reversed(snapshot_offsets(log.disk, log.folder)):
        path = snapshot_path(log.folder, offset)
        if offset <= log.end_offset:
            try:
                states = ProducerStates.decode(log.disk.read_bytes(path))
            except CorruptBatchError as error:
                problems.append(f"{path}: {error}; made anew from the log")
            else:
                return states, offset, problems
        log.disk.remove(path)
    return ProducerStates(), log.start_offset, problems
