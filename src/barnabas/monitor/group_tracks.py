"""The samples of one group: what its status, speeds, losses and charts are computed from."""

from array import array
from collections import deque
from collections.abc import Collection

from barnabas.admin.scopes import Place
from barnabas.monitor import lag_rules
from barnabas.monitor.lag_rules import WINDOW, Loss
from barnabas.monitor.states import GroupStatus

TREND_POINTS = 30
FORGOTTEN_AFTER = 10
"""After how many collections without a group its samples are dropped."""


class PartitionTrack:
    """The last samples of one partition of a group, oldest first."""

    __slots__ = ("commits", "lags", "loss", "times_ms")

    def __init__(self) -> None:
        self.times_ms = array("q")
        self.commits = array("q")
        self.lags = array("q")
        self.loss: Loss | None = None

    def add(self, at_ms: int, committed: int, start: int, end: int) -> None:
        """Take a sample."""
        if len(self.commits) == WINDOW:
            del self.times_ms[0], self.commits[0], self.lags[0]
        self.times_ms.append(at_ms)
        self.commits.append(committed)
        self.lags.append(max(0, end - committed))
        self.loss = lag_rules.loss(self.loss, committed, start)

    def status(self, *, is_assigned: bool) -> GroupStatus:
        """Return the status by the rules of `lag_rules`."""
        return lag_rules.status(self.commits, self.lags, is_assigned=is_assigned)

    @property
    def read_per_s(self) -> float | None:
        """How fast the commit advances."""
        if len(self.commits) < 2:
            return None
        first = max(0, len(self.commits) - 1 - lag_rules.SPEED_SAMPLES)
        elapsed_ms = self.times_ms[-1] - self.times_ms[first]
        return lag_rules.speed(self.commits[first], self.commits[-1], elapsed_ms)


class GroupTrack:
    """The samples of a group."""

    __slots__ = ("absent", "chart_lag", "chart_lag_s", "chart_ms", "partitions", "trend")

    def __init__(self) -> None:
        self.partitions: dict[Place, PartitionTrack] = {}
        self.trend: deque[int] = deque(maxlen=TREND_POINTS)
        self.chart_ms = array("q")
        self.chart_lag = array("q")
        self.chart_lag_s = array("f")
        self.absent = 0
        """For how many collections the group has not been seen."""

    def track(self, place: Place) -> PartitionTrack:
        """Return the samples of one partition."""
        found = self.partitions.get(place)
        if found is None:
            found = self.partitions[place] = PartitionTrack()
        return found

    def keep(self, places: Collection[Place]) -> None:
        """Forget all other partitions."""
        if len(self.partitions) > len(places):
            self.partitions = {at: self.partitions[at] for at in places if at in self.partitions}

    def chart(self, wall_ms: int, lag: int | None, lag_s: float | None, points_max: int) -> None:
        """Add a point to the charts; an idle group has one point until that changes."""
        if lag is None:
            return
        self.trend.append(lag)
        age_s = float("nan") if lag_s is None else lag_s
        if self.chart_lag and self.chart_lag[-1] == lag and self.chart_lag_s[-1] == age_s:
            return
        self.chart_ms.append(wall_ms)
        self.chart_lag.append(lag)
        self.chart_lag_s.append(age_s)
        surplus = len(self.chart_ms) - points_max
        if surplus > 0:
            del self.chart_ms[:surplus], self.chart_lag[:surplus], self.chart_lag_s[:surplus]
