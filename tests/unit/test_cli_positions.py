"""Tests the values of --from and --until."""

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import (
    At,
    Before,
    Beginning,
    End,
    Since,
    parse_position,
    parse_time_ms,
    parse_until,
)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", Beginning()),
        ("end", End()),
        ("0", At(0)),
        ("1234", At(1234)),
        ("-10", Before(10)),
        ("@1700000000000", Since(1_700_000_000_000)),
        ("@2023-11-14T22:13:20Z", Since(1_700_000_000_000)),
        ("@2023-11-14T23:13:20+01:00", Since(1_700_000_000_000)),
    ],
)
def test_every_form_is_read(text: str, position: object) -> None:
    assert parse_position(text) == position


@pytest.mark.parametrize("text", ["", "start", "1.5", "--3", "@", "@yesterday", "-"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(AdminError, match=r"2026-03-01T12:00:00Z"):
        parse_position(text)


def test_milliseconds_keep_their_digits() -> None:
    assert parse_time_ms("2023-11-14T22:13:20.123Z") == 1_700_000_000_123


@pytest.mark.parametrize("text", ["beginning", "-5"])
def test_until_takes_only_what_can_be_reached(text: str) -> None:
    with pytest.raises(AdminError, match="write end, an OFFSET, or @TIME"):
        parse_until(text)
