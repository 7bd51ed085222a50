"""Checks a log against the acknowledgements of producers.

A record is identified by its producer and its number, which each producer counts from 0 in each
partition. The rules:

    lost          an acknowledged record is missing, or not at its acknowledged offset
    doubled       a record is there twice, acknowledged or not: producers are idempotent
    out of order  records of one producer are in another order than they were sent in
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.records import records
from barnabas.server.files.disk import OsDisk
from barnabas.storage.walk import walk

SHOWN_MAX = 5


class Stored(NamedTuple):
    """A record in the log."""

    offset: int
    producer: str
    number: int


class Ledger:
    """Collects acknowledgements from any thread."""

    def __init__(self) -> None:
        self._promised: dict[int, dict[tuple[str, int], int]] = defaultdict(dict)
        self._lock = threading.Lock()
        self.count = 0

    def acknowledge(self, partition: int, producer: str, number: int, offset: int) -> None:
        """Add an acknowledgement."""
        with self._lock:
            self._promised[partition][producer, number] = offset
            self.count += 1

    def violations(self, found: Mapping[int, Iterable[Stored]]) -> list[str]:
        """Return all problems of the log, partition by partition."""
        problems: list[str] = []
        for partition in sorted({*self._promised, *found}):
            content = list(found.get(partition, ()))
            wrong = self._check(self._promised.get(partition, {}), content)
            problems += [f"partition {partition}: {problem}" for problem in wrong]
        return problems

    @staticmethod
    def _check(promised: Mapping[tuple[str, int], int], found: list[Stored]) -> Iterator[str]:
        places: dict[tuple[str, int], int] = {}
        last: dict[str, int] = {}
        doubled, disordered = [], []
        for offset, producer, number in sorted(found):
            if (producer, number) in places:
                doubled.append((producer, number))
            elif number < last.get(producer, -1):
                disordered.append((producer, number))
            places[producer, number] = offset
            last[producer] = max(number, last.get(producer, -1))
        lost = [known for known, offset in promised.items() if places.get(known) != offset]
        for name, which in (("lost", lost), ("doubled", doubled), ("out of order", disordered)):
            if which:
                yield f"{len(which)} {name}: {which[:SHOWN_MAX]}"


def value_of(producer: str, number: int, size: int = 0) -> bytes:
    """Return a record's value, padded to a size."""
    return f"{producer} {number} ".encode().ljust(size, b".")


def parse_value(offset: int, value: bytes | None) -> Stored:
    """Decode a value of `value_of`."""
    producer, number, _ = (value or b"").split(b" ", 2)
    return Stored(offset, producer.decode(), int(number))


def stored_on_disk(data: Path, topic: str) -> dict[int, list[Stored]]:
    """Read a topic's segment files without a broker, and verify every checksum."""
    disk = OsDisk()
    found: dict[int, list[Stored]] = {}
    for folder in sorted(path for path in (data / "topics" / topic).iterdir() if path.is_dir()):
        content = found[int(folder.name)] = []
        for path in sorted(folder.glob("*.log")):
            file = disk.open(str(path))
            for position, header in walk(file, 0, file.size(), check=True):
                batch = file.read(position, header.size)
                content += [parse_value(r.offset, r.value) for r in records(batch, header)]
    return found
