"""Tests that a history detects every batch that differs from what was committed."""

import pytest

from barnabas.protocol.records import BatchHeader, Record, build, parse_header
from barnabas.sim.checks.history_checks import History, headers_in
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.world import InvariantError
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.recovery import open_log


def batch(base_offset: int, count: int, *, epoch: int = 1, value: bytes = b"x") -> BatchHeader:
    content = build(
        [Record(base_offset + number, 0, None, value) for number in range(count)],
        base_offset=base_offset,
        leader_epoch=epoch,
    )
    return parse_header(content)


def known() -> History:
    history = History("a log")
    history.compare("first", [batch(0, 2), batch(2, 1)])
    return history


def test_equal_replicas_are_fine() -> None:
    history = known()
    history.compare("second", [batch(0, 2), batch(2, 1), batch(3, 1)])
    history.compare("first", [batch(3, 1)])
    assert history.end_offset == 4


@pytest.mark.parametrize(
    "other",
    [
        batch(2, 1, value=b"y"),
        batch(2, 1, epoch=2),
        batch(2, 2),
        batch(1, 2),
    ],
    ids=["another record", "another epoch", "more records", "elsewhere"],
)
def test_a_replica_that_differs_is_detected(other: BatchHeader) -> None:
    with pytest.raises(InvariantError, match="second"):
        known().compare("second", [batch(0, 2), other])


def test_headers_are_read_across_segments() -> None:
    log = _log()
    for _ in range(5):
        content = build([Record(0, 0, None, b"x" * 40)])
        log.append(memoryview(content), parse_header(content), 1)
    assert len(log.segments) > 1
    assert [header.base_offset for header in headers_in(log, 1, 4)] == [1, 2, 3]


def _log() -> Log:
    return open_log(
        MemoryDisk(), "data/log", LogSettings(segment_bytes=200), root="data", clean=False
    ).log
