"""What samples of a group's commits say: status, speed, ETA, retention margin and lost records.

The status follows Burrow's rules over a window of `WINDOW` samples. Burrow reads the commits
themselves; a watcher sees only the committed offset at intervals, so "a member commits the same
offset again" is seen as a commit that stands still while the partition is assigned to a member.

No rule has a threshold. A group that catches up is ok, however far it is behind.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from barnabas.monitor.states import GroupStatus

WINDOW = 10
"""How many samples the status looks at."""
SPEED_SAMPLES = 6
"""Over how many intervals a speed is measured: members commit in steps."""
NEVER = math.inf

SEVERITY = {
    GroupStatus.OK: 0,
    GroupStatus.UNKNOWN: 1,
    GroupStatus.BEHIND: 2,
    GroupStatus.REWOUND: 3,
    GroupStatus.STALLED: 4,
    GroupStatus.STOPPED: 5,
}
"""How bad a status is: stopped is worst, as records wait and no member reads them."""


def status(commits: Sequence[int], lags: Sequence[int], *, is_assigned: bool) -> GroupStatus:
    """Return what a group does with a partition, by its last samples, oldest first."""
    if any(after < before for before, after in pairwise(commits)):
        return GroupStatus.REWOUND
    if not all(lags) or any(after < before for before, after in pairwise(lags)):
        return GroupStatus.OK
    if len(lags) < WINDOW:
        return GroupStatus.UNKNOWN
    if commits[0] == commits[-1]:
        return GroupStatus.STALLED if is_assigned else GroupStatus.STOPPED
    return GroupStatus.BEHIND


def worst(found: Iterable[GroupStatus]) -> GroupStatus:
    """Return the worst status; unknown if there is none."""
    return max(found, key=SEVERITY.__getitem__, default=GroupStatus.UNKNOWN)


def speed(before: int, after: int, elapsed_ms: int) -> float | None:
    """Return how fast an offset advances; None if no time has passed."""
    return None if elapsed_ms <= 0 else max(0, after - before) * 1000 / elapsed_ms


def eta_s(lag: int | None, read_per_s: float | None, write_per_s: float | None) -> float | None:
    """Return in how many seconds nothing is left to read, at the present speeds."""
    if lag is None:
        return None
    if lag == 0:
        return 0.0
    if read_per_s is None or write_per_s is None:
        return None
    gain = read_per_s - write_per_s
    return lag / gain if gain > 0 else NEVER


def last_eta_s(found: Iterable[float | None]) -> float | None:
    """Return when the last partition is done; None if that depends on one that is unknown."""
    etas = list(found)
    if NEVER in etas:
        return NEVER
    known = [each for each in etas if each is not None]
    return max(known) if known and len(known) == len(etas) else None


def retention_margin_s(
    unread_from: int, start: int, read_per_s: float | None, start_per_s: float | None
) -> float | None:
    """Return in how many seconds the log start offset reaches the first unread record."""
    if start > unread_from:
        return 0.0
    if read_per_s is None or start_per_s is None:
        return None
    approach = start_per_s - read_per_s
    return (unread_from - start) / approach if approach > 0 else NEVER


class Loss(NamedTuple):
    """How many records a group lost in a partition, and up to where they are counted."""

    records: int
    counted_to: int


def loss(before: Loss | None, committed: int, start: int) -> Loss:
    """Count the records between a commit and a log start offset that passed it, each once.

    What was gone before the first sample does not count.
    """
    if before is None:
        return Loss(0, start)
    counted_to = max(before.counted_to, start)
    new = start - max(committed, before.counted_to)
    return Loss(before.records + max(0, new), counted_to)
