"""Series for charts: of the cluster, of brokers, topics and groups."""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from barnabas.admin.scopes import Place
from barnabas.monitor.group_tracks import GroupTrack
from barnabas.monitor.sample_history import POINTS_MAX, EndHistory
from barnabas.monitor.states import ClusterState, Series

OF_CLUSTER = (
    "records_per_s",
    "bytes_per_s",
    "bytes_in_per_s",
    "bytes_out_per_s",
    "produce_p99_s",
    "fetch_p99_s",
)
OF_BROKER = (
    "records_per_s",
    "bytes_in_per_s",
    "bytes_out_per_s",
    "produce_p99_s",
    "fetch_p99_s",
    "loop_busy_ratio",
)
Point = Sequence[float | None]


class ChartHistory:
    """The last values of cluster and brokers; those of topics come from their end offsets."""

    def __init__(self, ends: Mapping[Place, EndHistory]) -> None:
        self._ends = ends
        self._times: deque[tuple[int, int]] = deque(maxlen=POINTS_MAX)
        self._cluster: deque[Point] = deque(maxlen=POINTS_MAX)
        self._brokers: dict[int, deque[tuple[int, Point]]] = {}

    def add(self, at_ms: int, state: ClusterState) -> None:
        """Take the values of one collection, and its time by the monotonic clock."""
        self._times.append((at_ms, state.taken_ms))
        known = [each.lag for each in state.groups.values() if each.lag is not None]
        lag = float(sum(known)) if known else None
        self._cluster.append((*(getattr(state, name) for name in OF_CLUSTER), lag))
        for broker, figures in state.figures.items():
            points = self._brokers.setdefault(broker, deque(maxlen=POINTS_MAX))
            points.append((state.taken_ms, [getattr(figures, name) for name in OF_BROKER]))

    def cluster(self) -> Series:
        """Return the series of the cluster."""
        return _series([wall for _, wall in self._times], (*OF_CLUSTER, "lag"), self._cluster)

    def broker(self, broker: int) -> Series:
        """Return the series of one broker, from its /metrics."""
        points = self._brokers.get(broker, ())
        return _series([wall for wall, _ in points], OF_BROKER, [each for _, each in points])

    def topic(self, places: Sequence[Place]) -> Series:
        """Return how fast records arrived in these partitions."""
        histories = [self._ends[place] for place in places if place in self._ends]
        return Series(
            times_ms=[wall for _, wall in self._times],
            values={"records_per_s": [None, *self._speeds(histories)][: len(self._times)]},
        )

    def group(self, track: GroupTrack | None) -> Series:
        """Return the lag of a group, in records and in time."""
        lags: list[float | None] = []
        ages: list[float | None] = []
        for _, wall_ms in self._times:
            index = 0 if track is None else bisect_right(track.chart_ms, wall_ms)
            known = track is not None and index > 0
            lags.append(track.chart_lag[index - 1] if track is not None and known else None)
            age_s = track.chart_lag_s[index - 1] if track is not None and known else float("nan")
            ages.append(None if age_s != age_s else age_s)  # noqa: PLR0124 - only NaN differs
        return Series(
            times_ms=[wall for _, wall in self._times], values={"lag": lags, "lag_s": ages}
        )

    def _speeds(self, histories: Sequence[EndHistory]) -> list[float | None]:
        found: list[float | None] = []
        for (before_ms, _), (after_ms, _) in pairwise(self._times):
            known = [
                (before, after)
                for history in histories
                if (before := history.end_at(before_ms)) is not None
                and (after := history.end_at(after_ms)) is not None
            ]
            records = sum(after - before for before, after in known)
            found.append(records * 1000 / max(1, after_ms - before_ms) if known else None)
        return found


def _series(times_ms: Sequence[int], names: Sequence[str], points: Sequence[Point]) -> Series:
    columns = list(zip(*points, strict=True)) if points else [()] * len(names)
    return Series(times_ms=times_ms, values=dict(zip(names, columns, strict=True)))
