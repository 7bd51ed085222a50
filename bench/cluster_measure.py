"""Runs the three-broker benchmark: for each round, each system, each row.

Consecutive rows of one shape share a cluster on fresh folders; only one cluster runs at a time. A
row that fails is a sample with a reason, and the next one gets a new cluster.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.cluster_rows import ClusterRow
from bench.cluster_running import Cluster
from bench.cluster_systems import SYSTEMS
from bench.cluster_work import Pace, Press, warm_up
from bench.loads import Figures
from bench.measure import reason
from bench.results import Sample


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """What to run, how often, and how long."""

    rows: Sequence[ClusterRow]
    systems: Sequence[str]
    rounds: int
    pace: Pace

    @property
    def visits(self) -> list[tuple[int, str, list[ClusterRow]]]:
        """Which rows each system runs in each round; the order of systems alternates."""
        return [
            (number, system, rows)
            for number in range(1, self.rounds + 1)
            for system in (self.systems if number % 2 else reversed(self.systems))
            if (rows := [row for row in self.rows if is_due(row, system, number)])
        ]

    @property
    def steps(self) -> int:
        """How many rows a whole run has, with repetitions."""
        return sum(len(rows) for _, _, rows in self.visits)


def is_due(row: ClusterRow, system: str, number: int) -> bool:
    """Whether a row is for this system in this round."""
    return system in row.systems and (number == 1 or not row.is_once)


def run(
    plan: ClusterPlan, begin: Callable[[str], None], done: Callable[[], None]
) -> Generator[Sample]:
    """Yield samples, and report rows as they begin and end; closing it stops the nodes."""
    for number, system, rows in plan.visits:
        with Visit(plan.pace, system, number) as visit:
            for row in rows:
                begin(f"round {number}/{plan.rounds}, {system}: {row.section}: {row.title}")
                yield from visit.take(row)
                done()


class Visit:
    """One system in one round."""

    def __init__(self, pace: Pace, system: str, number: int) -> None:
        self._pace = pace
        self._system = system
        self._number = number
        self._stack = ExitStack()
        self._cluster: Cluster | None = None
        self._is_warm = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def take(self, row: ClusterRow) -> Iterator[Sample]:
        """One row: a sample for each of its turns, and one for an error."""
        try:
            for figures in row.work.run(self._cluster_for(row), self._pace):
                yield self._sample(row, figures)
        except Exception as error:  # noqa: BLE001 - whatever fails, the other rows go on
            self._leave()
            yield self._sample(row, {}, reason(error))
        if row.spoils:
            self._leave()

    def _cluster_for(self, row: ClusterRow) -> Cluster:
        """The running cluster if it has the right shape, or a new one."""
        if row.wants_fresh or self._cluster is None or self._cluster.shape != row.shape:
            self._leave()
            self._cluster = self._stack.enter_context(Cluster(SYSTEMS[self._system], row.shape))
        if isinstance(row.work, Press) and not self._is_warm:
            warm_up(self._cluster, self._pace)
            self._is_warm = True
        return self._cluster

    def _leave(self) -> None:
        self._stack.close()
        self._cluster = None
        self._is_warm = False

    def _sample(self, row: ClusterRow, figures: Figures, error: str = "") -> Sample:
        return Sample(
            row=row.key, broker=self._system, round=self._number, figures=figures, error=error
        )
