"""Templates for byte strings that are constant except for some int64 numbers.

A template is found by comparison, not from a layout: the caller encodes a message twice, once
with its numbers and once with their complements (`twin`). The bytes that differ are numbers.
"""

import re
from collections.abc import Iterator, Sequence
from struct import Struct

NUMBER_BYTES = 8
_DIFFERENT = re.compile(rb"[^\0]+")


def twin(number: int) -> int:
    """Return the int64 that differs from a number in every bit."""
    return ~number


class ByteTemplate:
    """Constant bytes with int64 numbers between them."""

    __slots__ = ("_constants", "_parts", "_struct", "count")

    def __init__(self, text: bytes, twin_text: bytes) -> None:
        """Compare the two; raise `ValueError` if they differ in anything but whole numbers."""
        if len(text) != len(twin_text):
            raise ValueError("texts of different lengths have no common template")
        layout, end = ">", 0
        parts: list[bytes | int] = []
        for start in _number_positions(text, twin_text):
            layout += f"{start - end}sq"
            parts += [text[end:start], 0]
            end = start + NUMBER_BYTES
        self.count = len(parts) // 2
        self._struct = Struct(f"{layout}{len(text) - end}s")
        self._parts = [*parts, text[end:]]
        self._constants = tuple(self._parts[::2])

    @property
    def size(self) -> int:
        """The length of a text of this template."""
        return self._struct.size

    @property
    def first_constant(self) -> bytes:
        """The bytes before the first number."""
        first = self._constants[0]
        assert isinstance(first, bytes)
        return first

    def read(self, text: bytes | memoryview) -> tuple[int, ...] | None:
        """Return the numbers in a text; None if it does not match the template."""
        if len(text) != self._struct.size:
            return None
        found = self._struct.unpack(text)
        return found[1::2] if found[::2] == self._constants else None

    def fill(self, numbers: Sequence[int]) -> bytes:
        """Return the text with these numbers."""
        parts = self._parts.copy()
        parts[1::2] = numbers
        return self._struct.pack(*parts)


def _number_positions(text: bytes, twin_text: bytes) -> Iterator[int]:
    """Yield the positions of numbers; long texts are compared in one operation."""
    difference = (int.from_bytes(text, "big") ^ int.from_bytes(twin_text, "big")).to_bytes(
        len(text), "big"
    )
    for run in _DIFFERENT.finditer(difference):
        for start in range(run.start(), run.end(), NUMBER_BYTES):
            number = difference[start : start + NUMBER_BYTES]
            if number.strip(b"\xff"):
                raise ValueError(f"the texts differ at {start} in something else than a number")
            if len(number) < NUMBER_BYTES:
                raise ValueError("a number has no room at the end")
            yield start
