"""Record batches, version 2: the unit that travels from producer to disk to consumer as it is.

    0  base offset      8   length 12 bytes on   12  leader epoch   16  magic    17  crc
    21 attributes       23  last offset delta    27  base timestamp 35  max timestamp
    43 producer id      51  producer epoch       53  base sequence  57  record count
    61 records

The CRC-32C covers byte 21 to the end, so that base offset and leader epoch can be stamped in
place. The hot path reads headers alone; what touches single records is for compaction, exact
timestamp look-ups, and tools.
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

_OFFSET = struct.Struct(">q")
_CONTROL_KEY = struct.Struct(">hh")
_EPOCH_AT_12 = struct.Struct(">i")
_CRC_AT_17 = struct.Struct(">I")
_ATTRIBUTES_AT_21 = struct.Struct(">h")
_LENGTH_AT_8 = struct.Struct(">i")
_PRODUCER_AT_43 = struct.Struct(">qh")
ATTRIBUTES_AT = 22
"""The lower byte of the attributes. All that are defined are in it."""

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
        """The offset of the last record, or of the last there was before compaction."""
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
    """One record, with its place in the log made absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


# What `BatchHeader._make` does, without looking it up: this runs once a batch.
_new_header = tuple.__new__


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read a header; the buffer must hold all 61 bytes of it."""
    return _new_header(BatchHeader, HEADER.unpack_from(buffer, position))


def is_transactional(batch: Buffer) -> bool:
    """Tell whether bytes are a batch, as far as their number says, and part of a transaction."""
    return len(batch) >= HEADER_BYTES and bool(batch[ATTRIBUTES_AT] & TRANSACTIONAL)


def producer_of(batch: Buffer) -> tuple[int, int]:
    """Return the id and the epoch of the producer of a batch."""
    producer_id, producer_epoch = _PRODUCER_AT_43.unpack_from(batch, 43)
    return producer_id, producer_epoch


def checksum(batch: Buffer) -> int:
    """Compute the CRC-32C that the batch should carry."""
    return crc32c(memoryview(batch)[CRC_FROM:])


def verify(batch: Buffer, header: BatchHeader) -> None:
    """Raise `CorruptBatchError` unless the batch is whole and matches its checksum."""
    if header.magic != MAGIC:
        raise CorruptBatchError(
            f"magic {header.magic} at offset {header.base_offset}; only 2 is known"
        )
    if header.size != len(batch):
        raise CorruptBatchError(f"batch of {len(batch)} bytes says it has {header.size}")
    if checksum(batch) != header.crc:
        raise CorruptBatchError(f"checksum mismatch at offset {header.base_offset}")


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, epoch: int) -> None:
    """Set where the batch starts and who leads: the checksum covers neither."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _EPOCH_AT_12.pack_into(buffer, position + 12, epoch)


def stamp_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Mark every record as appended now: no recompression, only a new checksum."""
    (attributes,) = _ATTRIBUTES_AT_21.unpack_from(batch, 21)
    _ATTRIBUTES_AT_21.pack_into(batch, 21, attributes | LOG_APPEND_TIME)
    _OFFSET.pack_into(batch, 35, now_ms)
    _CRC_AT_17.pack_into(batch, 17, checksum(batch))


def batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Walk whole batches that lie one after the other; a cut one at the end is left out."""
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
    """Open a batch and walk its records."""
    if header.codec > Codec.ZSTD:
        raise CorruptBatchError(f"codec {header.codec} is not known")
    body = decompress(Codec(header.codec), memoryview(batch)[HEADER_BYTES:], limit)
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
                raise CorruptBatchError("a record is not as long as it says")
            yield record
        if position != len(body):
            raise CorruptBatchError("bytes follow the last record of a batch")
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatchError("a record is cut short") from error


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
"""The varints that nearly all lengths are."""
NULL = b"\x01"
"""The varint -1, the length of nothing."""


def build(  # noqa: PLR0913 - a batch has this many facts
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
    """Make a batch of records whose offsets ascend; gaps are kept, as compaction needs."""
    items = list(content)
    first = items[0].offset if base_offset is None else base_offset
    last = items[-1].offset if last_offset is None else last_offset
    base_time = items[0].timestamp if base_timestamp is None else base_timestamp
    body = bytearray()
    for record in items:
        _write_record(body, record, first, base_time)
    packed = compress(codec, body)
    batch = bytearray(HEADER_BYTES) + packed
    HEADER.pack_into(
        batch,
        0,
        first,
        len(batch) - LENGTH_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        (attributes & ~CODEC_MASK) | codec,
        last - first,
        base_time,
        max((record.timestamp for record in items), default=base_time),
        producer_id,
        producer_epoch,
        base_sequence,
        len(items),
    )
    _CRC_AT_17.pack_into(batch, 17, checksum(batch))
    return batch


def build_own(
    pairs: Iterable[tuple[bytes, bytes | None]],
    timestamp: int,
    *,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytearray:
    """Make what `build` makes of keys and values without headers, all of one time, but quickly.

    Coordinators write such batches, a few records at a time and very often.
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
    """Return the records of such a batch, and how many they are."""
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
    """Put a header in front of such records."""
    length = HEADER_BYTES - LENGTH_OVERHEAD + len(body)
    facts = (timestamp, timestamp, producer_id, producer_epoch, -1, count)
    batch = bytearray(HEADER.pack(0, length, -1, MAGIC, 0, attributes, count - 1, *facts))
    batch += body
    _CRC_AT_17.pack_into(batch, 17, checksum(batch))
    return batch


def _size(number: int) -> bytes:
    """Return a number that is not negative as a varint."""
    if number < len(SHORT):
        return SHORT[number]
    target = bytearray()
    write_varint(target, number)
    return bytes(target)


def control_type(batch: Buffer, header: BatchHeader) -> int:
    """Return what a control batch says: 0 abort, 1 commit."""
    first = next(iter(records(batch, header)), None)
    if first is None or first.key is None or len(first.key) < _CONTROL_KEY.size:
        raise CorruptBatchError(f"a control batch at offset {header.base_offset} says nothing")
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
    """Return the same batch around its records as another codec has packed them."""
    packed = bytearray(memoryview(batch)[:HEADER_BYTES]) + content
    _LENGTH_AT_8.pack_into(packed, 8, len(packed) - LENGTH_OVERHEAD)
    _ATTRIBUTES_AT_21.pack_into(packed, 21, (header.attributes & ~CODEC_MASK) | codec)
    _CRC_AT_17.pack_into(packed, 17, checksum(packed))
    return packed
