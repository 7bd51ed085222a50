"""Find, read and check segment files on disk, of Barnabas or Apache Kafka.

A path is a segment (`00000000000000000000.log`), the directory of a partition, or a data directory.
Files are memory-mapped and never written, so a running broker is not affected.
"""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.common.failure import CommandError
from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.records import BatchHeader, records, verify
from barnabas.storage.walk import plausible

SUFFIX = ".log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch with its position, and its bytes while the file is open."""

    position: int
    header: BatchHeader
    content: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of the check of one file."""

    file: str
    batches: int
    records: int
    first_offset: int | None
    last_offset: int | None
    problem: str | None
    problem_position: int | None

    @property
    def is_sound(self) -> bool:
        """Whether the whole file is valid."""
        return self.problem is None


def find_segments(paths: Iterable[Path]) -> list[Path]:
    """Return the segment files at or under some paths, in order."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise CommandError(f"There is no file or directory {path}; check the path")
        segments = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not segments:
            raise CommandError(f"{path} holds no segment ({SUFFIX}) files; pass a data directory")
        found += segments
    return found


def batches(view: memoryview, *, check: bool) -> Iterator[Batch]:
    """Yield the batches of a segment; raise `CorruptBatchError` at the first invalid byte."""
    position = 0
    while position < len(view):
        header = plausible(view, position, len(view) - position)
        content = view[position : position + header.size]
        if check:
            verify(content, header)
        yield Batch(position=position, header=header, content=content)
        position += header.size


def check_segment(path: Path, *, deep: bool) -> Finding:
    """Check one file: structure, checksums, increasing offsets; with `deep` also every record."""
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
    """Map a file for reading; return an empty view for an empty file, which cannot be mapped."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield memoryview(b"")
            return
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # The map stays open until the last view of it is released.
        yield memoryview(mapped)
