"""Tests the target of an offset reset, partition by partition."""

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.groups.group_admin import Ends
from barnabas.admin.groups.reset_targets import (
    ShiftBy,
    Target,
    ToCurrent,
    ToEarliest,
    ToGiven,
    ToLatest,
    ToOffset,
    ToTime,
    move,
    read_csv,
    write_csv,
)

PLACE = ("orders", 0)
LOG = Ends(100, 200)


@pytest.mark.parametrize(
    ("target", "before", "at_time", "after", "note"),
    [
        (ToEarliest(), 150, None, 100, None),
        (ToLatest(), 150, None, 200, None),
        (ToOffset(170), None, None, 170, None),
        (ToOffset(200), 150, None, 200, None),
        (ToOffset(50), 150, None, 100, "50 is before the start of the log at 100"),
        (ToOffset(201), 150, None, 200, "201 is past the end of the log at 200"),
        (ShiftBy(-20), 150, None, 130, None),
        (ShiftBy(60), 150, None, 200, "210 is past the end of the log at 200"),
        (ToTime(5), 150, 120, 120, None),
        (ToTime(5), 150, None, 200, "there is no record at or after that time"),
        (ToCurrent(), 150, None, 150, None),
        (ToCurrent(), 50, None, 100, "50 is before the start of the log at 100"),
        (ToCurrent(), None, None, 200, "nothing is committed"),
        (ToGiven({PLACE: 110}), 150, None, 110, None),
    ],
)
def test_a_target_stays_within_the_log(
    target: Target, before: int | None, at_time: int | None, after: int, note: str | None
) -> None:
    found = move(target, PLACE, before, LOG, at_time)
    assert (found.after, found.note) == (after, note)
    assert found.change == (None if before is None else after - before)


def test_nothing_cannot_be_shifted() -> None:
    with pytest.raises(AdminError, match="Nothing is committed for orders:0"):
        move(ShiftBy(1), PLACE, None, LOG)


def test_csv_goes_round() -> None:
    moves = [move(ToOffset(offset), ("a,b", offset), None, LOG) for offset in (101, 102)]
    text = write_csv(moves)
    assert read_csv(text) == {("a,b", 101): 101, ("a,b", 102): 102}
    assert read_csv("orders, 0, 5\n\n") == {PLACE: 5}


@pytest.mark.parametrize("text", ["orders,0\n", "orders,0,x\n", "a,0,1\norders,0,1,2\n", "\n"])
def test_a_bad_line_is_named(text: str) -> None:
    with pytest.raises(AdminError, match="topic,partition,offset"):
        read_csv(text)
