"""Tests how runs of offsets with a state are merged."""

import pytest

from barnabas.model.share_state import DeliveryState, StateBatch
from barnabas.share.state_batches import merged

STATES = {
    "a": DeliveryState.AVAILABLE,
    "k": DeliveryState.ACKNOWLEDGED,
    "x": DeliveryState.ARCHIVED,
}


def runs(text: str) -> list[StateBatch]:
    """Read runs such as `0-4 a1, 5 k2`."""
    found = []
    for item in filter(None, text.split(", ")):
        offsets, state = item.split(" ")
        first, _, last = offsets.partition("-")
        found.append(StateBatch(int(first), int(last or first), STATES[state[0]], int(state[1:])))
    return found


@pytest.mark.parametrize(
    ("stored", "newer", "start", "expected"),
    [
        ("", "0-4 a1", 0, "0-4 a1"),
        ("0-9 a1", "3-5 k1", 0, "0-2 a1, 3-5 k1, 6-9 a1"),
        ("0-9 a1", "3-5 a1", 0, "0-9 a1"),
        ("0-9 a1", "3-5 a2", 0, "0-2 a1, 3-5 a2, 6-9 a1"),
        ("0-4 a1, 5-9 k1", "3-6 x1", 0, "0-2 a1, 3-6 x1, 7-9 k1"),
        ("0-4 a1, 5-9 k1", "3-6 k1", 0, "0-2 a1, 3-9 k1"),
        ("0-4 k1, 8-9 k1", "5-7 k1", 0, "0-9 k1"),
        ("0-4 k1, 8-9 k1", "5-6 k1", 0, "0-6 k1, 8-9 k1"),
        ("2-4 a1, 6 k1, 8-9 x1", "0-20 a2", 0, "0-20 a2"),
        ("5-9 a1", "0-3 k1", 0, "0-3 k1, 5-9 a1"),
        ("0-9 a1", "", 4, "4-9 a1"),
        ("0-3 a1, 6-9 k1", "", 5, "6-9 k1"),
        ("0-9 a1", "3-5 k1", 4, "4-5 k1, 6-9 a1"),
        ("0-9 a1", "0-2 k1", 4, "4-9 a1"),
        ("0-9 a1", "", 10, ""),
    ],
)
def test_newer_runs_override(stored: str, newer: str, start: int, expected: str) -> None:
    assert merged(runs(stored), runs(newer), start) == runs(expected)


def test_the_last_of_several_newer_runs_counts() -> None:
    assert merged([], runs("0-9 a1, 5 k1, 0-4 x2"), 0) == runs("0-4 x2, 5 k1, 6-9 a1")


def test_the_arguments_stay_as_they_are() -> None:
    stored = runs("0-9 a1")
    merged(stored, runs("3 k1"), 2)
    assert stored == runs("0-9 a1")
