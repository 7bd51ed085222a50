"""Merges runs of offsets with a delivery state.

A share partition's state is a sorted list of runs (`StateBatch`) without overlaps. Neighbours that
are alike are joined, so that the list is as short as possible. A new run overrides older ones where
they overlap, and what lies below the start offset is dropped:

    stored     |--- available, 1 ---|        |-- archived, 5 --|
    new                  |- acknowledged, 1 -|
    merged     |- av., 1 |- acknowledged, 1 -|-- archived, 5 --|

A merge costs a binary search and the runs that it touches, and not the length of the list.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from barnabas.model.share_state import StateBatch

_FIRST, _LAST = attrgetter("first"), attrgetter("last")


def merged(
    stored: Iterable[StateBatch], newer: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """Return stored runs overridden by newer ones, from a start offset on."""
    batches = list(stored)
    merge(batches, newer, start_offset)
    return batches


def without_older(stored: Sequence[StateBatch], newer: Iterable[StateBatch]) -> list[StateBatch]:
    """Return runs without the parts for which the stored delivery count is higher.

    They come from a write that was overtaken by a later one: a delivery count never decreases.
    """
    kept: list[StateBatch] = []
    for batch in newer:
        first = batch.first
        low = bisect_left(stored, batch.first, key=_LAST)
        for each in stored[low : bisect_right(stored, batch.last, key=_FIRST)]:
            if each.deliveries > batch.deliveries:
                if each.first > first:
                    kept.append(batch._replace(first=first, last=each.first - 1))
                first = each.last + 1
        if first <= batch.last:
            kept.append(batch._replace(first=first))
    return kept


def merge(batches: list[StateBatch], newer: Iterable[StateBatch], start_offset: int) -> None:
    """Override runs of a list in place by newer ones; drop what is below the start offset."""
    _drop_below(batches, start_offset)
    for batch in newer:
        if batch.last >= start_offset:
            _put(batches, batch._replace(first=max(batch.first, start_offset)))


def _drop_below(batches: list[StateBatch], start_offset: int) -> None:
    del batches[: bisect_left(batches, start_offset, key=_LAST)]
    if batches and batches[0].first < start_offset:
        batches[0] = batches[0]._replace(first=start_offset)


def _put(batches: list[StateBatch], new: StateBatch) -> None:
    """Replace the runs that a new one overlaps or touches."""
    low = bisect_left(batches, new.first - 1, key=_LAST)
    high = bisect_right(batches, new.last + 1, key=_FIRST)
    kept: list[StateBatch] = []
    if low < high:
        before, after = batches[low], batches[high - 1]
        if after.last > new.last:
            kept.append(after._replace(first=max(after.first, new.last + 1)))
            if _are_alike(after, new):
                new = new._replace(last=kept.pop().last)
        if before.first < new.first:
            kept.insert(0, before._replace(last=min(before.last, new.first - 1)))
            if _are_alike(before, new):
                new = new._replace(first=kept.pop(0).first)
    place = bisect_left(kept, new.first, key=_FIRST)
    kept.insert(place, new)
    batches[low:high] = kept


def _are_alike(one: StateBatch, other: StateBatch) -> bool:
    return one.state is other.state and one.deliveries == other.deliveries
