"""Segment files as a reader finds them on disk, ours or Apache Kafka's: the format is one.

A path may be a segment (`00000000000000000000.log`), the folder of a partition, or a whole
data folder. Files are mapped, not read, and never written: a running broker is not disturbed.
"""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.failure import CommandError
from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.records import BatchHeader, records, verify
from barnabas.storage.walk import plausible

SUFFIX = ".log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch, where it lies, and its bytes for as long as the file is open."""

    position: int
    header: BatchHeader
    content: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check of one file found."""

    file: str
    batches: int
    records: int
    first_offset: int | None
    last_offset: int | None
    problem: str | None
    problem_position: int | None

    @property
    def is_sound(self) -> bool:
        """Whether every byte of the file is accounted for."""
        return self.problem is None


def find_segments(paths: Iterable[Path]) -> list[Path]:
    """Return the segment files at or under some paths, in order."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise CommandError(f"There is no file or folder {path}; check the path")
        segments = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not segments:
            raise CommandError(f"{path} holds no segment ({SUFFIX}) files; name a data folder")
        found += segments
    return found


def batches(view: memoryview, *, check: bool) -> Iterator[Batch]:
    """Walk a segment; raise `CorruptBatchError` at the first byte that makes no sense."""
    position = 0
    while position < len(view):
        header = plausible(view, position, len(view) - position)
        content = view[position : position + header.size]
        if check:
            verify(content, header)
        yield Batch(position=position, header=header, content=content)
        position += header.size


def check_segment(path: Path, *, deep: bool) -> Finding:
    """Check one file: structure, checksums, rising offsets; every record too if `deep`."""
    count = record_count = position = 0
    first = last = None
    problem = None
    with opened(path) as view:
        try:
            for batch in batches(view, check=True):
                position = batch.position
                _check_batch(batch, last, deep=deep)
                first = batch.header.base_offset if first is None else first
                last = batch.header.last_offset
                count += 1
                record_count += batch.header.record_count
                position += batch.header.size
        except CorruptBatchError as error:
            problem = str(error)
    return Finding(
        file=str(path),
        batches=count,
        records=record_count,
        first_offset=first,
        last_offset=last,
        problem=problem,
        problem_position=None if problem is None else position,
    )


def _check_batch(batch: Batch, last_offset: int | None, *, deep: bool) -> None:
    header = batch.header
    if last_offset is not None and header.base_offset <= last_offset:
        raise CorruptBatchError(f"offset {header.base_offset} comes after {last_offset}")
    if not deep:
        return
    for record in records(batch.content, header):
        if not header.base_offset <= record.offset <= header.last_offset:
            raise CorruptBatchError(f"record {record.offset} lies outside its batch")


@contextmanager
def opened(path: Path) -> Iterator[memoryview]:
    """Map a file for reading; an empty one cannot be mapped and is an empty view."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield memoryview(b"")
            return
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Views handed out keep the map alive; it goes when the last of them does.
        yield memoryview(mapped)
