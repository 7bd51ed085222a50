"""Encodes Arrow columns as record batches without creating a Python object per record.

A record on the wire is a chain of varints and byte strings:

    length | attributes | timestamp delta | offset delta | key length | key | value length | value
    | header count | headers

The varints of all rows are computed together in numpy and become two Arrow columns: the bytes
before the key, and the bytes between key and value. Arrow then joins the columns row by row in C++,
and since it stores the joined strings one after the other, its data buffer is the body of the batch
on the wire. 100-byte rows cost about 0.1 microseconds each.

Rows are sorted by partition and divided into chunks (`Chunk`), one for each record batch.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records import (
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    write_header,
)

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

RECORD_OVERHEAD_BYTES = 26
"""The most that varints add to a record without headers: lengths and deltas of 5 to 10 bytes."""

NO_HEADERS = b"\x00"
VARINT_BYTES_MAX = 10
MORE = np.uint8(0x80)
"""The bit of a varint's byte that says that another one follows."""


class RowError(ValueError):
    """A row cannot be written; the message says why."""


class Rows(NamedTuple):
    """Columns of the same length; keys, headers and times are optional."""

    values: pa.Array
    """Binary; null is a tombstone."""
    keys: pa.Array | None
    """Binary; null means that there is no key."""
    headers: pa.Array | None
    """Binary: the header count and the headers, as `header_column` makes them."""
    timestamps_ms: Integers | None
    """None if all rows have the current time."""


class Chunk(NamedTuple):
    """Adjacent rows, after sorting, that become one record batch."""

    topic: str
    partition: int
    start: int
    stop: int


class Producer(NamedTuple):
    """The producer fields of a batch header."""

    producer_id: int
    producer_epoch: int
    transactional: bool


class Encoded(NamedTuple):
    """A batch without its header."""

    chunk: Chunk
    body: memoryview
    first_timestamp_ms: int
    last_timestamp_ms: int

    @property
    def records(self) -> int:
        """The number of records."""
        return self.chunk.stop - self.chunk.start


def encode(rows: Rows, chunks: list[Chunk], now_ms: int) -> list[Encoded]:
    """Return the bodies of all chunks; the chunks cover the rows from first to last."""
    starts = np.array([chunk.start for chunk in chunks], dtype=np.int64)
    counts = np.array([chunk.stop - chunk.start for chunk in chunks], dtype=np.int64)
    offset_deltas = np.arange(len(rows.values), dtype=np.int64) - np.repeat(starts, counts)
    if rows.timestamps_ms is None:
        firsts = lasts = np.full(len(chunks), now_ms, dtype=np.int64)
        deltas = None
    else:
        firsts = rows.timestamps_ms[starts]
        lasts = np.maximum.reduceat(rows.timestamps_ms, starts)
        deltas = rows.timestamps_ms - np.repeat(firsts, counts)
    joined = encode_records(rows, offset_deltas, deltas)
    offsets = byte_offsets(joined)
    data = memoryview(joined.buffers()[2]).cast("B")
    return [
        Encoded(chunk, data[offsets[chunk.start] : offsets[chunk.stop]], int(first), int(last))
        for chunk, first, last in zip(chunks, firsts, lasts, strict=True)
    ]


def encode_records(
    rows: Rows, offset_deltas: Integers, timestamp_deltas: Integers | None
) -> pa.Array:
    """Return a column of whole records."""
    value_lengths, value_sizes = lengths_and_sizes(rows.values)
    raw_values = zigzag(value_lengths)
    fields = [offset_deltas << 1]
    sizes = value_sizes + widths(raw_values) + widths(fields[0]) + 1
    if timestamp_deltas is not None:
        fields.insert(0, zigzag(timestamp_deltas))
        sizes += widths(fields[0])
    else:
        sizes += 1
    if rows.keys is not None:
        key_lengths, key_sizes = lengths_and_sizes(rows.keys)
        fields.append(zigzag(key_lengths))
        sizes += key_sizes + widths(fields[-1])
    else:
        sizes += 1
    sizes += 1 if rows.headers is None else lengths_and_sizes(rows.headers)[1]
    return _joined(rows, sizes, fields, raw_values, timed=timestamp_deltas is not None)


def _joined(
    rows: Rows, sizes: Integers, fields: list[Integers], raw_values: Integers, *, timed: bool
) -> pa.Array:
    attributes: list[Integers | int] = [0] if timed else [0, 0]
    before: list[Integers | int] = [sizes << 1, *attributes, *fields]
    suffix = pa.scalar(NO_HEADERS, rows.values.type) if rows.headers is None else rows.headers
    kind = rows.values.type
    if rows.keys is None:
        parts = [varint_column([*before, 1, raw_values], kind), rows.values, suffix]
    else:
        between = varint_column([raw_values], kind)
        parts = [varint_column(before, kind), rows.keys, between, rows.values, suffix]
    empty = pa.scalar(b"", kind)
    return pc.binary_join_element_wise(*parts, empty, null_handling="replace", null_replacement=b"")


def frame(
    encoded: Encoded, codec: Codec, level: int | None, producer: Producer, base_sequence: int
) -> bytearray:
    """Return the batch for the wire: compressed, with its header and checksum."""
    body = encoded.body if codec is Codec.NONE else compress(codec, encoded.body, level)
    batch = bytearray(HEADER_BYTES + len(body))
    # Through a view: assigning a slice to a bytearray would copy it first.
    memoryview(batch)[HEADER_BYTES:] = body
    header = BatchHeader(
        base_offset=0,
        length=len(batch) - LENGTH_OVERHEAD,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | (TRANSACTIONAL if producer.transactional else 0),
        last_offset_delta=encoded.records - 1,
        base_timestamp=encoded.first_timestamp_ms,
        max_timestamp=encoded.last_timestamp_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=base_sequence,
        record_count=encoded.records,
    )
    write_header(batch, header)
    return batch


def header_column(headers: pa.Array) -> pa.Array:
    """Return the headers of each row as they end a record: their count, then names and values.

    Rows with headers cost one join for each header; rows without headers cost a byte.
    """
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    counts = counts.astype(np.int64)
    flat = headers.flatten()
    names, values = as_binary(flat.field("key")), as_binary(flat.field("value"))
    if names.null_count:
        raise RowError(
            "Column headers has a header without a key; give each header a key, or "
            "leave such headers out"
        )
    name_lengths, _ = lengths_and_sizes(names)
    value_lengths, _ = lengths_and_sizes(values)
    pieces = pc.binary_join_element_wise(
        varint_column([zigzag(name_lengths)], names.type),
        names,
        varint_column([zigzag(value_lengths)], names.type),
        values,
        pa.scalar(b"", names.type),
        null_handling="replace",
        null_replacement=b"",
    )
    bounds = np.concatenate(([0], np.cumsum(counts)))
    ends = byte_offsets(pieces)[bounds]
    together = _binary_array(ends, pieces.buffers()[2], names.type)
    return pc.binary_join_element_wise(
        varint_column([counts << 1], names.type), together, pa.scalar(b"", names.type)
    )


def zigzag(numbers: Integers) -> Integers:
    """Return signed numbers in zigzag form: numbers with a small absolute value stay small."""
    return (numbers << 1) ^ (numbers >> 63)


def widths(raw: Integers) -> Integers:
    """Return how many bytes each number takes as a varint."""
    unsigned = raw.view(np.uint64)
    found = np.ones(len(raw), dtype=np.int64)
    top = int(unsigned.max(initial=0))
    for shift in range(7, 64, 7):
        if top >> shift == 0:
            break
        found += unsigned >= np.uint64(1 << shift)
    return found


def varint_column(fields: list[Integers | int], kind: pa.DataType) -> pa.Array:
    """Return a binary column: the varints of each row, one field after the other.

    A field that is a plain number is one byte, the same in all rows.
    """
    count = next(len(field) for field in fields if not isinstance(field, int))
    columns: list[Bytes] = []
    masks: list[npt.NDArray[np.bool_] | None] = []
    for field in fields:
        if isinstance(field, int):
            columns.append(np.full(count, field, dtype=np.uint8))
            masks.append(None)
        else:
            _add_varint(field.view(np.uint64), columns, masks)
    table = np.empty((count, len(columns)), dtype=np.uint8)
    for place, column in enumerate(columns):
        table[:, place] = column
    return _masked_column(table, masks, kind)


def _add_varint(
    raw: npt.NDArray[np.uint64],
    columns: list[Bytes],
    masks: list[npt.NDArray[np.bool_] | None],
) -> None:
    """Append the bytes of a varint, lowest first; a mask says which rows have a byte at all."""
    top = int(raw.max(initial=0))
    low = int(raw.min(initial=top))
    present: npt.NDArray[np.bool_] | None = None
    for place in range(VARINT_BYTES_MAX):
        bits = (raw >> np.uint64(7 * place)).astype(np.uint8) & np.uint8(0x7F)
        following = 7 * (place + 1)
        masks.append(present)
        if top >> following == 0:
            columns.append(bits)
            return
        if low >> following:
            columns.append(bits | MORE)
            continue
        present = raw >= np.uint64(1 << following)
        columns.append(bits | (present * MORE))


def _masked_column(
    table: Bytes, masks: list[npt.NDArray[np.bool_] | None], kind: pa.DataType
) -> pa.Array:
    count, width = table.shape
    if all(mask is None for mask in masks):
        offsets = np.arange(count + 1, dtype=np.int64) * width
        return _binary_array(offsets, pa.py_buffer(table), kind)
    chosen = np.ones((count, width), dtype=np.bool_)
    for place, mask in enumerate(masks):
        if mask is not None:
            chosen[:, place] = mask
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(chosen.sum(axis=1, dtype=np.int64), out=offsets[1:])
    return _binary_array(offsets, pa.py_buffer(table[chosen]), kind)


def _binary_array(offsets: Integers, data: pa.Buffer, kind: pa.DataType) -> pa.Array:
    width = np.int64 if pa.types.is_large_binary(kind) else np.int32
    buffers = [None, pa.py_buffer(offsets.astype(width)), data]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def as_binary(column: pa.Array) -> pa.Array:
    """Return a column of strings or bytes as bytes; nothing is copied."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        return column.cast(pa.large_binary()).cast(pa.binary())
    return column


def byte_offsets(column: pa.Array) -> Integers:
    """Return where each string starts in the column's data, and where the last ends."""
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    every = np.frombuffer(column.buffers()[1], dtype=width)
    return every[column.offset : column.offset + len(column) + 1].astype(np.int64)


def lengths_and_sizes(column: pa.Array) -> tuple[Integers, Integers]:
    """Return the lengths for the wire, with -1 for null, and the numbers of bytes that follow."""
    sizes = np.diff(byte_offsets(column))
    if column.null_count == 0:
        return sizes, sizes
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, -1, sizes), np.where(missing, 0, sizes)
