"""Tests durations in options and tables."""

import pytest

from barnabas.admin.wording import format_duration
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("1h30m", 5400),
        ("7d", 604_800),
        ("1.5h", 5400),
        ("1m 500ms", 60.5),
        ("1w2d", 777_600),
        ("0s", 0),
        ("PT1H", 3600),
        ("P1DT2H3M4S", 93_784),
    ],
)
def test_every_form_is_read(text: str, seconds: float) -> None:
    assert parse_duration_ms(text, "--by-duration") == seconds * 1000


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "5", "h", "1m1h", "1s1s", "0.5ms", "P1H", "1hPT1M", "-1h", "an hour"]
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(CommandError, match=r"--by-duration .* write 90s"):
        parse_duration_ms(text, "--by-duration")


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0.0s"),
        (340, "0.3s"),
        (12_900, "12s"),
        (60_000, "1m"),
        (3_665_000, "1h 1m"),
        (3_600_000, "1h"),
        (700_000_000, "8d 2h"),
    ],
)
def test_two_units_are_shown(duration_ms: int, text: str) -> None:
    assert format_duration(duration_ms) == text
