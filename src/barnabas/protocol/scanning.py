"""Scans the encoded records of a batch without building `Record` objects.

A record begins with its length, one byte of attributes, its timestamp and its offset, both as
differences from those of its batch; then key, value and headers follow, each after its length. All
numbers are zigzag varints: the lowest bit is the sign, and -1 is the length of a null value.

Each function scans a limited number of records and returns the position of the next one, so that a
large batch can be scanned in several events (`model/steps.py`).
"""

from collections.abc import Iterator
from functools import partial

from barnabas.model.errors import CorruptBatchError, TooLargeError
from barnabas.model.ports import Buffer
from barnabas.model.steps import Steps
from barnabas.protocol.compression import Codec, compress, decompress

RECORD_BYTES_MIN = 7
"""Length, attributes, timestamp, offset, null key, null value, header count: one byte each."""
SMALL_PACKED_BYTES = 16 * 1024
SMALL_UNPACKED_BYTES = 64 * 1024
"""Up to this size, records are compressed and decompressed on the event loop."""

Deltas = tuple[int, int]
"""The timestamp and offset of a record, as differences from those of its batch."""


def unpacked(codec: Codec, content: Buffer, limit: int) -> Steps[bytes]:
    """Decompress records: a small batch at once, a large one on a thread.

    Raises `TooLargeError` if they are larger than the limit.
    """
    if codec is Codec.NONE:
        return decompress(codec, content, limit)
    if len(content) <= SMALL_PACKED_BYTES:
        try:
            return decompress(codec, content, min(limit, SMALL_UNPACKED_BYTES))
        except TooLargeError:
            pass  # the compressed batch is small, but not its content
    body: bytes = yield partial(decompress, codec, content, limit)
    return body


def packed(codec: Codec, body: Buffer, level: int | None) -> Steps[bytes]:
    """Compress records: a small batch at once, a large one on a thread."""
    if len(body) <= SMALL_PACKED_BYTES or codec is Codec.NONE:
        return compress(codec, body, level)
    content: bytes = yield partial(compress, codec, body, level)
    return content


def first_timestamp(
    body: bytes, position: int, count: int, least: int, offsets: range
) -> tuple[int, Deltas | None]:
    """Find the first record whose timestamp delta is at least `least`, among `count` records.

    Records with offsets outside the range are skipped. Returns the position after the last record
    that was read, and the record that was found.
    """
    try:
        for _ in range(count):
            length = body[position]
            position += 1
            if length >= 0x80:
                length, position = _rest(body, position, length)
            if length & 1:
                raise CorruptBatchError("a record has a negative length")
            end = position + (length >> 1)
            raw = body[position + 1]
            position += 2
            if raw >= 0x80:
                raw, position = _rest(body, position, raw)
            delta = (raw >> 1) ^ -(raw & 1)
            if delta >= least:
                offset = _offset(body, position, end)
                if offset in offsets:
                    return end, (delta, offset)
            position = end
    except IndexError as error:
        raise CorruptBatchError("a record is truncated") from error
    return position, None


def largest_timestamp(
    body: bytes, position: int, count: int, best: Deltas | None, offsets: range
) -> tuple[int, Deltas | None]:
    """Find the first record with the largest timestamp, among `count` records and `best`.

    Records with offsets outside the range are skipped. Returns the next position and the record.
    """
    try:
        for _ in range(count):
            length = body[position]
            position += 1
            if length >= 0x80:
                length, position = _rest(body, position, length)
            if length & 1:
                raise CorruptBatchError("a record has a negative length")
            end = position + (length >> 1)
            raw = body[position + 1]
            position += 2
            if raw >= 0x80:
                raw, position = _rest(body, position, raw)
            delta = (raw >> 1) ^ -(raw & 1)
            if best is None or delta > best[0]:
                offset = _offset(body, position, end)
                if offset in offsets:
                    best = (delta, offset)
            position = end
    except IndexError as error:
        raise CorruptBatchError("a record is truncated") from error
    return position, best


def skip_records(body: bytes, position: int, count: int) -> int:
    """Skip records by their lengths; return the position of the next one."""
    try:
        for _ in range(count):
            length = body[position]
            position += 1
            if length >= 0x80:
                length, position = _rest(body, position, length)
            if length & 1:
                raise CorruptBatchError("a record has a negative length")
            position += length >> 1
    except IndexError as error:
        raise CorruptBatchError("a record is truncated") from error
    return position


def check_end(body: bytes, position: int) -> None:
    """Raise `CorruptBatchError` unless the records end at the end of the batch."""
    if position != len(body):
        raise CorruptBatchError("the records do not fill their batch exactly")


def portions(count: int, size: int) -> Iterator[int]:
    """Divide a count into portions of at most `size`."""
    while count > 0:
        yield min(count, size)
        count -= size


class RecordCheck:
    """Checks that records can be read, and finds those out of a range of time or without a key."""

    __slots__ = (
        "_body",
        "_count",
        "_end",
        "_headers",
        "_named_max",
        "_number",
        "_position",
        "_times",
        "out_of_range",
        "out_of_range_count",
        "without_key",
        "without_key_count",
    )

    def __init__(
        self,
        body: bytes,
        position: int,
        count: int,
        times: tuple[int, int, int] | None,
        named_max: int,
    ) -> None:
        """Begin with the records from a position on.

        `times` are the lowest and the highest timestamp and the one that is always taken, each as
        its distance from the batch's; None if any is accepted. Few records are named.
        """
        self._body = body
        self._position = position
        self._count = count
        self._times = times
        self._named_max = named_max
        self._number = 0
        self._headers = 0  # headers of the current record that are not checked yet
        self._end = 0  # the end of the current record
        self.out_of_range: list[tuple[int, int]] = []
        """The index of each record in its batch, and its timestamp delta."""
        self.out_of_range_count = 0
        self.without_key: list[int] = []
        self.without_key_count = 0

    def look(self, units: int) -> bool:
        """Check up to `units` records and headers; return whether more remain.

        Raises `CorruptBatchError` if they are invalid.
        """
        try:
            while units > 0 and self._number < self._count:
                units -= self._skip_headers(units) if self._headers else self._look(units)
        except (IndexError, UnicodeDecodeError) as error:
            raise CorruptBatchError("a record is truncated") from error
        if self._number < self._count:
            return True
        check_end(self._body, self._position)
        return False

    def _look(self, units: int) -> int:  # noqa: C901, PLR0912, PLR0915 - calls would double its cost
        """Check records up to the first one with headers; return how many were read."""
        body, position, number = self._body, self._position, self._number
        low, high, taken = self._times or (0, 0, 0)
        checks_time = self._times is not None
        last = min(self._count, number + units)
        first = number
        while number < last:
            length = body[position]
            position += 1
            if length >= 0x80:
                length, position = _rest(body, position, length)
            if length & 1:
                raise CorruptBatchError("a record has a negative length")
            end = position + (length >> 1)
            raw = body[position + 1]
            position += 2
            if raw >= 0x80:
                raw, position = _rest(body, position, raw)
            if checks_time:
                delta = (raw >> 1) ^ -(raw & 1)
                if not low <= delta <= high and delta != taken:
                    self._note_time(number, delta)
            raw = body[position]  # the offset
            position += 1
            if raw >= 0x80:
                _, position = _rest(body, position, raw)
            raw = body[position]  # the key
            position += 1
            if raw >= 0x80:
                raw, position = _rest(body, position, raw)
            if raw & 1:
                self._note_key(number)
            else:
                position += raw >> 1
            raw = body[position]  # the value
            position += 1
            if raw >= 0x80:
                raw, position = _rest(body, position, raw)
            if not raw & 1:
                position += raw >> 1
            raw = body[position]  # how many headers
            position += 1
            if raw:
                if raw >= 0x80:
                    raw, position = _rest(body, position, raw)
                if raw & 1:
                    raise CorruptBatchError("a record has a negative number of headers")
                self._headers, self._end = raw >> 1, end
                self._position, self._number = position, number
                return number - first + 1
            if position != end:
                raise CorruptBatchError("the length of a record does not match its content")
            number += 1
        self._position, self._number = position, number
        return number - first

    def _skip_headers(self, units: int) -> int:
        """Check headers of the current record; return how many."""
        body, position = self._body, self._position
        count = min(units, self._headers)
        for _ in range(count):
            name, position = _field(body, position)
            name.decode()
            _, position = _field(body, position)
        self._headers -= count
        self._position = position
        if not self._headers:
            if position != self._end:
                raise CorruptBatchError("the length of a record does not match its content")
            self._number += 1
        return count

    def _note_time(self, number: int, delta: int) -> None:
        self.out_of_range_count += 1
        if len(self.out_of_range) < self._named_max:
            self.out_of_range.append((number, delta))

    def _note_key(self, number: int) -> None:
        self.without_key_count += 1
        if len(self.without_key) < self._named_max:
            self.without_key.append(number)


def _rest(body: bytes, position: int, byte: int) -> tuple[int, int]:
    """Read the rest of a varint after its first byte; the lowest bit of the result is the sign."""
    raw, shift = byte & 0x7F, 7
    while byte & 0x80:
        if shift > 63:
            raise CorruptBatchError("a varint is longer than ten bytes")
        byte = body[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    return raw, position


def _offset(body: bytes, position: int, end: int) -> int:
    raw, position = _rest(body, position + 1, body[position])
    if position > end:
        raise CorruptBatchError("the length of a record does not match its content")
    return (raw >> 1) ^ -(raw & 1)


def _field(body: bytes, position: int) -> tuple[bytes, int]:
    """Return the name or the value of a header, and the position after it."""
    length, position = _rest(body, position + 1, body[position])
    if length & 1:
        return b"", position
    end = position + (length >> 1)
    if end > len(body):
        raise CorruptBatchError("a field reaches past the end of its batch")
    return body[position:end], end
