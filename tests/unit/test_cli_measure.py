"""Tests the arithmetic of benchmarks."""

import pytest

from barnabas.cli.bench.bench_figures import Latencies, Pace, Result, at


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50.0), (0.9, 90.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)]
)
def test_percentiles_are_measurements(share: float, value: float) -> None:
    assert at([float(each) for each in range(1, 101)], share) == value


def test_one_measurement_is_every_percentile() -> None:
    latencies = Latencies()
    latencies.add(0.002)
    assert set(latencies.percentiles().values()) == {2.0}


def test_nothing_measured_has_no_percentiles() -> None:
    assert Latencies().percentiles() == {}


def test_a_missed_rate_is_caught_up_with() -> None:
    pace = Pace(10, 100.0)
    assert pace.wait_s(5, 100.0) == pytest.approx(0.5)
    assert pace.wait_s(5, 103.0) == 0.0
    assert Pace(None, 100.0).wait_s(5, 100.0) == 0.0


def test_rates() -> None:
    result = Result(name="produce", records=1000, bytes=2_000_000, seconds=2.0)
    assert result.records_per_second == 500
    assert result.megabytes_per_second == 1
    assert "500 records/s" in result.lines()[0]
