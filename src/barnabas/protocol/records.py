"""Reads and builds record batches, version 2.

A batch goes from the producer to disk and to consumers unchanged. Its layout:

    0  base offset      8   length 12 bytes on   12  leader epoch   16  magic    17  crc
    21 attributes       23  last offset delta    27  base timestamp 35  max timestamp
    43 producer id      51  producer epoch       53  base sequence  57  record count
    61 records

The CRC-32C covers byte 21 to the end, so that base offset and leader epoch can be stamped in
place. Produce and Fetch read only headers; compaction, exact timestamp lookups and tools read
single records.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Buffer
from barnabas.protocol.compression import OUTPUT_BYTES_MAX, Codec, compress, decompress
from barnabas.protocol.crc import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_OVERHEAD = 12  # the base offset and the length itself are not counted in the length
CRC_FROM = 21
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
IN_TRANSACTION = TRANSACTIONAL | CONTROL
DELETE_HORIZON = 0x40

MAGIC_AT = 16
ATTRIBUTES_AT = 22
"""The lower byte of the attributes. All that are defined are in it."""
_LENGTH_AT = 8
_EPOCH_AT = 12
_CRC_AT = 17
_BOTH_ATTRIBUTES_AT = CRC_FROM
_MAX_TIMESTAMP_AT = 35
_PRODUCER_AT = 43

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_PRODUCER = struct.Struct(">qh")
_CONTROL_KEY = struct.Struct(">hh")

assert HEADER_BYTES == 61


class BatchHeader(NamedTuple):
    """The fixed part of a batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """All bytes of the batch, header and records."""
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record, which compaction may have removed."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """The codec bits; 5 to 7 are not defined."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker rather than users' records."""
        return bool(self.attributes & CONTROL)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, wrapping after 2^31 - 1."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


# `BatchHeader._make` without the attribute lookup, since this runs for every batch.
_new_header = tuple.__new__


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read a header; the buffer must hold all 61 bytes of it."""
    return _new_header(BatchHeader, HEADER.unpack_from(buffer, position))


def is_transactional(batch: Buffer) -> bool:
    """Tell whether a batch is transactional; bytes shorter than a header are not."""
    return len(batch) >= HEADER_BYTES and bool(batch[ATTRIBUTES_AT] & TRANSACTIONAL)


def producer_of(batch: Buffer) -> tuple[int, int]:
    """Return the id and the epoch of the producer of a batch."""
    producer_id, producer_epoch = _PRODUCER.unpack_from(batch, _PRODUCER_AT)
    return producer_id, producer_epoch


def checksum(batch: Buffer) -> int:
    """Compute the CRC-32C that the batch should carry."""
    return crc32c(memoryview(batch)[CRC_FROM:])


def write_checksum(batch: bytearray | memoryview) -> None:
    """Write the CRC-32C of a batch into its header."""
    _UINT32.pack_into(batch, _CRC_AT, checksum(batch))


def write_header(batch: bytearray, header: BatchHeader) -> None:
    """Write a header in front of the records of a batch, with the checksum that belongs there."""
    HEADER.pack_into(batch, 0, *header)
    write_checksum(batch)


def verify(batch: Buffer, header: BatchHeader) -> None:
    """Raise `CorruptBatchError` unless the batch is whole and matches its checksum."""
    if header.magic != MAGIC:
        raise CorruptBatchError(
            f"magic {header.magic} at offset {header.base_offset}; only 2 is supported"
        )
    if header.size != len(batch):
        raise CorruptBatchError(
            f"batch of {len(batch)} bytes has the length {header.size} in its header"
        )
    if checksum(batch) != header.crc:
        raise CorruptBatchError(f"checksum mismatch at offset {header.base_offset}")


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, epoch: int) -> None:
    """Set base offset and leader epoch, which the checksum does not cover."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + _EPOCH_AT, epoch)


def stamp_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Set the append time of every record; only the checksum has to be computed again."""
    (attributes,) = _INT16.unpack_from(batch, _BOTH_ATTRIBUTES_AT)
    _INT16.pack_into(batch, _BOTH_ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _INT64.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    write_checksum(batch)


def batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield consecutive whole batches; a truncated batch at the end is ignored."""
    view = memoryview(buffer)
    position = 0
    while position + HEADER_BYTES <= len(view):
        header = parse_header(view, position)
        if header.length < HEADER_BYTES - LENGTH_OVERHEAD:
            raise CorruptBatchError(f"a batch of {header.size} bytes is shorter than its header")
        if position + header.size > len(view):
            return
        yield header, view[position : position + header.size]
        position += header.size


def records(batch: Buffer, header: BatchHeader, limit: int = OUTPUT_BYTES_MAX) -> Iterator[Record]:
    """Decompress a batch and yield its records."""
    yield from records_in(unpacked_body(batch, header, limit), header)


def unpacked_body(batch: Buffer, header: BatchHeader, limit: int = OUTPUT_BYTES_MAX) -> bytes:
    """Return the records of a batch as bytes, decompressed."""
    if header.codec > Codec.ZSTD:
        raise CorruptBatchError(f"codec {header.codec} is unknown")
    return decompress(Codec(header.codec), memoryview(batch)[HEADER_BYTES:], limit)


def records_in(body: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of a batch that is decompressed."""
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = read_varint(body, position)
            end = position + length
            if length < 0 or end > len(body):
                raise CorruptBatchError("a record reaches past the end of its batch")
            record, position = _record(body, position, header, append_time)
            if position != end:
                raise CorruptBatchError("the length of a record does not match its content")
            yield record
        if position != len(body):
            raise CorruptBatchError("bytes follow the last record of a batch")
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatchError("a record is truncated") from error


def _record(
    body: bytes, position: int, header: BatchHeader, append_time: int | None
) -> tuple[Record, int]:
    timestamp_delta, position = read_varint(body, position + 1)
    offset_delta, position = read_varint(body, position)
    key, position = _read_bytes(body, position)
    value, position = _read_bytes(body, position)
    count, position = read_varint(body, position)
    if count < 0:
        raise CorruptBatchError(f"a record has {count} headers")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(body, position)
        content, position = _read_bytes(body, position)
        headers.append(((name or b"").decode(), content))
    timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
    offset = header.base_offset + offset_delta
    return Record(offset, timestamp, key, value, tuple(headers)), position


def _read_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(body, position)
    if length < 0:
        return None, position
    if position + length > len(body):
        raise CorruptBatchError("a field reaches past the end of its batch")
    return body[position : position + length], position + length


def read_varint(body: bytes, position: int) -> tuple[int, int]:
    """Read a zigzag varint of up to 64 bits."""
    byte = body[position]
    position += 1
    raw, shift = byte & 0x7F, 7
    while byte & 0x80:
        if shift > 63:
            raise CorruptBatchError("a varint is longer than ten bytes")
        byte = body[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    return (raw >> 1) ^ -(raw & 1), position


def write_varint(target: bytearray, value: int) -> None:
    """Append a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    while raw & ~0x7F:
        target.append((raw & 0x7F) | 0x80)
        raw >>= 7
    target.append(raw)


def _short() -> Iterator[bytes]:
    for number in range(1 << 10):
        target = bytearray()
        write_varint(target, number)
        yield bytes(target)


SHORT = tuple(_short())
"""The varints of small numbers, which nearly all lengths are."""
NULL = b"\x01"
"""The varint -1, the length of a null key or value."""


def build(  # noqa: PLR0913 - a batch header has this many fields
    content: Iterable[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """Build a batch of records in ascending order of offsets; gaps between offsets are kept."""
    items = list(content)
    first = items[0].offset if base_offset is None else base_offset
    last = items[-1].offset if last_offset is None else last_offset
    base_time = items[0].timestamp if base_timestamp is None else base_timestamp
    body = bytearray()
    for record in items:
        _write_record(body, record, first, base_time)
    packed = compress(codec, body)
    batch = bytearray(HEADER_BYTES) + packed
    header = BatchHeader(
        base_offset=first,
        length=len(batch) - LENGTH_OVERHEAD,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=(attributes & ~CODEC_MASK) | codec,
        last_offset_delta=last - first,
        base_timestamp=base_time,
        max_timestamp=max((record.timestamp for record in items), default=base_time),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(items),
    )
    write_header(batch, header)
    return batch


def build_own(
    pairs: Iterable[tuple[bytes, bytes | None]],
    timestamp: int,
    *,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytearray:
    """Build a batch from keys and values without headers, all with one timestamp.

    The result is that of `build`, but faster: coordinators often write such small batches.
    """
    body, count = own_body(pairs)
    return seal_own(
        body,
        count,
        timestamp,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def own_body(pairs: Iterable[tuple[bytes, bytes | None]]) -> tuple[bytes, int]:
    """Return the encoded records of such a batch, and their count."""
    parts: list[bytes] = []
    number = -1
    for number, (key, value) in enumerate(pairs):
        offset = _size(number)
        key_size = _size(len(key))
        value_size = NULL if value is None else _size(len(value))
        content = value or b""
        size = len(offset) + len(key_size) + len(key) + len(value_size) + len(content) + 3
        parts += (_size(size), b"\0\0", offset, key_size, key, value_size, content, b"\0")
    return b"".join(parts), number + 1


def seal_own(
    body: bytes,
    count: int,
    timestamp: int,
    *,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytearray:
    """Return a batch: a header and these records."""
    length = HEADER_BYTES - LENGTH_OVERHEAD + len(body)
    facts = (timestamp, timestamp, producer_id, producer_epoch, -1, count)
    batch = bytearray(HEADER.pack(0, length, -1, MAGIC, 0, attributes, count - 1, *facts))
    batch += body
    write_checksum(batch)
    return batch


def _size(number: int) -> bytes:
    """Return a non-negative number as a varint."""
    if number < len(SHORT):
        return SHORT[number]
    target = bytearray()
    write_varint(target, number)
    return bytes(target)


def control_type(batch: Buffer, header: BatchHeader) -> int:
    """Return the type of a control batch: 0 abort, 1 commit."""
    first = next(iter(records(batch, header)), None)
    if first is None or first.key is None or len(first.key) < _CONTROL_KEY.size:
        raise CorruptBatchError(f"control batch at offset {header.base_offset} is empty")
    kind: int = _CONTROL_KEY.unpack_from(first.key)[1]
    return kind


def _write_record(body: bytearray, record: Record, base_offset: int, base_time: int) -> None:
    content = bytearray(b"\0")
    write_varint(content, record.timestamp - base_time)
    write_varint(content, record.offset - base_offset)
    _write_bytes(content, record.key)
    _write_bytes(content, record.value)
    write_varint(content, len(record.headers))
    for name, value in record.headers:
        _write_bytes(content, name.encode())
        _write_bytes(content, value)
    write_varint(body, len(content))
    body += content


def _write_bytes(content: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(content, -1)
        return
    write_varint(content, len(value))
    content += value


def repacked(batch: Buffer, header: BatchHeader, codec: Codec, content: bytes) -> bytearray:
    """Return the batch with its records as another codec has compressed them."""
    packed = bytearray(memoryview(batch)[:HEADER_BYTES]) + content
    _INT32.pack_into(packed, _LENGTH_AT, len(packed) - LENGTH_OVERHEAD)
    _INT16.pack_into(packed, _BOTH_ATTRIBUTES_AT, (header.attributes & ~CODEC_MASK) | codec)
    write_checksum(packed)
    return packed
