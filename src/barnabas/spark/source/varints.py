"""Decodes the varints of many records at once.

Record batches are scanned twice. First the lengths give the start of each record: every length
leads to the next, so this is a loop, except for runs of records of the same length, which one
comparison detects. Then each field of all records is read together, by gathering bytes at an array
of positions.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from barnabas.model.errors import CorruptBatchError

Positions: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

STRIDE_RECORDS = 64
"""How many records are scanned before the next check for a run of the same length."""
VARINT_BYTES_MAX = 10


def record_starts(content: Bytes, body: memoryview, start: int, end: int) -> Positions:
    """Return where each record of a batch starts, from the length that leads to the next.

    A batch that log compaction has emptied has no records.
    """
    pieces: list[Positions] = []
    position = start
    try:
        while position < end:
            piece, position = _equal_length_run(content, position, end) or _walk(
                body, position, end
            )
            pieces.append(piece)
    except IndexError:
        raise CorruptBatchError("a record is cut short") from None
    if position != end:
        raise CorruptBatchError("a record reaches past the end of its batch")
    if not pieces:
        return np.empty(0, np.int64)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _walk(body: memoryview, position: int, end: int) -> tuple[Positions, int]:
    """Follow lengths record by record, for a while."""
    starts: list[int] = []
    append = starts.append
    for _ in range(STRIDE_RECORDS):
        if position >= end:
            break
        append(position)
        first = body[position]
        if first < 0x80:
            position += 1 + (first >> 1)
            continue
        second = body[position + 1]
        if second < 0x80:
            position += (first >> 1) + (second << 6) - 62
        else:
            position += sum(_length(body, position))
    return np.fromiter(starts, np.int64, len(starts)), position


def _length(body: memoryview | Bytes, position: int) -> tuple[int, int]:
    """Return how many bytes a record's length takes, and the length."""
    raw = 0
    for size in range(VARINT_BYTES_MAX):
        byte = int(body[position + size])
        raw |= (byte & 0x7F) << (7 * size)
        if byte < 0x80:
            return size + 1, raw >> 1
    raise CorruptBatchError("a varint is longer than ten bytes")


def _equal_length_run(content: Bytes, position: int, end: int) -> tuple[Positions, int] | None:
    """Return a run of records of equal length; None if it is too short to be worth it."""
    size, length = _length(content, position)
    step = size + length
    far = position + STRIDE_RECORDS * step
    if far >= end or content[far] != content[position]:
        return None
    starts = np.arange(position, end + 1 - size, step, dtype=np.int64)
    same = content[starts] == content[position]
    for byte in range(1, size):
        same &= content[starts + byte] == content[position + byte]
    count = len(starts) if same.all() else int(same.argmin())
    if count < STRIDE_RECORDS:
        return None
    return starts[:count], position + count * step


def read_varints(content: Bytes, positions: Positions) -> tuple[Positions, Positions]:
    """Return the zigzag varints at positions, and the positions after them."""
    first = content[positions]
    raw = (first & 0x7F).astype(np.uint64)
    after = positions + 1
    longer = np.flatnonzero(first & 0x80)
    shift = 7
    while len(longer):
        if shift >= 7 * VARINT_BYTES_MAX:
            raise CorruptBatchError("a varint is longer than ten bytes")
        following = content[after[longer]]
        raw[longer] |= (following & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[(following & 0x80) != 0]
        shift += 7
    decoded = (raw >> np.uint64(1)) ^ (np.uint64(0) - (raw & np.uint64(1)))
    return decoded.view(np.int64), after
