"""Tests that the checker of the cluster finds every violation."""

from collections.abc import Sequence

import pytest

from tests.support.clusters.cluster_check import (
    Transaction,
    check_commits,
    check_log,
    check_reader,
    check_shown_committed,
    check_transactions,
    transactions_of,
)
from tests.support.clusters.cluster_ledger import Acks, Fate, Reading, Stamp

ALICE, BOB = 1, 2


def acks(*promised: tuple[int, int]) -> Acks:
    """Acknowledged records, as number and offset."""
    made = Acks()
    for number, offset in promised:
        made.numbers.append(number)
        made.offsets.append(offset)
        made.times_us.append(0)
    return made


def reading(*records: tuple[int, int, int], fate: Fate = Fate.PLAIN) -> Reading:
    """The records that a reader got, as offset, producer and number."""
    made = Reading()
    for offset, producer, number in records:
        made.add(offset, Stamp(producer, fate, 0, number))
    return made


GOOD = ((0, ALICE, 0), (1, BOB, 0), (2, ALICE, 1), (3, ALICE, 2))
PROMISED = {ALICE: {0: acks((0, 0), (1, 2), (2, 3))}, BOB: {0: acks((0, 1))}}


def test_a_log_that_keeps_every_guarantee() -> None:
    assert check_log(PROMISED, {0: reading(*GOOD)}) == []


def test_what_was_never_acknowledged_may_be_there() -> None:
    assert check_log({}, {0: reading(*GOOD)}) == []


@pytest.mark.parametrize(
    ("records", "found"),
    [
        (GOOD[:3], "1 lost: [(1, 2, 3, -1)]"),
        (GOOD[1:], "1 lost: [(1, 0, 0, -1)]"),
        ((*GOOD[:3], (4, ALICE, 2)), "1 lost: [(1, 2, 3, 4)]"),
        ((*GOOD, (4, ALICE, 1)), "1 doubled: [(1, 1)]"),
        ((*GOOD, (4, ALICE, 2)), "1 doubled: [(1, 2)]"),
        ((*GOOD, (4, BOB, 2), (5, BOB, 1)), "1 out of order: [(2, 1)]"),
        ((*GOOD, (3, BOB, 1)), "1 went back: [(3, 3)]"),
    ],
    ids=["lost the last", "lost the first", "moved", "doubled", "last doubled", "order", "offset"],
)
def test_a_log_that_does_not(records: Sequence[tuple[int, int, int]], found: str) -> None:
    assert check_log(PROMISED, {0: reading(*records)}) == [f"partition 0: {found}"]


def test_a_partition_that_is_gone() -> None:
    assert check_log({ALICE: {4: acks((0, 0))}}, {}) == ["partition 4: 1 lost: [(1, 0, 0, -1)]"]


def test_a_reader_that_saw_a_part_of_what_is_there() -> None:
    assert check_reader({0: reading(*GOOD[:2])}, {0: reading(*GOOD)}) == []


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ((*GOOD, (4, BOB, 1)), "1 gone: [(4, 2, 1)]"),
        ((GOOD[0], (1, BOB, 7)), "1 changed: [(1, 2, 7)]"),
        ((GOOD[0], GOOD[3]), "2 skipped: [1, 2]"),
        ((GOOD[0], GOOD[0]), "1 went back: [(0, 0)]"),
    ],
    ids=["gone", "changed", "skipped", "went back"],
)
def test_a_reader_that_was_shown_something_else(
    shown: Sequence[tuple[int, int, int]], found: str
) -> None:
    told = check_reader({0: reading(*shown)}, {0: reading(*GOOD)})
    assert told == [f"partition 0: {found}"]


def test_a_reader_of_committed_records_may_skip() -> None:
    assert check_reader({0: reading(GOOD[0], GOOD[3])}, {0: reading(*GOOD)}, whole=False) == []


def ended(outcome: str) -> dict[int, list[Transaction]]:
    return {ALICE: [Transaction(1, 0, 4, outcome)]}


@pytest.mark.parametrize(
    ("outcome", "numbers", "found"),
    [
        ("committed", (0, 1, 2, 3), []),
        ("committed", (0, 1, 3), ["1 lost: [(1, 1, '3 of 4')]"]),
        ("aborted", (), []),
        ("aborted", (2,), ["1 aborted: [(1, 1, '1 of 4')]"]),
        ("unknown", (), []),
        ("unknown", (0, 1, 2, 3), []),
        ("unknown", (0, 1), ["1 torn: [(1, 1, '2 of 4')]"]),
    ],
)
def test_transactions(outcome: str, numbers: Sequence[int], found: list[str]) -> None:
    committed = {
        partition: reading(*((n, ALICE, n) for n in numbers if n % 2 == partition))
        for partition in range(2)
    }
    assert check_transactions(ended(outcome), committed, 2) == found


def test_a_record_in_a_partition_that_it_was_not_sent_to_does_not_count() -> None:
    committed = {0: reading(*((n, ALICE, n) for n in range(4)))}
    assert check_transactions(ended("committed"), committed, 2) == ["1 lost: [(1, 1, '2 of 4')]"]


def test_what_was_written_to_be_aborted_must_not_be_shown() -> None:
    shown = {0: reading((5, ALICE, 3), fate=Fate.ABORT)}
    assert check_shown_committed(shown) == ["1 aborted: [(1, 3)]"]
    assert check_shown_committed({0: reading(*GOOD)}) == []
    assert check_transactions({}, shown, 2) == ["1 aborted: [(1, 3)]"]


def test_a_diary_has_the_outcomes_of_transactions() -> None:
    diary: list[dict[str, object]] = [
        {"event": "begun", "transaction": 1, "first": 0, "count": 3},
        {"event": "committed", "transaction": 1},
        {"event": "begun", "transaction": 2, "first": 3, "count": 1},
        {"event": "given up"},
        {"event": "begun", "transaction": 3, "first": 4, "count": 2},
        {"event": "aborted", "transaction": 3},
    ]
    assert transactions_of(diary) == [
        Transaction(1, 0, 3, "committed"),
        Transaction(2, 3, 1, "unknown"),
        Transaction(3, 4, 2, "aborted"),
    ]


def committed(at_us: int, offset: int, partition: int = 0) -> dict[str, object]:
    return {"event": "committed", "at_us": at_us, "partition": partition, "offset": offset}


def found(asked_us: int, offset: int, partition: int = 0) -> dict[str, object]:
    facts = {"partition": partition, "offset": offset, "asked_us": asked_us}
    return {"event": "found", "at_us": asked_us + 5, **facts}


def test_later_members_find_the_commits() -> None:
    one = [found(0, -1001), committed(10, 5), committed(20, 9)]
    other = [found(30, 9), committed(40, 12)]
    assert check_commits([one, other]) == []


def test_a_look_that_began_before_the_commit_was_answered_may_miss_it() -> None:
    assert check_commits([[committed(20, 9)], [found(15, 5)]]) == []


@pytest.mark.parametrize("offset", [5, -1001])
def test_a_commit_that_was_forgotten(offset: int) -> None:
    told = check_commits([[committed(10, 5), committed(20, 9)], [found(30, offset)]])
    assert told == [f"1 uncommitted: [(0, 9, {offset})]"]


def test_commits_of_other_partitions_do_not_count() -> None:
    assert check_commits([[committed(10, 5, partition=1)], [found(30, -1001)]]) == []
