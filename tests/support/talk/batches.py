"""Builds, appends and reads record batches for storage tests."""

from collections.abc import Iterable, Sequence

from barnabas.model.ports import FileSlice
from barnabas.protocol.compression import Codec
from barnabas.protocol.markers import ABORT, COMMIT, EndMarker, build_marker, parse_marker
from barnabas.protocol.records import (
    BatchHeader,
    Record,
    batches,
    build,
    parse_header,
    records,
    verify,
)
from barnabas.storage.log import Log

Pair = tuple[bytes | None, bytes | None]
Batch = tuple[BatchHeader, memoryview]


def make_batch(
    content: int | Sequence[Pair] = 1,
    *,
    timestamp: int = 1_000,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
) -> memoryview:
    """Return a batch of a number of records, or of these keys and values, in a producer's format.

    `producer` is an id, its epoch and the first sequence.
    """
    pairs = [(b"key", b"value")] * content if isinstance(content, int) else content
    producer_id, producer_epoch, base_sequence = producer
    batch = build(
        [Record(number, timestamp, *pair) for number, pair in enumerate(pairs)],
        codec=codec,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    return memoryview(batch)


def make_marker(
    producer_id: int,
    producer_epoch: int = 0,
    *,
    commit: bool,
    coordinator_epoch: int = 0,
    timestamp: int = 1_000,
) -> memoryview:
    """Return the batch that ends a producer's transaction."""
    end = EndMarker(COMMIT if commit else ABORT, coordinator_epoch)
    return memoryview(build_marker(producer_id, producer_epoch, end, timestamp))


def append(log: Log, batch: memoryview | None = None, epoch: int = 0) -> int:
    """Append a batch and return its offset."""
    batch = make_batch() if batch is None else batch
    return log.append(batch, parse_header(batch), epoch)


def batches_in(piece: FileSlice | None) -> list[Batch]:
    """Return the batches in a read, after checking each."""
    if piece is None:
        return []
    content = piece.file.read(piece.position, piece.length)
    found = list(batches(content))
    assert sum(header.size for header, _ in found) == piece.length, "a batch is incomplete"
    for header, batch in found:
        verify(batch, header)
    return found


def read_all(log: Log, limit_bytes: int = 1 << 20) -> list[Batch]:
    """Return every batch of a log, read as a consumer would."""
    found: list[Batch] = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = batches_in(log.read(offset, limit_bytes, log.end_offset, at_least_one=True))
        if not part:
            break
        found += part
        offset = part[-1][0].last_offset + 1
    return found


def committed(found: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> list[Record]:
    """Return the records that a consumer shows of a fetch, without aborted ones.

    As clients do, it ignores a producer's records from the first offset in the list to the marker.
    """
    coming = sorted(aborted, key=lambda transaction: transaction[1])
    ignored: set[int] = set()
    shown: list[Record] = []
    for header, batch in found:
        while coming and coming[0][1] <= header.last_offset:
            ignored.add(coming.pop(0)[0])
        if header.is_control:
            if parse_marker(batch, header).kind == ABORT:
                ignored.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ignored):
            shown += records(batch, header)
    return shown
