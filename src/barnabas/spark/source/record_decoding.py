"""Decodes record batches into Arrow columns without creating a Python object per record.

    bytes of a Fetch response -> visible batches -> slabs -> Arrow

A slab is a buffer with the uncompressed records of several batches, and the range of each batch in
it. Without compression it is the response itself. Its records are decoded together. Keys and values
are elements of one binary array over the slab, without a copy, whose offsets alternate: key, gap,
value, gap. Taking every fourth element copies them out, in C++.

`_arrow_column` makes columns over numpy's memory. `pa.array` would import pandas to check for a
Series: 0.3 s in the first task of every worker.

Everything here is a function of bytes; `split_fetching.py` fetches them.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import TopicPartition
from barnabas.protocol.compression import Codec, decompress
from barnabas.protocol.records import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    batches,
    read_varint,
    verify,
)
from barnabas.spark import schema
from barnabas.spark.source.varints import Bytes, Positions, read_varints, record_starts

SLAB_BYTES = 8 << 20
ROWS_MAX = 1 << 16

Flags: TypeAlias = npt.NDArray[np.bool_]
Batch = tuple[BatchHeader, memoryview]


class Slab(NamedTuple):
    """Uncompressed records of several batches in one buffer, with the range of each batch."""

    buffer: memoryview
    bodies: list[tuple[BatchHeader, int, int]]


class Wanted(NamedTuple):
    """The records of a partition to return, and how."""

    place: TopicPartition
    start: int
    end: int
    include_headers: bool = False


def checked_batches(records: memoryview, *, check_crcs: bool = True) -> list[Batch]:
    """Return the complete batches of a response; refuse damaged ones and old formats."""
    if len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC:
        raise CorruptBatchError(
            f"records are in message format {records[MAGIC_AT]}, which brokers before Kafka 0.11 "
            "wrote; have them rewritten (log.message.format.version=3.0), or read the topic "
            'with format("kafka")'
        )
    found = list(batches(records))
    if check_crcs:
        for header, batch in found:
            verify(batch, header)
    return found


def slabs(records: memoryview, found: Iterable[Batch]) -> Iterator[Slab]:
    """Put the batches in `records` into slabs of a suitable size.

    Log compaction leaves batches with a header only, which may name a codec: skip them.
    """
    filled = (batch for batch in found if batch[0].size > HEADER_BYTES or batch[0].record_count)
    for packed, run in groupby(filled, key=lambda batch: batch[0].codec != Codec.NONE):
        if packed:
            yield from _unpacked(run)
        else:
            yield from _in_place(records, run)


def _in_place(records: memoryview, found: Iterable[Batch]) -> Iterator[Slab]:
    base = _address(records)
    bodies: list[tuple[BatchHeader, int, int]] = []
    rows = 0
    for header, batch in found:
        start = _address(batch) - base
        bodies.append((header, start + HEADER_BYTES, start + header.size))
        rows += header.record_count
        if rows >= ROWS_MAX or start + header.size - bodies[0][1] >= SLAB_BYTES:
            yield Slab(records, bodies)
            bodies, rows = [], 0
    if bodies:
        yield Slab(records, bodies)


def _unpacked(found: Iterable[Batch]) -> Iterator[Slab]:
    parts: list[bytes] = []
    bodies: list[tuple[BatchHeader, int, int]] = []
    size = rows = 0
    for header, batch in found:
        if header.codec > Codec.ZSTD:
            raise CorruptBatchError(f"codec {header.codec} is not known")
        body = decompress(Codec(header.codec), batch[HEADER_BYTES:])
        parts.append(body)
        bodies.append((header, size, size + len(body)))
        size += len(body)
        rows += header.record_count
        if rows >= ROWS_MAX or size >= SLAB_BYTES:
            yield Slab(memoryview(b"".join(parts)), bodies)
            parts, bodies, size, rows = [], [], 0, 0
    if bodies:
        yield Slab(memoryview(b"".join(parts)), bodies)


def _address(view: memoryview) -> int:
    address: int = np.frombuffer(view, np.uint8).ctypes.data
    return address


def decode(slab: Slab, wanted: Wanted) -> pa.RecordBatch | None:
    """Return the wanted records of a slab as columns; None if there are none."""
    content = np.frombuffer(slab.buffer, np.uint8)
    try:
        return _decode(content, slab, wanted)
    except IndexError:
        raise CorruptBatchError("a record is cut short") from None


def _decode(content: Bytes, slab: Slab, wanted: Wanted) -> pa.RecordBatch | None:
    starts, counts = _starts(content, slab)
    length, position = read_varints(content, starts)
    ends = position + length
    time_delta, position = read_varints(content, position + 1)
    offset_delta, position = read_varints(content, position)
    headers = [header for header, _, _ in slab.bodies]
    offsets = np.repeat([each.base_offset for each in headers], counts) + offset_delta
    low, high = np.searchsorted(offsets, (wanted.start, wanted.end))
    if low == high:
        return None
    rows = slice(low, high)
    times, kinds = _times(headers, counts, time_delta)
    key, value, position = _keys_and_values(slab.buffer, content, position[rows], ends[rows])
    columns = [
        key,
        value,
        _topic_column(wanted.place.topic, high - low),
        _arrow_column(pa.int32(), np.full(high - low, wanted.place.partition, np.int32)),
        _arrow_column(pa.int64(), offsets[rows]),
        _arrow_column(pa.timestamp("us", tz="UTC"), times[rows] * 1000),
        _arrow_column(pa.int32(), kinds[rows]),
    ]
    if wanted.include_headers:
        columns.append(_headers(slab.buffer, content, position, ends[rows]))
    return pa.RecordBatch.from_arrays(
        columns, schema=schema.arrow_schema(include_headers=wanted.include_headers)
    )


def _starts(content: Bytes, slab: Slab) -> tuple[Positions, list[int]]:
    """Return where all records start, and how many each batch has."""
    pieces = [record_starts(content, slab.buffer, start, end) for _, start, end in slab.bodies]
    counts = [len(piece) for piece in pieces]
    for count, (header, _, _) in zip(counts, slab.bodies, strict=True):
        if count != header.record_count:
            raise CorruptBatchError(
                f"the batch at offset {header.base_offset} has {count} records "
                f"and says {header.record_count}"
            )
    return np.concatenate(pieces), counts


def _times(
    headers: list[BatchHeader], counts: list[int], delta: Positions
) -> tuple[Positions, "np.ndarray[tuple[int], np.dtype[np.int32]]"]:
    """Return the time of each record, and the type of its timestamp."""
    by_broker = [bool(header.attributes & LOG_APPEND_TIME) for header in headers]
    base = [
        header.max_timestamp if append else header.base_timestamp
        for header, append in zip(headers, by_broker, strict=True)
    ]
    kinds = np.repeat(np.array(by_broker, np.int32), counts)
    if any(by_broker):
        delta = np.where(kinds == schema.LOG_APPEND_TIME, 0, delta)
    return np.repeat(np.array(base, np.int64), counts) + delta, kinds


def _keys_and_values(
    buffer: memoryview, content: Bytes, position: Positions, ends: Positions
) -> tuple[pa.Array, pa.Array, Positions]:
    key_length, key_start = read_varints(content, position)
    key_end = key_start + np.maximum(key_length, 0)
    value_length, value_start = read_varints(content, key_end)
    value_end = value_start + np.maximum(value_length, 0)
    if (value_end > ends - 1).any():
        raise CorruptBatchError("a field reaches past the end of its record")
    count = len(position)
    offsets = np.empty(count * 4, np.int32)
    for number, places in enumerate((key_start, key_end, value_start, value_end)):
        offsets[number::4] = places
    fields = pa.Array.from_buffers(
        pa.binary(), count * 4 - 1, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    )
    return _taken(fields, 0, key_length), _taken(fields, 2, value_length), value_end


def _taken(fields: pa.Array, first: int, length: Positions) -> pa.Array:
    """Copy every fourth field; a negative length means null."""
    absent = length < 0
    if absent.all():
        return pa.nulls(len(length), pa.binary())
    numbers = np.arange(first, first + 4 * len(length), 4, dtype=np.int32)
    return fields.take(_arrow_column(pa.int32(), numbers, absent if absent.any() else None))


def _arrow_column(
    kind: pa.DataType, values: npt.NDArray[Any], absent: Flags | None = None
) -> pa.Array:
    """Return a column over the memory of its values; flags mark nulls."""
    present = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [present, pa.py_buffer(values)])


def _topic_column(topic: str, count: int) -> pa.Array:
    return _repeated_name(topic, max(count, ROWS_MAX)).slice(0, count)


@lru_cache(maxsize=64)
def _repeated_name(topic: str, count: int) -> pa.Array:
    name = topic.encode()
    starts = np.arange(count + 1, dtype=np.int32) * np.int32(len(name))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(starts), pa.py_buffer(name * count)]
    )


def _headers(buffer: memoryview, content: Bytes, position: Positions, ends: Positions) -> pa.Array:
    """Return the headers of records: null if there are none, as Spark's connector has it.

    Records of one producer mostly have the same headers, so each distinct one is parsed once.
    """
    has_some = content[position] != 0
    if not has_some.any():
        return pa.nulls(len(position), schema.ARROW_HEADERS)
    known: dict[bytes, int] = {}
    numbers = np.zeros(len(position), np.int32)
    rows = np.flatnonzero(has_some)
    for row, start, end in zip(
        rows.tolist(), position[rows].tolist(), ends[rows].tolist(), strict=True
    ):
        numbers[row] = known.setdefault(bytes(buffer[start:end]), len(known))
    distinct = pa.array([_parse_headers(raw) for raw in known], schema.ARROW_HEADERS)
    return distinct.take(_arrow_column(pa.int32(), numbers, ~has_some))


def _parse_headers(raw: bytes) -> list[dict[str, str | bytes | None]]:
    try:
        count, position = read_varint(raw, 0)
        parsed: list[dict[str, str | bytes | None]] = []
        for _ in range(count):
            name, position = _field(raw, position)
            value, position = _field(raw, position)
            parsed.append({"key": (name or b"").decode(errors="replace"), "value": value})
    except IndexError:
        raise CorruptBatchError("a header is cut short") from None
    if position != len(raw) or count < 0:
        raise CorruptBatchError("the headers of a record are not as long as they say")
    return parsed


def _field(raw: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(raw, position)
    if length < 0:
        return None, position
    return raw[position : position + length], position + length
