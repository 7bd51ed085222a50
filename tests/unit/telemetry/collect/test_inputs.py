"""Tests files: compressed, growing, and of any layout."""

import gzip
from collections.abc import Callable
from datetime import UTC
from itertools import islice
from pathlib import Path

import pytest

from barnabas.telemetry.collect.collector_sources import Sources
from barnabas.telemetry.collect.inputs import (
    FileFormat,
    InputError,
    follow_lines,
    read_lines,
    read_rows,
)
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Layout, Snapshot

SMI = "timestamp, uuid, utilization.gpu [%]\n2026/11/15 06:54:54.154, GPU-1, 5\n"
LONG = "timestamp,metric_name,uuid,value\n2026-11-15T06:54:54.154Z,DCGM_FI_DEV_GPU_UTIL,GPU-1,5\n"
DCGM = "timestamp,uuid,modelName,DCGM_FI_DEV_GPU_UTIL\n1794725694.154,GPU-1,NVIDIA H200,5\n"


class WritingClock:
    """A clock on which a file is written while the reader sleeps."""

    def __init__(self, path: Path, pieces: list[str]) -> None:
        self._path = path
        self._pieces = pieces

    def now_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        with self._path.open("a") as stream:
            stream.write(self._pieces.pop(0))


@pytest.mark.parametrize("text", [SMI, LONG, DCGM])
def test_the_header_determines_the_layout(tmp_path: Path, text: str) -> None:
    packed = tmp_path / "f.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    sources = Sources(layout=Layout.SNAPSHOT, hostname="here")
    (found,) = sources.files([packed])
    assert isinstance(found, Snapshot)
    assert (found.gpu_id, found.timestamp_ms) == ("GPU-1", 1_794_725_694_154)
    assert found.metrics == {"DCGM_FI_DEV_GPU_UTIL": 5}


def test_bytes_that_are_no_text_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(SMI.encode() + b"\xff\xfe\x00\n" + SMI.encode())
    rows = read_rows(
        read_lines(path),
        FileFormat.AUTO,
        where="f",
        hostname="",
        zone=UTC,
        tally=Tally(),
        joined=True,
    )
    assert [type(each).__name__ for each in rows] == ["Snapshot", "Refusal", "Snapshot"]


def test_a_growing_file_is_followed_line_by_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("one\ntw")
    clock = WritingClock(path, ["o", "\nthree\n", "", "four\n"])
    found = islice(follow_lines(path, clock, lambda: None), 4)
    assert list(found) == [(1, "one\n"), (2, "two\n"), (3, "three\n"), (4, "four\n")]


class ActingClock:
    """A clock on which each sleep changes a file; the last one requests a stop."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._acts = list(acts)

    def now_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        if self._acts:
            self._acts.pop(0)()

    def is_over(self) -> bool:
        return not self._acts


def test_a_followed_file_may_be_rotated(tmp_path: Path) -> None:
    path, old = tmp_path / "f.csv", tmp_path / "f.csv.1"
    path.write_text("one\n")

    def append_to_old() -> None:
        with old.open("a") as stream:
            stream.write("two\nhal")

    clock = ActingClock(
        lambda: path.rename(old),
        append_to_old,
        lambda: path.write_text("three\n"),
        lambda: None,
        lambda: None,
    )
    cut: list[tuple[int, bytes]] = []
    found = follow_lines(
        path,
        clock,
        lambda: None,
        on_cut=lambda number, line: cut.append((number, line)),
        is_stopping=clock.is_over,
    )
    assert list(found) == [(1, "one\n"), (2, "two\n"), (1, "three\n")]
    assert cut == [(3, b"hal")]


def test_a_followed_file_may_be_emptied(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(SMI)
    clock = ActingClock(
        lambda: path.write_text(SMI + "2026/11/15 06:5"),
        lambda: path.write_text(""),
        lambda: path.write_text(SMI.replace("GPU-1", "GPU-2")),
        lambda: None,
        lambda: None,
    )
    sources = Sources(
        layout=Layout.SNAPSHOT, hostname="here", clock=clock, is_stopping=clock.is_over
    )
    first, refusal, second = sources.followed(path)
    assert isinstance(first, Snapshot)
    assert isinstance(refusal, Refusal)
    assert isinstance(second, Snapshot)
    assert (first.gpu_id, second.gpu_id) == ("GPU-1", "GPU-2")
    assert refusal.raw == b"2026/11/15 06:5"


def test_files_that_cannot_be_read_say_what_to_change(tmp_path: Path) -> None:
    sources = Sources(layout=Layout.SAMPLE, hostname="here")
    with pytest.raises(InputError, match="There is no file"):
        list(sources.files([tmp_path / "none.csv"]))
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(InputError, match=r"empty\.csv is empty"):
        list(sources.files([empty]))
    empty.write_text("a,b\n")
    with pytest.raises(InputError, match="no timestamp or no uuid"):
        list(sources.files([empty]))
    with pytest.raises(InputError, match="cannot be followed"):
        list(sources.followed(tmp_path / "f.csv.gz"))
    with pytest.raises(InputError, match="There is no sample"):
        list(sources.sample("a100"))
