"""Checks the logs of group members against the guarantees of a consumer group.

A *tenure* is the time in which a member's own log shows it as the owner of a partition. It begins
when the callback reports "assigned", after the coordinator has granted the partition. Its end
depends on the reason:

    revoked           the end of the callback: the coordinator does not assign the partition to
                      another member before this one has confirmed the revocation
    lost, or the log  when the last commit was *sent* that the broker confirmed. A member that was
    just ends         fenced or killed learns of it late or never. But a confirmed commit shows
                      that it was a member when the broker handled the commit

So a tenure lies inside the time of true ownership, and two tenures of a partition must not
overlap. After the proven end of a tenure the member may have lost the partition. Records that it
processed then count as `unproven` if another member had committed them before, which is allowed.

The rules:

    missed       an acknowledged record that no member processed
    repeated     a record that was processed after a confirmed commit that covers it
    overlapping  two owners of one partition at the same time
    shared       two owners of one partition in one generation (member epoch)
    disordered   a tenure in which offsets are not consecutive
    unowned      a record processed by a member that was not its owner, by its own log
    strange      a record with another number than the one acknowledged at its offset
    failed       a client that raised an error that no member should get
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.support.members.membership_log import UNKNOWN_GENERATION, Kind, Line

SHOWN_MAX = 5
UNTOLD = {UNKNOWN_GENERATION}

Acknowledged = Mapping[int, Mapping[int, int]]
"""By partition and offset, the number of the record that was acknowledged there."""


@dataclass(slots=True)
class Tenure:
    """The time in which a member owned a partition, as far as its log proves it."""

    life: str
    owner: str
    """The instance id of a static member, or the name of this life."""
    partition: int
    generation: str
    since: int
    proven: int
    """The proven end."""
    is_open: bool = True
    processed: list[tuple[int, int, int]] = field(default_factory=list)
    """Time, offset and number of each record, in order."""

    def __str__(self) -> str:
        """Return a description for a report."""
        return f"{self.life}@{self.generation}"


@dataclass(kw_only=True)
class Findings:
    """The problems that all logs together show."""

    violations: list[str] = field(default_factory=list)
    processed: int = 0
    distinct: int = 0
    commits: int = 0
    tenures: int = 0
    generations: int = 0
    lost: int = 0
    unproven: int = 0
    """Repeats by members that may have been fenced before: allowed, but worth a look."""

    def figures(self) -> dict[str, int]:
        """Return the numbers of what was checked."""
        names = ("processed", "distinct", "commits", "tenures", "generations", "lost", "unproven")
        return {name: getattr(self, name) for name in names}


class Life:
    """One life of a member, read from its log."""

    def __init__(self, name: str, lines: Iterable[Line] = ()) -> None:
        self.name = name
        self.owner = name
        self.tenures: list[Tenure] = []
        self.commits: list[tuple[int, int, int]] = []
        """Time of confirmation, partition and next offset."""
        self.failures: list[str] = []
        self.unowned: list[tuple[int, int]] = []
        self.lost = 0
        self._open: dict[int, Tenure] = {}
        for line in lines:
            self.read(line)

    @property
    def owned(self) -> set[int]:
        """The partitions that it owns at the end of its log."""
        return set(self._open)

    def read(self, line: Line) -> None:
        """Handle the next line."""
        match line.kind:
            case Kind.JOINED:
                self.owner = line.text
            case Kind.ASSIGNED:
                self._assigned(line)
            case Kind.PROCESSED:
                self._processed(line)
            case Kind.COMMITTED:
                self._committed(line)
            case Kind.REVOKED | Kind.LOST:
                self._given_up(line)
            case Kind.FAILED:
                self.failures.append(line.text)
            case Kind.REFUSED | Kind.LEFT:
                return

    def _assigned(self, line: Line) -> None:
        for partition in line.partitions:
            self._begin(partition, line)

    def _given_up(self, line: Line) -> None:
        is_lost = line.kind is Kind.LOST
        self.lost += len(line.partitions) if is_lost else 0
        for partition in line.partitions:
            self._end(partition, None if is_lost else line.at)

    def _begin(self, partition: int, line: Line) -> None:
        """Handle an assignment; it may repeat partitions that continue in a new generation."""
        self._end(partition, line.at)
        tenure = Tenure(self.name, self.owner, partition, line.text, line.at, line.at)
        self._open[partition] = tenure
        self.tenures.append(tenure)

    def _end(self, partition: int, at: int | None) -> None:
        tenure = self._open.pop(partition, None)
        if tenure is not None:
            tenure.is_open = False
            tenure.proven = tenure.proven if at is None else at

    def _processed(self, line: Line) -> None:
        ((partition, offset),) = line.offsets
        if partition not in self._open:
            self.unowned.append((partition, offset))
            return
        self._open[partition].processed.append((line.at, offset, line.number))

    def _committed(self, line: Line) -> None:
        for partition, offset in line.offsets:
            self.commits.append((line.at, partition, offset))
        for tenure in self._open.values():
            tenure.proven = max(tenure.proven, line.sent)


def examine(logs: Mapping[str, Sequence[Line]], acknowledged: Acknowledged) -> Findings:
    """Check every rule against the logs of all members, by the name of each life."""
    lives = [Life(name, lines) for name, lines in sorted(logs.items())]
    by_partition: dict[int, list[Tenure]] = defaultdict(list)
    for life in lives:
        for tenure in life.tenures:
            by_partition[tenure.partition].append(tenure)
    found = Findings(
        commits=sum(len(life.commits) for life in lives),
        tenures=sum(map(len, by_partition.values())),
        generations=len({t.generation for life in lives for t in life.tenures} - UNTOLD),
        lost=sum(life.lost for life in lives),
    )
    for life in lives:
        found.violations += _of_life(life)
    commits = _commits(lives)
    for partition in sorted({*by_partition, *acknowledged}):
        tenures = sorted(by_partition[partition], key=lambda tenure: tenure.since)
        _examine_partition(
            found, partition, tenures, commits[partition], acknowledged.get(partition, {})
        )
    return found


def _of_life(life: Life) -> Iterator[str]:
    if life.failures:
        yield f"{life.name}: {len(life.failures)} failed: {life.failures[:SHOWN_MAX]}"
    if life.unowned:
        yield f"{life.name}: {len(life.unowned)} unowned: {life.unowned[:SHOWN_MAX]}"


class Commits:
    """The confirmed commits of one partition by time, each with the highest offset so far."""

    def __init__(self, commits: list[tuple[int, int]]) -> None:
        self._times: list[int] = []
        self._highest: list[int] = []
        highest = 0
        for at, offset in sorted(commits):
            highest = max(highest, offset)
            self._times.append(at)
            self._highest.append(highest)

    def before(self, at: int) -> int:
        """Return the highest offset that was confirmed before a time."""
        index = bisect_left(self._times, at)
        return self._highest[index - 1] if index else 0


def _commits(lives: Sequence[Life]) -> Mapping[int, Commits]:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for life in lives:
        for at, partition, offset in life.commits:
            found[partition].append((at, offset))
    made = {partition: Commits(commits) for partition, commits in found.items()}
    return defaultdict(lambda: Commits([]), made)


def _examine_partition(
    found: Findings,
    partition: int,
    tenures: Sequence[Tenure],
    commits: Commits,
    acknowledged: Mapping[int, int],
) -> None:
    seen = {offset for tenure in tenures for _, offset, _ in tenure.processed}
    repeated, unproven = _repeated(tenures, commits)
    found.processed += sum(len(tenure.processed) for tenure in tenures)
    found.distinct += len(seen)
    found.unproven += unproven
    rules: dict[str, Sequence[object]] = {
        "missed": sorted(acknowledged.keys() - seen),
        "repeated": list(repeated),
        "overlapping": list(_overlapping(tenures)),
        "shared": list(_shared(tenures)),
        "disordered": list(_disordered(tenures)),
        "strange": list(_strange(tenures, acknowledged)),
    }
    for rule, cases in rules.items():
        if cases:
            shown = ", ".join(map(str, cases[:SHOWN_MAX]))
            found.violations.append(f"partition {partition}: {len(cases)} {rule}: {shown}")


def _repeated(tenures: Sequence[Tenure], commits: Commits) -> tuple[list[str], int]:
    repeated, unproven = [], 0
    for tenure in tenures:
        for at, offset, _ in tenure.processed:
            if commits.before(at) <= offset:
                continue
            if at <= tenure.proven:
                repeated.append(f"{offset} by {tenure}")
            else:
                unproven += 1
    return repeated, unproven


def _overlapping(tenures: Sequence[Tenure]) -> Iterator[str]:
    """Yield overlapping neighbours; tenures come sorted by their start."""
    longest: Tenure | None = None
    for tenure in tenures:
        if tenure.proven == tenure.since:
            continue
        if longest is not None and tenure.since < longest.proven:
            overlap_ms = (min(longest.proven, tenure.proven) - tenure.since) / 1e6
            yield f"{longest} and {tenure} for {overlap_ms:.3f} ms"
        if longest is None or tenure.proven > longest.proven:
            longest = tenure


def _shared(tenures: Sequence[Tenure]) -> Iterator[str]:
    owners: dict[str, set[str]] = defaultdict(set)
    for tenure in tenures:
        if tenure.generation != UNKNOWN_GENERATION:
            owners[tenure.generation].add(tenure.owner)
    for generation, names in owners.items():
        if len(names) > 1:
            yield f"generation {generation} by {sorted(names)}"


def _disordered(tenures: Sequence[Tenure]) -> Iterator[str]:
    for tenure in tenures:
        for (_, before, _), (_, after, _) in pairwise(tenure.processed):
            if after != before + 1:
                yield f"{after} after {before} by {tenure}"


def _strange(tenures: Sequence[Tenure], acknowledged: Mapping[int, int]) -> Iterator[str]:
    for tenure in tenures:
        for _, offset, number in tenure.processed:
            if acknowledged.get(offset, number) != number:
                yield f"{number} at {offset}, not {acknowledged[offset]}"
