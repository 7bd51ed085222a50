"""The files in which clients of a cluster record what they did.

Every record contains its producer and its number. There are three kinds of files:

    acknowledgements   rows of a producer: partition and number, offset, time of acknowledgement
    readings           rows of a reader: partition and offset, producer and number, its transaction
    diaries            lines of JSON: how transactions ended, which offsets a group had

Rows are three integers of eight bytes, so that ten million of them take 240 MB and a minute.
A file whose writer died may end within a row. The partial row does not count.
"""

import json
import struct
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

STAMP = struct.Struct(">HBxIQ")
"""Producer, fate, transaction and number, at the start of a value."""
ROW = 3
ROW_BYTES = 8 * ROW
SHIFT = 48
"""Two numbers share an integer: the first above this bit, the other below."""
LOW = (1 << SHIFT) - 1
ROWS_KEPT = 4096


class Fate(IntEnum):
    """What the producer intends to do with a record."""

    PLAIN = 0
    """The record belongs to no transaction."""
    COMMIT = 1
    ABORT = 2


class Stamp(NamedTuple):
    """The producer of a record, and how it was sent."""

    producer: int
    fate: int
    transaction: int
    number: int


def stamped(stamp: Stamp, size: int) -> bytes:
    """Return a value of a given size that contains its producer and number."""
    return STAMP.pack(*stamp).ljust(size, b".")


def read_stamp(value: bytes) -> Stamp:
    """Decode a value of `stamped`."""
    return Stamp(*STAMP.unpack_from(value))


class RowFile:
    """Writes rows in chunks of a few thousand, or on request."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._rows = array("q")

    def add(self, first: int, second: int, third: int) -> None:
        """Add one row."""
        self._rows.extend((first, second, third))
        if len(self._rows) >= ROW * ROWS_KEPT:
            self.flush()

    def flush(self) -> None:
        """Write buffered rows to the operating system."""
        self._rows.tofile(self._file)
        self._file.flush()
        del self._rows[:]

    def close(self) -> None:
        """Write the remaining rows."""
        self.flush()
        self._file.close()


def read_rows(path: Path) -> "array[int]":
    """Return all complete rows of a file as a flat list of integers."""
    rows = array("q")
    with path.open("rb") as file:
        rows.fromfile(file, path.stat().st_size // ROW_BYTES * ROW)
    return rows


def count_rows(path: Path) -> int:
    """Return how many rows a file has now."""
    return path.stat().st_size // ROW_BYTES if path.exists() else 0


class Acks:
    """The acknowledgements of one producer in one partition, in the order of their arrival."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.offsets = array("q")
        self.times_us = array("q")


class Reading:
    """The records of one partition that a reader got, in the order of their arrival."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.senders = array("q")
        """Producer and number of each, as one integer (`sender`)."""
        self.transactions = array("q")
        """Transaction and fate of each, as one integer (`in_transaction`)."""

    def add(self, offset: int, stamp: Stamp) -> None:
        """Add one record."""
        self.offsets.append(offset)
        self.senders.append(sender(stamp.producer, stamp.number))
        self.transactions.append(in_transaction(stamp.transaction, stamp.fate))


def sender(producer: int, number: int) -> int:
    """Return producer and number as one integer."""
    return producer << SHIFT | number


def in_transaction(transaction: int, fate: int) -> int:
    """Return a transaction and its intended outcome as one integer."""
    return transaction << 8 | fate


def read_acks(path: Path) -> dict[int, Acks]:
    """Read a producer's acknowledgements, by partition."""
    found: dict[int, Acks] = defaultdict(Acks)
    rows = read_rows(path)
    for place, offset, time_us in zip(rows[::ROW], rows[1::ROW], rows[2::ROW], strict=True):
        acks = found[place >> SHIFT]
        acks.numbers.append(place & LOW)
        acks.offsets.append(offset)
        acks.times_us.append(time_us)
    return dict(found)


def read_reading(path: Path) -> dict[int, Reading]:
    """Read the records that a reader got, by partition."""
    found: dict[int, Reading] = defaultdict(Reading)
    rows = read_rows(path)
    for place, who, transaction in zip(rows[::ROW], rows[1::ROW], rows[2::ROW], strict=True):
        reading = found[place >> SHIFT]
        reading.offsets.append(place & LOW)
        reading.senders.append(who)
        reading.transactions.append(transaction)
    return dict(found)


class Diary:
    """Writes lines of JSON, each to the operating system before the client continues."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def note(self, event: str, **facts: object) -> None:
        """Write a line, with the time on the clock that all processes share."""
        self._file.write(json.dumps({"event": event, "at_us": now_us(), **facts}) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_diary(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a diary; the last one may be cut off."""
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return


def now_us() -> int:
    """Return the time on a clock that all processes share and that never jumps."""
    return time.monotonic_ns() // 1000
