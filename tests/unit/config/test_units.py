"""Tests sizes, times, switches and numbers as operators write them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.units import (
    format_size,
    format_time,
    parse_boolean,
    parse_integer,
    parse_size,
    parse_time,
)
from barnabas.model.settings import DAY_MS, GIB, KIB, MIB


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("17", 17),
        ("17B", 17),
        ("100KB", 100 * KIB),
        ("16KiB", 16 * KIB),
        ("16 kb", 16 * KIB),
        ("1.5MB", 3 * MIB // 2),
        ("1g", GIB),
        ("2TB", 2048 * GIB),
        ("unlimited", -1),
        ("-1", -1),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("0", 0),
        ("250", 250),
        ("5ms", 5),
        ("1s", 1000),
        ("1.5s", 1500),
        ("5m", 300_000),
        ("5min", 300_000),
        ("24h", DAY_MS),
        ("7d", 7 * DAY_MS),
        ("1h30m", 5_400_000),
        ("Unlimited", -1),
    ],
)
def test_times(text: str, time_ms: int) -> None:
    assert parse_time(text) == time_ms


@pytest.mark.parametrize(
    "text", ["", "GB", "-2", "1e3", "1 000", "0.1", "1.GB", "\u0661", "1GB2", "1s"]
)
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller words the message
        parse_size(text)


@pytest.mark.parametrize("text", ["", "1x", "-5s", "0.5ms", "1:30", "1GB", "30m1h"])
def test_what_is_not_a_time(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller words the message
        parse_time(text)


def test_switches_and_whole_numbers() -> None:
    assert parse_boolean("Yes") is True
    assert parse_boolean("off") is False
    assert parse_integer(" 12 ") == 12
    with pytest.raises(ValueError, match="1_0"):
        parse_integer("1_0")


@given(st.integers(min_value=-1, max_value=2**63))
def test_a_size_reads_back_as_it_was_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(min_value=-1, max_value=2**63))
def test_a_time_reads_back_as_it_was_written(time_ms: int) -> None:
    assert parse_time(format_time(time_ms)) == time_ms


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from(["KB", "MB", "GB"]))
def test_a_unit_is_kept_or_made_larger(count: int, unit: str) -> None:
    written = format_size(parse_size(f"{count}{unit}"))
    assert len(written) <= len(f"{count}{unit}")


@given(st.text(max_size=20))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    for parse in (parse_size, parse_time, parse_integer):
        with contextlib.suppress(ValueError):
            assert isinstance(parse(text), int)
