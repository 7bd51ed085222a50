"""Fingerprints of rows: the order and the cut into batches do not matter, every byte does."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint, fingerprint

CELL = st.one_of(st.none(), st.binary(max_size=12), st.binary(min_size=60, max_size=200))
ROWS = st.lists(st.tuples(CELL, CELL), max_size=12)


def of(rows: list[tuple[bytes | None, bytes | None]]) -> Fingerprint:
    values = pa.array([value for _, value in rows], pa.binary())
    return fingerprint(values, pa.array([key for key, _ in rows], pa.binary()))


@settings(deadline=None)
@given(rows=ROWS, data=st.data())
def test_order_and_cuts_do_not_matter(
    rows: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    assert of(shuffled[:cut]).plus(of(shuffled[cut:])) == of(rows)


@settings(deadline=None)
@given(rows=ROWS.filter(bool), data=st.data())
def test_slices_of_a_column_are_taken_for_themselves(
    rows: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(rows)))
    values = pa.array([value for _, value in rows], pa.binary()).slice(start)
    keys = pa.array([key for key, _ in rows], pa.binary()).slice(start)
    assert fingerprint(values, keys) == of(rows[start:])


@settings(deadline=None)
@given(rows=ROWS.filter(bool), data=st.data())
def test_a_byte_that_differs_is_noticed(
    rows: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    key, value = rows[at]
    changed = bytearray(value or b"x")
    changed[data.draw(st.integers(0, len(changed) - 1)) if changed else 0 :] = b"!"
    others = [*rows[:at], (key, bytes(changed)), *rows[at + 1 :]]
    assert (of(others) == of(rows)) == (sorted(map(repr, others)) == sorted(map(repr, rows)))


def test_key_and_value_are_told_apart() -> None:
    assert of([(b"a", b"b")]) != of([(b"b", b"a")])
    assert of([(b"a", b"1"), (b"b", b"2")]) != of([(b"a", b"2"), (b"b", b"1")])
    assert of([(None, b"")]) != of([(None, None)])


def test_no_rows() -> None:
    assert of([]) == NO_ROWS
