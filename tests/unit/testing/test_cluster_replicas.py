"""Tests the comparison of replicas of a partition, batch by batch."""

from pathlib import Path

import pytest

from barnabas.protocol.records import Record, build
from tests.support.clusters.cluster_replicas import (
    StoredBatch,
    check_copies,
    compare_copies,
    copies_of,
    stored_batches,
)

A, B, C = StoredBatch(0, 4, 1, 11), StoredBatch(5, 5, 1, 12), StoredBatch(6, 9, 2, 13)


def test_equal_replicas() -> None:
    assert compare_copies({1: [A, B, C], 2: [A, B, C], 3: [A, B, C]}, 10) == []


def test_what_is_not_committed_may_differ() -> None:
    other = C._replace(crc=99)
    assert compare_copies({1: [A, B, C], 2: [A, B, other], 3: [A, B]}, 6) == []


def test_a_replica_whose_start_was_deleted() -> None:
    assert compare_copies({1: [A, B, C], 2: [B, C]}, 10) == []


@pytest.mark.parametrize(
    ("copy", "problem"),
    [
        ([A, B._replace(crc=99), C], "nodes 1 and 2 differ in 1 batches"),
        ([A, B._replace(epoch=2), C], "nodes 1 and 2 differ in 1 batches"),
        ([A, B], "node 2: ends at 6, committed is 10"),
        ([], "node 2: ends at 0, committed is 10"),
    ],
)
def test_a_replica_that_differs(copy: list[StoredBatch], problem: str) -> None:
    (told,) = compare_copies({1: [A, B, C], 2: copy}, 10)
    assert told.startswith(problem)


def test_an_offset_that_is_used_twice() -> None:
    twice = [A, A._replace(base_offset=4, last_offset=5), C]
    assert compare_copies({1: twice}, 10) == ["node 1: offset 4 is used twice"]


def test_offsets_without_a_member_expire() -> None:
    told = compare_copies({1: [A, C]}, 10)
    assert told == ["node 1: nothing stands between 5 and 6"]


def stored(folder: Path, values: list[bytes]) -> Path:
    folder.mkdir(parents=True)
    batches = []
    for offset, value in enumerate(values):
        batch = bytearray(build([Record(0, 1, None, value)]))
        batch[:8] = offset.to_bytes(8, "big")
        batches.append(bytes(batch))
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches))
    return folder


def test_replicas_on_disk(tmp_path: Path) -> None:
    for node in (1, 2):
        stored(tmp_path / str(node) / "topics" / "t" / "0", [b"a", b"b"])
    copies = copies_of({n: tmp_path / str(n) for n in (1, 2, 3)}, "t", 0)
    assert sorted(copies) == [1, 2]
    assert [batch.base_offset for batch in stored_batches(copies[1])] == [0, 1]
    assert check_copies(copies, 2) == []


def test_a_damaged_replica(tmp_path: Path) -> None:
    copies = {node: stored(tmp_path / str(node), [b"a", b"b"]) for node in (1, 2)}
    (path,) = copies[2].glob("*.log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (told,) = check_copies(copies, 2)
    assert told.startswith("node 2: damaged")
