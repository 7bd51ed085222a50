"""A disk queue for messages that wait for a broker, bounded in bytes.

A segment is a file of up to `SEGMENT_BYTES`. Messages are appended to the newest; the oldest is
sent as a whole and removed once all of it is delivered, so that a crash repeats at most one
segment. At the limit the oldest segment is dropped, since newer messages are more useful.

    segment = record...      record = length (4 bytes), CRC-32 (4 bytes), letter

Each record is written by one call. A record that a crash truncated fails its checksum: the segment
ends there.
"""

import fcntl
import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SEGMENT_BYTES = 1 << 20
SEGMENTS_MIN = 8
"""The least number of segments under a small limit: a drop loses one of them."""
SUFFIX = ".spool"
LOCK_NAME = "lock"
_FRAME = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_NO_KEY = 0xFFFFFFFF


class SpoolError(Exception):
    """The folder cannot be used; the text says what to change."""


class Letter(NamedTuple):
    """A message and its topic."""

    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


@dataclass
class Segment:
    """The state of one file."""

    size: int = 0
    messages: int = 0


def pack(letter: Letter) -> bytes:
    """Return a record: the frame and the letter."""
    parts = [_field(letter.topic.encode())]
    parts.append(_LENGTH.pack(_NO_KEY) if letter.key is None else _field(letter.key))
    parts.append(_field(letter.value))
    for name, value in letter.headers:
        parts += [_field(name.encode()), _field(value)]
    body = b"".join(parts)
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def unpack(data: bytes) -> Iterator[Letter]:
    """Return the letters of a segment, up to the first incomplete record."""
    at = 0
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        if len(body) != length or zlib.crc32(body) != checksum:
            return
        yield _letter(body)
        at += _FRAME.size + length


class Spool:
    """The queue in a folder, which one process at a time may use."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Open the queue with the messages of earlier processes."""
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.trouble = ""
        """The reason why the last message could not be written."""
        self._segment_bytes = min(SEGMENT_BYTES, limit_bytes // SEGMENTS_MIN)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / LOCK_NAME).open("ab")
        except OSError as error:
            raise SpoolError(f"{folder} cannot be a spool ({error.strerror})") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise SpoolError(
                f"Another collector uses the spool {folder}; name another folder"
            ) from error
        self.damaged_bytes = 0
        """The bytes that were truncated by a crash or lost by a disk."""
        self._open: tuple[int, io.FileIO] | None = None
        self._sending: int | None = None
        self._segments = {number: self._look(number) for number in self._numbers()}
        self.messages = sum(each.messages for each in self._segments.values())
        self.size = sum(each.size for each in self._segments.values())
        """The bytes on disk."""
        self._next = max(self._segments, default=0) + 1
        for number in [each for each, found in self._segments.items() if not found.messages]:
            self._delete(number)

    def append(self, letter: Letter) -> int:
        """Store a message; return how many were dropped, which may include this one."""
        record = pack(letter)
        dropped = self._make_room(len(record))
        if self.size + len(record) > self.limit_bytes:
            return dropped + 1
        try:
            number, stream = self._writable()
            written = stream.write(record)
        except OSError as error:
            self.trouble = f"{self.folder}: {error.strerror}"
            return dropped + 1
        segment = self._segments[number]
        if written != len(record):  # the disk is full
            stream.truncate(segment.size)
            self.trouble = f"{self.folder}: no space left"
            return dropped + 1
        segment.size += len(record)
        segment.messages += 1
        self.size += len(record)
        self.messages += 1
        if segment.size >= self._segment_bytes:
            self._seal()
        return dropped

    def oldest(self) -> list[Letter]:
        """Return the messages of the oldest segment, which `remove` removes, or an empty list."""
        number = next(iter(self._segments), None)
        if number is None:
            return []
        if self._open is not None and self._open[0] == number:
            self._seal()
        self._sending = number
        return list(unpack(self._path(number).read_bytes()))

    def remove(self) -> int:
        """Remove the segment that `oldest` returned; return how many messages it had."""
        assert self._sending is not None, "no segment was asked for"
        number, self._sending = self._sending, None
        return self._delete(number)

    def close(self) -> None:
        """Release the folder; the next process sends its messages."""
        self._seal()
        self._lock.close()

    def _make_room(self, size: int) -> int:
        dropped = 0
        while self.size + size > self.limit_bytes:
            number = next((each for each in self._segments if each != self._sending), None)
            if number is None:
                break
            dropped += self._delete(number)
        return dropped

    def _delete(self, number: int) -> int:
        if self._open is not None and self._open[0] == number:
            self._seal()
        self._path(number).unlink(missing_ok=True)
        gone = self._segments.pop(number)
        self.size -= gone.size
        self.messages -= gone.messages
        return gone.messages

    def _writable(self) -> tuple[int, io.FileIO]:
        if self._open is None:
            stream = io.FileIO(self._path(self._next), "ab")
            self._open = (self._next, stream)
            self._segments[self._next] = Segment()
            self._next += 1
        return self._open

    def _seal(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _look(self, number: int) -> Segment:
        data = self._path(number).read_bytes()
        letters = list(unpack(data))
        self.damaged_bytes += len(data) - sum(len(pack(each)) for each in letters)
        return Segment(len(data), len(letters))

    def _numbers(self) -> list[int]:
        names = (path.stem for path in self.folder.glob(f"*{SUFFIX}"))
        return sorted(int(name) for name in names if name.isdecimal())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:016d}{SUFFIX}"


def _field(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _letter(body: bytes) -> Letter:
    fields: list[bytes | None] = []
    at = 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        if length == _NO_KEY:
            fields.append(None)
        else:
            fields.append(body[at : at + length])
            at += length
    topic, key, value, *rest = fields
    texts = [each or b"" for each in rest]
    headers = [(name.decode(), text) for name, text in zip(texts[::2], texts[1::2], strict=True)]
    return Letter((topic or b"").decode(), key, value or b"", headers)
