"""Tests how bytes of a terminal become keys, whole and in pieces."""

import os
from contextlib import closing

import pytest

from barnabas.top.top_terminal import Keyboard, keys_in
from barnabas.top.top_view import Key


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"q", [Key.QUIT]),
        (b"jk\x1b[A\x1b[B", [Key.DOWN, Key.UP, Key.UP, Key.DOWN]),
        (b"\x1bOA\x1b[5~\x1b[6~", [Key.UP, Key.PAGE_UP, Key.PAGE_DOWN]),
        (b"\x1b", [Key.BACK]),
        (b"\t\x1b[Z\r", [Key.NEXT, Key.BEFORE, Key.OPEN]),
        (b"\x1b[1;5Azs", [Key.SORT]),
        (b"\x1b[200~", []),
        (b"\x1b[", []),
        (b"\xff\x00", []),
    ],
)
def test_keys(content: bytes, expected: list[Key]) -> None:
    assert keys_in(content) == expected


def test_an_arrow_that_comes_in_pieces() -> None:
    reader, writer = os.pipe()
    with closing(Keyboard(reader)) as keyboard:
        os.write(writer, b"\x1b")
        os.write(writer, b"[A")
        assert keyboard.wait(5) == [Key.UP]
        os.write(writer, b"\x1b")
        assert keyboard.wait(5) == [Key.BACK]
        os.close(writer)
        assert keyboard.wait(5) == []
        assert keyboard.is_over, "the terminal is gone"
    os.close(reader)


def test_wake_and_end() -> None:
    with closing(Keyboard(None)) as keyboard:
        keyboard.wake()
        assert keyboard.wait(60) == []
        assert not keyboard.is_over
        keyboard.end()
        assert keyboard.wait(60) == []
        assert keyboard.is_over
