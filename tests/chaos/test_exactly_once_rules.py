"""Tests that the rules of exactly-once processing find every violation."""

import pytest

from tests.support.loads.exactly_once import (
    ABORTED,
    Seen,
    count_violations,
    transformed,
    violations,
    window_counts,
)

SENT = {0: [b"a", b"b", b"c"]}
COUNTS = {b"k@0": 3, b"k@10": 1}


def read(*values: bytes) -> dict[int, list[Seen]]:
    return {0: [Seen(2 * number, b"k", value) for number, value in enumerate(values)]}


def updates(*updates: tuple[bytes, int]) -> dict[int, list[Seen]]:
    return {
        0: [Seen(number, label, b"%d" % count) for number, (label, count) in enumerate(updates)]
    }


def test_what_was_sent_was_read() -> None:
    assert violations(SENT, read(b"a", b"b", b"c")) == []


def test_a_partition_may_be_empty() -> None:
    assert violations({0: [b"a"], 1: []}, read(b"a")) == []


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ((b"a", b"c"), "1 lost: ['b']"),
        ((b"a", b"b"), "1 lost: ['c']"),
        ((), "3 lost: ['a', 'b', 'c']"),
        ((b"a", b"b", b"b", b"c"), "1 doubled: ['b']"),
        ((b"a", b"b", b"c", b"a"), "1 doubled: ['a']"),
        ((b"b", b"a", b"c"), "1 out of order: ['a']"),
        ((b"a", ABORTED + b"b", b"b", b"c"), "1 aborted: ['aborted b']"),
        ((b"a", b"b", b"c", b"d"), "1 unknown: ['d']"),
    ],
)
def test_violations_are_found(values: tuple[bytes, ...], problem: str) -> None:
    assert violations(SENT, read(*values)) == [f"partition 0: {problem}"]


def test_an_aborted_record_is_not_confused_with_its_copy() -> None:
    assert violations(SENT, read(b"a", b"b", ABORTED + b"c")) == [
        "partition 0: 1 aborted: ['aborted c']",
        "partition 0: 1 lost: ['c']",
    ]


def test_a_record_in_the_wrong_partition_is_found() -> None:
    found = {0: [Seen(0, b"", b"a")], 1: [Seen(0, b"", b"b")]}
    assert violations({0: [b"a", b"b"], 1: []}, found) == [
        "partition 0: 1 lost: ['b']",
        "partition 1: 1 unknown: ['b']",
    ]


@pytest.mark.parametrize("offset", [5, 4])
def test_a_reader_that_goes_back_is_found(offset: int) -> None:
    found = {0: [Seen(1, b"", b"a"), Seen(5, b"", b"b"), Seen(offset, b"", b"c")]}
    assert violations(SENT, found) == [f"partition 0: went back from 5 to {offset}"]
    counted = {0: [Seen(5, b"k", b"1"), Seen(offset, b"k", b"2")]}
    assert count_violations({b"k": 2}, counted) == [f"partition 0: went back from 5 to {offset}"]


def test_windows_are_counted() -> None:
    times = [(b"k", 0), (b"k", 9), (b"other", 9), (b"k", 10), (b"k", 25)]
    records = [Seen(0, key, b"", time) for key, time in times]
    assert window_counts(records, 10) == {b"k@0": 2, b"other@0": 1, b"k@10": 1, b"k@20": 1}


def test_updates_that_count_by_one_are_right() -> None:
    found = updates((b"k@0", 1), (b"k@0", 2), (b"k@10", 1), (b"k@0", 3))
    assert count_violations(COUNTS, found) == []


def test_windows_in_other_partitions_are_looked_at_too() -> None:
    found = {0: updates((b"k@10", 1))[0], 1: updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 3))[0]}
    assert count_violations(COUNTS, found) == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (updates((b"k@0", 1), (b"k@0", 2), (b"k@10", 1)), "1 lost: ['k@0: 2 of 3']"),
        (updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 3)), "1 lost: ['k@10: 0 of 1']"),
        (updates((b"k@0", 1), (b"k@0", 3), (b"k@10", 1)), "1 gap: ['k@0: 3 after 1']"),
        (updates((b"k@0", 2), (b"k@0", 3), (b"k@10", 1)), "1 gap: ['k@0: 2 after 0']"),
        (
            updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 2), (b"k@0", 3), (b"k@10", 1)),
            "1 repeated: ['k@0: 2 after 2']",
        ),
        (
            updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 3), (b"k@0", 1), (b"k@10", 1)),
            "1 repeated: ['k@0: 1 after 3']",
        ),
        (
            updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 3), (b"k@0", 4), (b"k@10", 1)),
            "1 too many: ['k@0: 4 of 3']",
        ),
        (
            updates((b"k@0", 1), (b"k@0", 2), (b"k@0", 3), (b"k@10", 1), (b"k@20", 1)),
            "1 unknown: ['k@20: 1 after 0']",
        ),
    ],
)
def test_wrong_counts_are_found(found: dict[int, list[Seen]], problem: str) -> None:
    assert count_violations(COUNTS, found) == [problem]


def test_work_is_done_on_what_is_sent() -> None:
    assert transformed(b"17") != b"17"
    assert not transformed(b"17").startswith(ABORTED)
