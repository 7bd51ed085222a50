"""Tests durations: as text in Spark's format, or as a timedelta."""

from datetime import timedelta

import pytest

from barnabas.spark.helpers.intervals import Duration, microseconds, positive, spark_text


@pytest.mark.parametrize(
    ("duration", "length_us"),
    [
        ("10 seconds", 10_000_000),
        ("1 Minute 30 seconds", 90_000_000),
        ("interval 2 hours", 7_200_000_000),
        ("5 milliseconds", 5000),
        ("1 week", 604_800_000_000),
        (timedelta(seconds=1.5), 1_500_000),
        ("0 seconds", 0),
        ("90s", 90_000_000),
        ("1h30m", 5_400_000_000),
        ("500ms", 500_000),
        ("PT1H", 3_600_000_000),
    ],
)
def test_durations_are_read(duration: Duration, length_us: int) -> None:
    assert microseconds("length", duration) == length_us
    assert spark_text("length", duration) == f"{length_us} microseconds"


@pytest.mark.parametrize("text", ["", "10", "1 month", "1 year", "ten seconds", "10 seconds!"])
def test_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"lateness is .* write a duration like \"10 seconds\""):
        microseconds("lateness", text)


def test_nothing_and_less_are_refused() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        positive("length", "0 seconds")
    with pytest.raises(ValueError, match="negative"):
        positive("length", timedelta(seconds=-1))
