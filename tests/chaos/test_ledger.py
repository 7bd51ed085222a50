"""Tests that the checker of acknowledgements finds every violation."""

import pytest

from tests.support.disks.ledger import Ledger, Stored, parse_value, value_of


def promised(*numbers: int) -> Ledger:
    ledger = Ledger()
    for number in numbers:
        ledger.acknowledge(0, "p", number, number)
    return ledger


def found(*numbers: int) -> dict[int, list[Stored]]:
    return {0: [Stored(offset, "p", number) for offset, number in enumerate(numbers)]}


def test_acknowledged_records_are_there() -> None:
    assert promised(0, 1, 2).violations(found(0, 1, 2)) == []


def test_more_than_the_acknowledged_records_may_be_there() -> None:
    assert promised(0).violations(found(0, 1)) == []


@pytest.mark.parametrize(
    ("ledger", "content", "problem"),
    [
        (promised(0, 1, 2), found(0, 1), "1 lost: [('p', 2)]"),
        (promised(0), {}, "1 lost: [('p', 0)]"),
        (promised(0), {0: [Stored(7, "p", 0)]}, "1 lost: [('p', 0)]"),
        (promised(0), found(0, 1, 1), "1 doubled: [('p', 1)]"),
        (promised(0), found(0, 2, 1), "1 out of order: [('p', 1)]"),
    ],
)
def test_violations_are_found(
    ledger: Ledger, content: dict[int, list[Stored]], problem: str
) -> None:
    assert ledger.violations(content) == [f"partition 0: {problem}"]


def test_producers_do_not_disturb_each_other() -> None:
    content = [Stored(0, "p", 0), Stored(1, "q", 5), Stored(2, "p", 1), Stored(3, "q", 6)]
    assert Ledger().violations({0: content}) == []


def test_a_value_contains_its_producer() -> None:
    value = value_of("p", 17, 100)
    assert len(value) == 100
    assert parse_value(3, value) == Stored(3, "p", 17)
