"""Computes statistics of groups of values, for all groups at once.

Each value has the number of its group. One sort by group and value gives all percentiles and the
maximum; that is exact, and cheaper than sketches at the size of a window.
"""

from typing import NamedTuple

import numpy as np


class Summary(NamedTuple):
    """A number for each group, NaN for groups without values."""

    mean: np.ndarray
    p50: np.ndarray
    p95: np.ndarray
    max: np.ndarray


def summary(values: np.ndarray, groups: np.ndarray, count: int) -> Summary:
    """Return the statistics of each group; NaN values do not count."""
    there = ~np.isnan(values)
    if not there.all():
        values, groups = values[there], groups[there]
    ordered = values[np.lexsort((values, groups))]
    sizes = np.bincount(groups, minlength=count)
    starts = np.cumsum(sizes) - sizes
    sums = np.bincount(groups, weights=values, minlength=count)
    return Summary(
        divided(sums, sizes),
        _percentile(ordered, starts, sizes, 0.5),
        _percentile(ordered, starts, sizes, 0.95),
        _percentile(ordered, starts, sizes, 1.0),
    )


def divided(sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return quotients, NaN if the divisor is zero."""
    quotients: np.ndarray = np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0)
    return quotients


def share(holds: np.ndarray, counts: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the share of the relevant rows for which a condition holds, for each group."""
    held = np.bincount(groups[counts & holds], minlength=count)
    return divided(held.astype(np.float64), np.bincount(groups[counts], minlength=count))


def mean(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the mean of each group; NaN values do not count."""
    there = ~np.isnan(values)
    values, groups = values[there], groups[there]
    sums = np.bincount(groups, weights=values, minlength=count)
    return divided(sums, np.bincount(groups, minlength=count))


def last(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the last value of each group, in the order of rows, that is not NaN."""
    there = ~np.isnan(values)
    found = np.full(count, np.nan)
    found[groups[there]] = values[there]
    return found


def first(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the first value of each group, in the order of rows, that is not NaN."""
    return last(values[::-1], groups[::-1], count)


def _percentile(
    ordered: np.ndarray, starts: np.ndarray, sizes: np.ndarray, share_below: float
) -> np.ndarray:
    """Return a percentile by linear interpolation, like Spark's `percentile`."""
    found = np.full(len(sizes), np.nan)
    full = sizes > 0
    position = (sizes[full] - 1) * share_below
    below = np.floor(position).astype(np.int64)
    above = np.ceil(position).astype(np.int64)
    low, high = ordered[starts[full] + below], ordered[starts[full] + above]
    found[full] = low + (high - low) * (position - below)
    return found
