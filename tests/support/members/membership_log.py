"""The log that a group member writes about itself, one line per event.

A line is `NANOSECONDS KIND WORD...`. The clock is CLOCK_MONOTONIC, which all processes of a machine
share (Python's `monotonic_ns`, Java's `nanoTime`), so that the logs of a whole group can be merged
by time. Each line is one write to the system: SIGKILL loses no written line.

    joined OWNER                       the identity: an instance id, or a name used once
    assigned GENERATION PARTITIONS     first thing in the callback; "-" if the client hides it
    processed PARTITION OFFSET NUMBER  a record was delivered and processed
    committed SENT OFFSETS             confirmed by the broker; SENT is when it was requested
    refused SENT REASON                a commit that failed
    revoked PARTITIONS                 last thing in the callback: it was the owner until now
    lost PARTITIONS                    the same, but the member was fenced some time before
    left                               it closed its client
    failed REASON                      the client raised an error that no member should get
"""

import os
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

UNKNOWN_GENERATION = "-"


class Kind(StrEnum):
    """The kind of an event."""

    JOINED = "joined"
    ASSIGNED = "assigned"
    PROCESSED = "processed"
    COMMITTED = "committed"
    REFUSED = "refused"
    REVOKED = "revoked"
    LOST = "lost"
    LEFT = "left"
    FAILED = "failed"


class Line(NamedTuple):
    """A parsed line; fields that its kind does not have keep their defaults."""

    at: int
    kind: Kind
    text: str = ""
    """The owner, the generation, or the reason."""
    sent: int = 0
    partitions: tuple[int, ...] = ()
    offsets: tuple[tuple[int, int], ...] = ()
    """Pairs of partition and next offset (committed), or of partition and offset (processed)."""
    number: int = -1


class MemberLog:
    """Writes the log of one member to one file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def joined(self, owner: str) -> None:
        """Write the identity of the member."""
        self._write(Kind.JOINED, owner)

    def assigned(self, partitions: Iterable[int], generation: int | None = None) -> None:
        """Write assigned partitions, whether they are all or only the new ones."""
        known = UNKNOWN_GENERATION if generation is None else str(generation)
        self._write(Kind.ASSIGNED, known, listed(partitions))

    def processed(self, partition: int, offset: int, number: int) -> None:
        """Write a processed record."""
        self._write(Kind.PROCESSED, str(partition), str(offset), str(number))

    def committed(self, sent: int, offsets: Mapping[int, int]) -> None:
        """Write offsets that the broker confirmed."""
        pairs = ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))
        self._write(Kind.COMMITTED, str(sent), pairs)

    def refused(self, sent: int, reason: str) -> None:
        """Write a commit that the broker did not confirm."""
        self._write(Kind.REFUSED, str(sent), reason)

    def revoked(self, partitions: Iterable[int]) -> None:
        """Write partitions that are revoked now."""
        self._write(Kind.REVOKED, listed(partitions))

    def lost(self, partitions: Iterable[int]) -> None:
        """Write partitions that were lost some time ago."""
        self._write(Kind.LOST, listed(partitions))

    def left(self) -> None:
        """Write the end, and close the file."""
        self._write(Kind.LEFT)
        os.close(self._file)

    def failed(self, reason: str) -> None:
        """Write an unexpected error."""
        self._write(Kind.FAILED, reason)

    def _write(self, kind: Kind, *words: str) -> None:
        text = " ".join((str(now()), kind, *words)).replace("\n", " ")
        os.write(self._file, f"{text}\n".encode())


def now() -> int:
    """Return the time on a clock that all processes of this machine share."""
    return time.monotonic_ns()


def listed(partitions: Iterable[int]) -> str:
    """Return partitions as one word."""
    return ",".join(map(str, sorted(partitions))) or UNKNOWN_GENERATION


class LogReader:
    """Reads a log while it grows; an incomplete line is read the next time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self._position = 0

    def refresh(self) -> list[Line]:
        """Return the new lines."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._position)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        fresh = [parse(text) for text in whole.decode().splitlines()]
        self.lines += fresh
        return fresh


def parse(text: str) -> Line:
    """Parse one line."""
    at, kind, *words = text.split(" ")
    return _PARSERS[Kind(kind)](int(at), Kind(kind), words)


def _text(at: int, kind: Kind, words: list[str]) -> Line:
    return Line(at, kind, text=" ".join(words))


def _assigned(at: int, kind: Kind, words: list[str]) -> Line:
    return Line(at, kind, text=words[0], partitions=numbers(words[1]))


def _given_up(at: int, kind: Kind, words: list[str]) -> Line:
    return Line(at, kind, partitions=numbers(words[0]))


def _processed(at: int, kind: Kind, words: list[str]) -> Line:
    partition, offset, number = map(int, words)
    return Line(at, kind, offsets=((partition, offset),), number=number)


def _committed(at: int, kind: Kind, words: list[str]) -> Line:
    pairs = (pair.partition(":") for pair in words[1].split(",") if pair)
    offsets = tuple((int(partition), int(offset)) for partition, _, offset in pairs)
    return Line(at, kind, sent=int(words[0]), offsets=offsets)


def _refused(at: int, kind: Kind, words: list[str]) -> Line:
    return Line(at, kind, sent=int(words[0]), text=" ".join(words[1:]))


_PARSERS = {
    Kind.JOINED: _text,
    Kind.ASSIGNED: _assigned,
    Kind.PROCESSED: _processed,
    Kind.COMMITTED: _committed,
    Kind.REFUSED: _refused,
    Kind.REVOKED: _given_up,
    Kind.LOST: _given_up,
    Kind.LEFT: _text,
    Kind.FAILED: _text,
}


def numbers(word: str) -> tuple[int, ...]:
    """Parse the result of `listed`."""
    return () if word == UNKNOWN_GENERATION else tuple(map(int, word.split(",")))
