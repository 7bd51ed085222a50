"""The log that a group member writes about itself, one line per event.

A line is `NANOSECONDS KIND WORD...`; the clock is CLOCK_MONOTONIC, which every process of a machine
shares (Python's `monotonic_ns`, Java's `nanoTime`), so that the logs of a whole group can be put
in order. Each line is one write to the system: SIGKILL loses none that was written.

    joined OWNER                       who this is: an instance id, or a name used once
    assigned GENERATION PARTITIONS     first thing in the callback; "-" where no client tells it
    processed PARTITION OFFSET NUMBER  a record was handed over and worked on
    committed SENT OFFSETS             confirmed by the broker; SENT is when it was asked
    refused SENT REASON                a commit that was not
    revoked PARTITIONS                 last thing in the callback: until now it was the owner
    lost PARTITIONS                    the same, but the member was thrown out at some time before
    left                               it closed its client
    failed REASON                      the client raised what no member should have to expect
"""

import os
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

UNKNOWN_GENERATION = "-"


class Kind(StrEnum):
    """What happened."""

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
    """One line, parsed; fields that its kind does not have are left at their defaults."""

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
    """The writing end; one member, one file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def joined(self, owner: str) -> None:
        """Say who writes here."""
        self._write(Kind.JOINED, owner)

    def assigned(self, partitions: Iterable[int], generation: int | None = None) -> None:
        """Note partitions that came, whether they are all or only those that are new."""
        known = UNKNOWN_GENERATION if generation is None else str(generation)
        self._write(Kind.ASSIGNED, known, listed(partitions))

    def processed(self, partition: int, offset: int, number: int) -> None:
        """Note a record that was worked on."""
        self._write(Kind.PROCESSED, str(partition), str(offset), str(number))

    def committed(self, sent: int, offsets: Mapping[int, int]) -> None:
        """Note offsets that the broker confirmed."""
        pairs = ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))
        self._write(Kind.COMMITTED, str(sent), pairs)

    def refused(self, sent: int, reason: str) -> None:
        """Note a commit that the broker did not confirm."""
        self._write(Kind.REFUSED, str(sent), reason)

    def revoked(self, partitions: Iterable[int]) -> None:
        """Note partitions that are given up now."""
        self._write(Kind.REVOKED, listed(partitions))

    def lost(self, partitions: Iterable[int]) -> None:
        """Note partitions that were taken away some time ago."""
        self._write(Kind.LOST, listed(partitions))

    def left(self) -> None:
        """Note the end, and write no more."""
        self._write(Kind.LEFT)
        os.close(self._file)

    def failed(self, reason: str) -> None:
        """Note what should not have happened."""
        self._write(Kind.FAILED, reason)

    def _write(self, kind: Kind, *words: str) -> None:
        text = " ".join((str(now()), kind, *words)).replace("\n", " ")
        os.write(self._file, f"{text}\n".encode())


def now() -> int:
    """Return the time that all processes of this machine agree on."""
    return time.monotonic_ns()


def listed(partitions: Iterable[int]) -> str:
    """Return partitions as one word."""
    return ",".join(map(str, sorted(partitions))) or UNKNOWN_GENERATION


class LogReader:
    """Reads a log while it grows; a line that is not yet whole waits for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self._position = 0

    def refresh(self) -> list[Line]:
        """Return the lines that came since the last look."""
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
    """Read one line."""
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
    """Read what `listed` wrote."""
    return () if word == UNKNOWN_GENERATION else tuple(map(int, word.split(",")))
