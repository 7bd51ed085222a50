"""Transaction markers: control batches of one record that end a producer's transaction.

    key    version int16, type int16        0 abort, 1 commit
    value  version int16, coordinator epoch int32

A read_committed consumer uses them to skip aborted records; clients never return them to users.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Buffer
from barnabas.protocol.records import CONTROL, TRANSACTIONAL, BatchHeader, Record, build, records

Batch = tuple[BatchHeader, memoryview]
Aborted = Iterable[tuple[int, int]]
"""Producer id and first offset of each transaction that was aborted."""

ABORT, COMMIT = 0, 1
VERSION = 0

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class EndMarker(NamedTuple):
    """The content of a marker."""

    kind: int
    coordinator_epoch: int


def build_marker(
    producer_id: int, producer_epoch: int, marker: EndMarker, now_ms: int
) -> bytearray:
    """Make the batch that ends a transaction."""
    key = _KEY.pack(VERSION, marker.kind)
    value = _VALUE.pack(VERSION, marker.coordinator_epoch)
    return build(
        [Record(0, now_ms, key, value)],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def parse_marker(batch: Buffer, header: BatchHeader) -> EndMarker:
    """Read a control batch; raise `CorruptBatchError` if it is not a marker."""
    first = next(records(batch, header), None)
    try:
        if first is None or first.key is None or first.value is None:
            raise CorruptBatchError(f"control batch at offset {header.base_offset} is empty")
        _, kind = _KEY.unpack_from(first.key)
        _, coordinator_epoch = _VALUE.unpack_from(first.value)
    except struct.error as error:
        raise CorruptBatchError(
            f"the marker at offset {header.base_offset} is truncated"
        ) from error
    return EndMarker(kind, coordinator_epoch)


def visible(found: Iterable[Batch], aborted: Aborted) -> Iterator[Batch]:
    """Leave out transaction markers, and what aborted transactions wrote.

    A transaction of the list is ignored from its first offset on until its marker.
    """
    coming = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    ignored: set[int] = set()
    for header, batch in found:
        while coming and coming[-1][1] <= header.last_offset:
            ignored.add(coming.pop()[0])
        if header.is_control:
            if ignored and parse_marker(batch, header).kind == ABORT:
                ignored.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ignored):
            yield header, batch
