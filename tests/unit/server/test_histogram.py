"""Tests the histogram against sorted values."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.server.metrics.histogram import BUCKETS, Histogram


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
def test_quantiles_are_within_a_bucket_of_the_truth(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    assert (histogram.count, histogram.total) == (len(values), sum(values))
    ordered = sorted(values)
    found = histogram.quantiles([0.5, 0.99, 1.0])
    assert found is not None
    for quantile, shown in zip((0.5, 0.99, 1.0), found, strict=True):
        rank = max(1, -(-int(quantile * 1000) * len(values) // 1000))
        truth = ordered[min(rank, len(values)) - 1]
        assert truth / 2**0.51 - 1 <= shown <= truth * 2**0.51 + 1


def test_quantiles_forget_what_is_older_than_two_minutes() -> None:
    histogram = Histogram()
    histogram.observe(1_000_000)
    assert histogram.quantiles([0.5]) is not None
    histogram.pass_minute()
    histogram.observe(10)
    assert (histogram.quantiles([1.0]) or [0.0])[0] > 500_000
    histogram.pass_minute()
    assert (histogram.quantiles([1.0]) or [0.0])[0] < 20
    histogram.pass_minute()
    assert histogram.quantiles([0.5]) is None
    assert histogram.count == 2


def test_an_hour_fits() -> None:
    histogram = Histogram()
    histogram.observe(100 * 3600 * 1_000_000)
    assert len(histogram.counts) == BUCKETS
    assert histogram.count == 1
