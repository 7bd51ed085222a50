"""Tests gaps and their distributions, from recorded times."""

import pytest

from tests.support.clusters.cluster_failover import distribution, largest_gap_us


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([0, 10, 20, 30, 40], 10),
        ([0, 10, 35, 40], 25),
        ([0, 30, 10, 40], 20),
        ([0, 5, 10, 38], 28),
        ([0, 10], 30),
        ([], 30),
    ],
)
def test_the_largest_pause_since_a_time(times: list[int], gap: int) -> None:
    assert largest_gap_us(times, 10, 40) == gap


def test_a_pause_that_began_before_counts_whole() -> None:
    assert largest_gap_us([0, 30, 40], 10, 40) == 30


def test_a_pause_that_ended_before_does_not_count() -> None:
    assert largest_gap_us([0, 30, 32, 34, 36], 31, 36) == 2


def test_a_distribution_names_samples_that_were_measured() -> None:
    told = distribution([4.0, 1.0, 2.0, 3.0, 10.0])
    assert (told["n"], told["min_s"], told["max_s"]) == (5, 1.0, 10.0)
    assert (told["p50_s"], told["p90_s"]) == (3.0, 10.0)
    assert told["samples_s"] == [4.0, 1.0, 2.0, 3.0, 10.0]


def test_one_sample_is_all_there_is_to_say() -> None:
    told = distribution([2.5])
    assert (told["p50_s"], told["p90_s"]) == (2.5, 2.5)


def test_nothing_was_measured() -> None:
    assert distribution([]) == {"n": 0}
