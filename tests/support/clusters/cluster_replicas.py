"""Reads the replicas of a partition from the files of stopped nodes and compares them.

It compares batches by offsets, leader epoch and checksum, which are all that can differ between two
replicas of a batch. It also verifies every checksum.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.server.files.disk import OsDisk
from barnabas.storage.walk import walk

SHOWN_MAX = 5


class StoredBatch(NamedTuple):
    """What identifies a batch."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int


def stored_batches(folder: Path) -> list[StoredBatch]:
    """Read one replica; raise `CorruptBatchError` if it is damaged."""
    disk = OsDisk()
    found = []
    for path in sorted(folder.glob("*.log")):
        file = disk.open(str(path))
        for _, header in walk(file, 0, file.size(), check=True):
            found.append(
                StoredBatch(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
            )
    return found


def copies_of(data: Mapping[int, Path], topic: str, partition: int) -> dict[int, Path]:
    """Return the folder of a partition on each node that has a replica."""
    folders = {node: folder / "topics" / topic / str(partition) for node, folder in data.items()}
    return {node: folder for node, folder in folders.items() if folder.is_dir()}


def check_copies(copies: Mapping[int, Path], high_watermark: int) -> list[str]:
    """Return the differences between the replicas of a partition below the committed offset."""
    problems = []
    batches: dict[int, list[StoredBatch]] = {}
    for node, folder in sorted(copies.items()):
        try:
            batches[node] = stored_batches(folder)
        except CorruptBatchError as error:
            problems.append(f"node {node}: damaged: {error}")
    return problems + compare_copies(batches, high_watermark)


def compare_copies(copies: Mapping[int, Sequence[StoredBatch]], high_watermark: int) -> list[str]:
    """Return where replicas differ below the high watermark, or use an offset twice."""
    problems: list[str] = []
    committed = {
        node: [batch for batch in batches if batch.base_offset < high_watermark]
        for node, batches in copies.items()
    }
    for node, batches in committed.items():
        problems += [f"node {node}: {problem}" for problem in _offset_problems(batches)]
        end = batches[-1].last_offset + 1 if batches else 0
        if end < high_watermark:
            problems.append(f"node {node}: ends at {end}, committed is {high_watermark}")
    # Retention deletes whole segments, on each node at its own time: compare the common part.
    starts = [batches[0].base_offset for batches in committed.values() if batches]
    first_common = max(starts, default=0)
    columns = {n: [b for b in c if b.base_offset >= first_common] for n, c in committed.items()}
    model = min(columns, default=0)
    for node in sorted(columns):
        differing = [
            f"{mine} and {theirs}"
            for mine, theirs in zip(columns[model], columns[node], strict=False)
            if mine != theirs
        ]
        if differing:
            problems.append(
                f"nodes {model} and {node} differ in {len(differing)} batches: "
                f"{differing[:SHOWN_MAX]}"
            )
    return problems


def _offset_problems(batches: Sequence[StoredBatch]) -> Iterator[str]:
    expected = batches[0].base_offset if batches else 0
    for batch in batches:
        if batch.base_offset < expected:
            yield f"offset {batch.base_offset} is used twice"
        elif batch.base_offset > expected:
            yield f"nothing stands between {expected} and {batch.base_offset}"
        expected = batch.last_offset + 1
