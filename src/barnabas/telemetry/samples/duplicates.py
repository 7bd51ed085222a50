"""Finds duplicate samples by comparing with the table's own files instead of operator state.

A sample is identified by its GPU (or MIG instance), its time and its metrics, as a 64-bit number. A
batch stores its numbers, sorted, in a small file beside the silver table, with the range of their
times. A new batch reads only files whose range overlaps its own, usually one, and a file is removed
once the watermark has passed it: older samples are refused as late, so duplicates of them need not
be detected.

Two different samples have the same number once in 2^64 pairs: at 16,384 samples a second and a
minute of memory, one sample in thirty years is wrongly refused, and is in the dead-letter topic.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Return hashes whose bits depend on all bits of the input (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64, copy=False) + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))


def text_numbers(texts: pa.Array) -> np.ndarray:
    """Return a number for each text, the same in every process."""
    from pandas.util import hash_array

    encoded = pc.dictionary_encode(texts)
    words = encoded.dictionary.to_numpy(zero_copy_only=False).astype(object)
    found: np.ndarray = hash_array(words, categorize=False)[encoded.indices.to_numpy()]
    return found


def source_numbers(gpus: pa.Array, instances: pa.Array) -> np.ndarray:
    """Return a number for each GPU, or for each instance if there is one."""
    numbers = text_numbers(gpus)
    if instances.null_count == len(instances):
        return numbers
    there = instances.is_valid().to_numpy(zero_copy_only=False)
    numbers[there] = mixed(numbers[there] ^ mixed(text_numbers(instances.filter(pa.array(there)))))
    return numbers


def sample_numbers(
    sources: np.ndarray, time_us: np.ndarray, values: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return the number of each sample.

    `sources` has the number of its GPU or instance, `others` that of the names of its metrics
    that have no column.
    """
    assert values.shape[1] <= 64, "each column has a bit"
    bits = np.uint64(1) << np.arange(values.shape[1], dtype=np.uint64)
    metrics = (~np.isnan(values)).astype(np.uint64) @ bits
    return mixed(mixed(sources ^ mixed(time_us)) ^ metrics ^ others)


@dataclass(frozen=True)
class Numbers:
    """The samples of one batch, part or run of messages; `sorted` is in ascending order."""

    low_us: int
    high_us: int
    sorted: np.ndarray


class Seen:
    """The samples seen so far."""

    def __init__(self, earlier: Iterable[Numbers] = ()) -> None:
        self._earlier = list(earlier)

    def add(self, time_us: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Add samples, and return which of them are duplicates."""
        repeated = np.ones(len(numbers), dtype=bool)
        if len(numbers) == 0:
            return repeated
        ordered, first = np.unique(numbers, return_index=True)
        repeated[first] = False
        low_us, high_us = int(time_us.min()), int(time_us.max())
        for other in self._earlier:
            if other.low_us <= high_us and low_us <= other.high_us:
                repeated |= _within(numbers, other.sorted)
        self._earlier.append(Numbers(low_us, high_us, ordered))
        return repeated


def _within(numbers: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    places = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: np.ndarray = ordered[places] == numbers
    return found
