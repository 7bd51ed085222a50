"""Tests templates of byte strings: numbers are found by comparison, read and filled in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.byte_template import ByteTemplate, twin

numbers = st.integers(-(1 << 63), (1 << 63) - 1)
pieces = st.lists(st.binary(max_size=20), min_size=1, max_size=6)


def text(constants: list[bytes], values: list[int]) -> bytes:
    """Join constants with a number between each two."""
    parts = [constants[0]]
    for value, constant in zip(values, constants[1:], strict=True):
        parts += [value.to_bytes(8, "big", signed=True), constant]
    return b"".join(parts)


@given(constants=pieces, data=st.data())
def test_numbers_are_read_and_filled_in(constants: list[bytes], data: st.DataObject) -> None:
    count = len(constants) - 1
    few = st.lists(numbers, min_size=count, max_size=count)
    first, second = data.draw(few), data.draw(few)
    template = ByteTemplate(
        text(constants, first), text(constants, [twin(value) for value in first])
    )
    assert template.count == count
    assert template.first_constant == constants[0]
    assert template.read(text(constants, second)) == tuple(second)
    assert template.fill(second) == text(constants, second)


def test_another_text_is_not_read() -> None:
    template = ByteTemplate(text([b"ab", b"c"], [1]), text([b"ab", b"c"], [twin(1)]))
    assert template.read(text([b"ab", b"c"], [7])) == (7,)
    assert template.read(text([b"ax", b"c"], [7])) is None
    assert template.read(text([b"ab", b"d"], [7])) is None
    assert template.read(text([b"ab", b"cc"], [7])) is None


@pytest.mark.parametrize(
    ("one", "other"), [(b"abc", b"abcd"), (b"a" * 10, b"b" * 10), (b"\0" * 4, b"\xff" * 4)]
)
def test_texts_that_differ_otherwise_have_no_template(one: bytes, other: bytes) -> None:
    with pytest.raises(ValueError, match=r"texts|number"):
        ByteTemplate(one, other)
