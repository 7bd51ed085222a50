"""Reads the batches of a segment file one by one, with or without checking them."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Disk, File
from barnabas.protocol.records import (
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    parse_header,
    verify,
)

WINDOW_BYTES = 1024 * 1024
LOOK_BYTES = 4096
LOOK_BYTES_MAX = 16 * LOOK_BYTES
BATCH_BYTES_MAX = 1 << 30


class Located(NamedTuple):
    """A batch and where it starts."""

    position: int
    header: BatchHeader


def header_at(file: File, position: int, end: int) -> BatchHeader:
    """Read the header of the batch at a position; raise `CorruptBatchError` if it is invalid."""
    return plausible(file.read(position, HEADER_BYTES), 0, end - position)


def plausible(content: bytes | memoryview, position: int, room: int) -> BatchHeader:
    """Parse a header; raise if its numbers are impossible within the rest of the file."""
    if room < HEADER_BYTES or len(content) - position < HEADER_BYTES:
        raise CorruptBatchError("the file ends within a batch header")
    header = parse_header(content, position)
    if not HEADER_BYTES - LENGTH_OVERHEAD <= header.length <= BATCH_BYTES_MAX:
        raise CorruptBatchError(f"a batch claims {header.length} bytes")
    if header.magic != MAGIC or header.last_offset_delta < 0 or header.base_offset < 0:
        raise CorruptBatchError("what is here is not a record batch of version 2")
    if header.size > room:
        raise CorruptBatchError(f"a batch of {header.size} bytes ends after {room}")
    return header


def walk(file: File, start: int, end: int, *, check: bool) -> Iterator[Located]:
    """Yield every batch between two positions; raise `CorruptBatchError` at the first bad one.

    With `check` the whole batch is read and its checksum compared; without it, only headers.
    """
    position, window_start, window = start, start, b""
    ahead = WINDOW_BYTES if check else LOOK_BYTES
    while position < end:
        needed = HEADER_BYTES
        while True:
            if position + needed > window_start + len(window):
                span = min(max(needed, ahead), end - position)
                window_start, window = position, file.read(position, span)
            header = plausible(window, position - window_start, end - position)
            if not check or needed == header.size:
                break
            needed = header.size
        if check:
            inner = position - window_start
            verify(memoryview(window)[inner : inner + header.size], header)
        elif header.size < ahead < LOOK_BYTES_MAX:
            ahead *= 2  # many small batches: fewer and larger reads
        yield Located(position, header)
        position += header.size


def batches_of(file: File, size: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield every batch of a file, whole; raise `CorruptBatchError` at the first bad one."""
    for position, header in walk(file, 0, size, check=True):
        yield header, file.read(position, header.size)


def first_damage(disk: Disk, path: str, size: int) -> int | None:
    """Return where a file is first damaged; None if that much is good, or the file is gone."""
    end = 0
    try:
        file = disk.open(path)
        for position, header in walk(file, 0, min(size, file.size()), check=True):
            end = position + header.size
    except CorruptBatchError:
        return end
    except FileNotFoundError:
        return None
    return None


def in_order(
    batches: Iterator[Located], expected: int, limit: int, *, dense: bool = False
) -> Iterator[Located]:
    """Yield batches up to the first that is damaged or whose offsets cannot be right.

    Offsets ascend up to a limit, and no checksum covers them. If no batch was ever removed between
    them (`dense`), each begins where the previous one ends. Otherwise, if two overlap, the one that
    also follows a gap is the wrong one; without a gap it is the later one, from an older file.
    """
    held: Located | None = None
    try:
        for found in batches:
            header = found.header
            if header.last_offset > limit or (held is None and header.base_offset < expected):
                break
            if held is not None:
                if header.base_offset <= held.header.last_offset:
                    held = None if held.header.base_offset > expected else held
                    break
                yield held
                expected = held.header.last_offset + 1
            if dense and header.base_offset > expected:
                held = None
                break
            held = found
    except CorruptBatchError:
        pass
    if held is not None:
        yield held
