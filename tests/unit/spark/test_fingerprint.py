"""Tests fingerprints of rows: order and batches do not matter, every byte does."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint, fingerprint

CELL = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.binary(min_size=60, max_size=200),
    st.binary(min_size=500, max_size=530),
)
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
def test_slices_of_a_column_are_encoded_alone(
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
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] ^= data.draw(st.integers(1, 255))
    others = [*rows[:at], (key, bytes(changed)), *rows[at + 1 :]]
    assert of(others) != of(rows)


@settings(deadline=None)
@given(value=st.binary(min_size=2, max_size=2000), data=st.data())
def test_bytes_that_change_places_are_noticed(value: bytes, data: st.DataObject) -> None:
    one, other = (data.draw(st.integers(0, len(value) - 1)) for _ in range(2))
    changed = bytearray(value)
    changed[one], changed[other] = value[other], value[one]
    assert (of([(b"k", bytes(changed))]) == of([(b"k", value)])) == (value == changed)


@pytest.mark.parametrize("length", [100, 1000])
def test_bytes_that_move_from_row_to_row_are_noticed(length: int) -> None:
    """As numbers do in the middle of documents: the same sums of all bytes and of each place."""

    def rows(*numbers: bytes) -> list[tuple[bytes | None, bytes | None]]:
        return [(b"", number.center(length, b".")) for number in numbers]

    assert of(rows(b"12", b"34")) != of(rows(b"21", b"34"))
    assert of(rows(b"12", b"34")) != of(rows(b"14", b"32"))


def test_key_and_value_are_distinguished() -> None:
    assert of([(b"a", b"b")]) != of([(b"b", b"a")])
    assert of([(b"a", b"1"), (b"b", b"2")]) != of([(b"a", b"2"), (b"b", b"1")])
    assert of([(None, b"")]) != of([(None, None)])


def test_no_rows() -> None:
    assert of([]) == NO_ROWS
