"""Detects wrong clocks: the silver job measures the skew, the findings job reports it.

    silver: samples ahead of the broker's clock, samples that are late -> Skew, in the batch's note
    findings: the Skews whose window gold has closed -> clock_skew

A sample cannot be ahead of the broker's clock. A late sample may have waited in its collector: then
many arrive together, with different times. With a wrong clock they arrive one by one, each with the
same delay. A card that also sends samples in time has a correct clock, see `fleet`.

The windows of Skews depend on event time only, so that a repeated batch of findings has the same
result.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from barnabas.telemetry.lake.lake import Lake

WINDOW_US = 10_000_000
SKEWS_MAX = 1_000
"""The limit in the note of a batch: enough to name the hosts if a whole fleet is wrong."""
SOURCE = "silver"
_CONTEXT = ("gpu_id", "hostname", "model", "namespace")

State = dict[str, int]
"""The position of the findings job: the next batch of silver, and event time."""


class Skew(NamedTuple):
    """The error of a card's clock in a window of the fleet's event time."""

    gpu_id: str
    hostname: str | None
    model: str | None
    namespace: str | None
    window_end: int
    skew_s: float
    """The error in seconds, positive if the clock is ahead."""
    samples: int
    refused: int

    @property
    def detail(self) -> str:
        """The sentence of the finding."""
        where = "ahead of" if self.skew_s > 0 else "behind"
        text = f"its clock is {abs(self.skew_s):.0f} s {where} the broker's"
        return f"{text}: {self.refused} samples were refused" if self.refused else text


def observed(
    identity: Mapping[str, Sequence[str | None]],
    places: np.ndarray,
    times_us: tuple[np.ndarray, np.ndarray, np.ndarray],
    skew_us: np.ndarray,
    refused: np.ndarray,
    patience_us: int,
) -> list[Skew]:
    """Return the Skews of cards with suspicious samples.

    `places` are their places in `identity`; the other arrays have an entry for each of them.
    `times_us` are the sample's time, the broker's, and that of the fleet.
    """
    groups: defaultdict[tuple[tuple[str | None, ...], int], list[int]] = defaultdict(list)
    ends = (times_us[2] // WINDOW_US + 1) * WINDOW_US
    for index, (place, end) in enumerate(zip(places.tolist(), ends.tolist(), strict=True)):
        card = tuple(identity[name][place] for name in _CONTEXT)
        groups[card, end].append(index)
    found = []
    for (card, end), members in groups.items():
        sent, arrived = (times_us[which][members] for which in (0, 1))
        if np.ptp(sent) <= np.ptp(arrived) + patience_us:
            skew_s = round(median(skew_us[members].tolist()) / 1e6, 1)
            count = int(refused[members].sum())
            found.append(Skew._make((*card, end, skew_s, len(members), count)))
    return found


def merged(parts: Iterable[Iterable[Sequence[Any]]], event_us: int | None) -> list[Skew]:
    """Return the Skews of a batch: one for each card and window, none beyond event time."""
    if event_us is None:
        return []
    last_end = _end(event_us)
    by_key: dict[tuple[str, int], Skew] = {}
    for each in (Skew(*values) for part in parts for values in part):
        skew = each._replace(window_end=min(each.window_end, last_end))
        key = skew.gpu_id, skew.window_end
        known = by_key.get(key)
        by_key[key] = skew if known is None else _together([known, skew])
    found = list(by_key.values())
    if len(found) > SKEWS_MAX:
        found = _thinned(found)
    ordered = sorted(found, key=lambda one: (-one.refused, one.gpu_id, one.window_end))
    return ordered[:SKEWS_MAX]


def _thinned(skews: Iterable[Skew]) -> list[Skew]:
    """Combine adjacent windows of a card, so that a backlog names every card."""
    by_card: defaultdict[str, list[Skew]] = defaultdict(list)
    for each in sorted(skews, key=lambda one: one.window_end):
        by_card[each.gpu_id].append(each)
    total = sum(map(len, by_card.values()))
    room = max(
        1, SKEWS_MAX - len(by_card)
    )  # the last window of a card may have no window beside it
    count = -(-total // room)
    return [
        _together(windows[start : start + count])
        for windows in by_card.values()
        for start in range(0, len(windows), count)
    ]


def _together(skews: Sequence[Skew]) -> Skew:
    """Combine Skews of one card: the most common skew, all samples, the last window."""
    return max(skews, key=lambda one: one.samples)._replace(
        samples=sum(each.samples for each in skews),
        refused=sum(each.refused for each in skews),
        window_end=max(each.window_end for each in skews),
    )


def due(lake: Lake, state: State | None, ends: Iterable[int]) -> tuple[list[Skew], State]:
    """Return the Skews up to the last of some windows, each with the end of one of them."""
    closed = sorted(set(ends))
    if state is None:
        state = {"batch": 0, "us": 0}
    if not closed:
        return [], state
    found: list[Skew] = []
    batch = state["batch"]
    while (note := lake.note(SOURCE, batch)) is not None:
        for skew in (Skew(*values) for values in note.get("skews", ())):
            if state["us"] < skew.window_end <= closed[-1]:
                end = next(each for each in closed if each >= skew.window_end)
                found.append(skew._replace(window_end=end))
        if note["event_us"] is not None and _end(note["event_us"]) > closed[-1]:
            break
        batch += 1
    return found, {"batch": batch, "us": closed[-1]}


def _end(time_us: int) -> int:
    return (time_us // WINDOW_US + 1) * WINDOW_US
