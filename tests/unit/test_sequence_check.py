"""Tests that the checker of the Spark storm finds missing, doubled and unknown numbers."""

from tests.support.pipelines.spark_storm.sequence_check import compare


def numbers(*values: int) -> list[bytes | None]:
    return [str(value).encode() for value in values]


def test_every_number_once_is_right() -> None:
    assert compare(numbers(2, 0, 1), 3).is_right
    assert compare([], 0).is_right


def test_problems_are_reported() -> None:
    verdict = compare([*numbers(0, 0, 2, 7), None], 4)
    assert not verdict.is_right
    assert (verdict.missing, verdict.doubled, verdict.foreign) == (2, 1, 2)
    assert verdict.examples[:3] == ("missing 1", "missing 3", "2 times 0")
