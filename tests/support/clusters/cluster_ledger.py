"""The files in which clients of a cluster record what they did.

Every record says who sent it and which number it has. Three kinds of files:

    acknowledgements   rows of a producer: partition and number, offset, when it was told so
    readings           rows of a reader: partition and offset, producer and number, its transaction
    diaries            lines of JSON: how transactions ended, where a group stood

Rows are three integers of eight bytes, so that ten million of them are 240 MB and a minute's work.
A file whose writer died may end within a row, which then is not counted.
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
"""Producer, fate, transaction and number, at the front of a value."""
ROW = 3
ROW_BYTES = 8 * ROW
SHIFT = 48
"""Two numbers share an integer: the first above this bit, the other below."""
LOW = (1 << SHIFT) - 1
ROWS_KEPT = 4096


class Fate(IntEnum):
    """What its producer means to do with a record."""

    PLAIN = 0
    """It belongs to no transaction."""
    COMMIT = 1
    ABORT = 2


class Stamp(NamedTuple):
    """Who sent a record, and how."""

    producer: int
    fate: int
    transaction: int
    number: int


def stamped(stamp: Stamp, size: int) -> bytes:
    """Return a value of a size that says who sent it."""
    return STAMP.pack(*stamp).ljust(size, b".")


def read_stamp(value: bytes) -> Stamp:
    """Read what `stamped` wrote."""
    return Stamp(*STAMP.unpack_from(value))


class RowFile:
    """Rows, written a few thousand at a time or when told to."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._rows = array("q")

    def add(self, first: int, second: int, third: int) -> None:
        """Note one row."""
        self._rows.extend((first, second, third))
        if len(self._rows) >= ROW * ROWS_KEPT:
            self.flush()

    def flush(self) -> None:
        """Hand what is kept to the operating system."""
        self._rows.tofile(self._file)
        self._file.flush()
        del self._rows[:]

    def close(self) -> None:
        """Write the rest."""
        self.flush()
        self._file.close()


def read_rows(path: Path) -> "array[int]":
    """Return all whole rows of a file, one integer after the other."""
    rows = array("q")
    with path.open("rb") as file:
        rows.fromfile(file, path.stat().st_size // ROW_BYTES * ROW)
    return rows


def count_rows(path: Path) -> int:
    """Return how many rows a file has by now."""
    return path.stat().st_size // ROW_BYTES if path.exists() else 0


class Acks:
    """What one producer was promised in one partition, in the order it was told."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.offsets = array("q")
        self.times_us = array("q")


class Reading:
    """What a reader was shown of one partition, in the order it came."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.senders = array("q")
        """Producer and number of each, as one integer (`sender`)."""
        self.transactions = array("q")
        """Transaction and fate of each, as one integer (`in_transaction`)."""

    def add(self, offset: int, stamp: Stamp) -> None:
        """Note one record."""
        self.offsets.append(offset)
        self.senders.append(sender(stamp.producer, stamp.number))
        self.transactions.append(in_transaction(stamp.transaction, stamp.fate))


def sender(producer: int, number: int) -> int:
    """Return producer and number as one integer."""
    return producer << SHIFT | number


def in_transaction(transaction: int, fate: int) -> int:
    """Return a transaction and what it was meant to become as one integer."""
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
    """Read what a reader was shown, by partition."""
    found: dict[int, Reading] = defaultdict(Reading)
    rows = read_rows(path)
    for place, who, transaction in zip(rows[::ROW], rows[1::ROW], rows[2::ROW], strict=True):
        reading = found[place >> SHIFT]
        reading.offsets.append(place & LOW)
        reading.senders.append(who)
        reading.transactions.append(transaction)
    return dict(found)


class Diary:
    """Lines of JSON, each on its way to the disk before the next thing is done."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def note(self, event: str, **facts: object) -> None:
        """Write a line, with the time on the clock that all processes share."""
        self._file.write(json.dumps({"event": event, "at_us": now_us(), **facts}) + "\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def read_diary(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a diary; the last one may have been cut off."""
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return


def now_us() -> int:
    """Return the time on a clock that is the same for all processes and never jumps."""
    return time.monotonic_ns() // 1000
