"""Tests inspecting segment files: intact and damaged parts, and their positions."""

from pathlib import Path

import pytest

from barnabas.cli.common.failure import CommandError
from barnabas.cli.log.segment_files import check_segment, find_segments
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record, build

BATCH = bytes(build([Record(0, 1, b"k", b"one"), Record(1, 2, None, b"two")], leader_epoch=1))
NEXT = bytes(build([Record(5, 3, None, None)], codec=Codec.ZSTD, leader_epoch=1))


def segment(folder: Path, content: bytes) -> Path:
    path = folder / "00000000000000000000.log"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_segment_is_counted(tmp_path: Path, deep: bool) -> None:
    found = check_segment(segment(tmp_path, BATCH + NEXT), deep=deep)
    assert found.is_sound
    assert (found.batches, found.records) == (2, 3)
    assert (found.first_offset, found.last_offset) == (0, 5)


def test_an_empty_segment_is_sound(tmp_path: Path) -> None:
    assert check_segment(segment(tmp_path, b""), deep=True).is_sound


@pytest.mark.parametrize(
    ("content", "position", "problem"),
    [
        (BATCH + NEXT[:-1], len(BATCH), "ends after"),
        (BATCH + NEXT[:-1] + b"\1", len(BATCH), "checksum"),
        (BATCH + b"\0" * 5, len(BATCH), "header"),
        (BATCH + b"\0" * 100, len(BATCH), "bytes"),
        (NEXT + BATCH, len(NEXT), "comes after"),
        (BATCH + BATCH, len(BATCH), "comes after"),
    ],
)
def test_the_first_bad_byte_is_named(
    tmp_path: Path, content: bytes, position: int, problem: str
) -> None:
    found = check_segment(segment(tmp_path, content), deep=False)
    assert found.problem_position == position
    assert problem in (found.problem or "")


def test_segments_are_found_in_files_and_folders(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    path = segment(partition, BATCH)
    assert find_segments([tmp_path]) == find_segments([partition]) == find_segments([path])


def test_a_path_without_segments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no segment"):
        find_segments([tmp_path])
    with pytest.raises(CommandError, match="no file or directory"):
        find_segments([tmp_path / "missing"])
