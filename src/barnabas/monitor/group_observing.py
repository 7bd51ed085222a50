"""The groups of a cluster: lag in records and in time, status, ETA and lost records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.admin.scopes import Place
from barnabas.monitor import lag_rules
from barnabas.monitor.cluster_answers import Collected, GroupAnswer
from barnabas.monitor.group_tracks import FORGOTTEN_AFTER, GroupTrack
from barnabas.monitor.sample_history import POINTS_MAX, EndHistory, Sample, StartHistory
from barnabas.monitor.states import (
    GroupMember,
    GroupPartitionState,
    GroupState,
    GroupStatus,
)

READS_MAX = 500
"""How many timestamps of records are read in one collection."""
CHART_POINTS_OF_ALL = 1_000_000
"""How many points the charts of all groups may hold together."""
CHART_POINTS_MIN = 30

Record = tuple[Place, int]
"""A partition and an offset."""


class Moment(NamedTuple):
    """One collection, with the last known offsets and the speeds of partitions."""

    collected: Collected
    sample: Sample
    write_per_s: Mapping[Place, float | None]
    """How fast each partition's end advances."""


class GroupObserver:
    """The samples of all groups."""

    def __init__(
        self, ends: Mapping[Place, EndHistory], starts: Mapping[Place, StartHistory]
    ) -> None:
        """Take the histories of partitions, which the caller keeps up to date."""
        self._ends = ends
        self._starts = starts
        self._tracks: dict[str, GroupTrack] = {}
        self._answers: dict[str, GroupAnswer] = {}
        self._written_ms: dict[Record, int] = {}
        self._read_next = 0

    def track(self, name: str) -> GroupTrack | None:
        """Return the samples of a group."""
        return self._tracks.get(name)

    def unread(self, collected: Collected) -> list[Record]:
        """Return the records whose timestamps are needed and not yet known, some in turn."""
        wanted = {
            (place, unread_from)
            for group in collected.groups.values()
            for place, unread_from in _unread(group, collected.starts, collected.ends)
            if self._is_before_samples(place, unread_from)
        }
        self._written_ms = {key: at for key, at in self._written_ms.items() if key in wanted}
        missing = sorted(wanted - self._written_ms.keys())
        if len(missing) <= READS_MAX:
            return missing
        first = self._read_next % len(missing)
        self._read_next = first + READS_MAX
        return (missing[first:] + missing[:first])[:READS_MAX]

    def observe(self, now: Moment) -> dict[str, GroupState]:
        """Return the state of all groups after one more collection."""
        collected = now.collected
        self._written_ms.update(collected.written_ms)
        self._answers = self._merged(collected)
        share = CHART_POINTS_OF_ALL // max(1, len(self._answers))
        most = max(CHART_POINTS_MIN, min(POINTS_MAX, share))
        states = {}
        for name, answer in self._answers.items():
            track = self._tracks.setdefault(name, GroupTrack())
            fresh = collected.groups.get(name)
            if fresh is not None and fresh.commits is not None:
                _take(track, fresh.commits, collected)
            partitions = self._partitions(answer, track, now)
            track.chart(collected.wall_ms, *_lag_of(partitions), most)
            states[name] = _group(answer, partitions, track, now)
        return states

    def _merged(self, collected: Collected) -> dict[str, GroupAnswer]:
        """Return all groups; what was not answered keeps its last value."""
        found: dict[str, GroupAnswer] = {}
        for name, answer in sorted(collected.groups.items()):
            before = self._answers.get(name)
            if before is not None and answer.members is None:
                answer = replace(answer, members=before.members, assignor=before.assignor)  # noqa: PLW2901
            if before is not None and answer.commits is None:
                answer = replace(answer, commits=before.commits)  # noqa: PLW2901
            found[name] = answer
        missing = self._answers.keys() - found.keys()
        if not collected.has_all_groups:
            found.update({name: self._answers[name] for name in missing})
        self._forget(found)
        return found

    def _forget(self, found: Mapping[str, GroupAnswer]) -> None:
        for name, track in list(self._tracks.items()):
            track.absent = 0 if name in found else track.absent + 1
            if track.absent > FORGOTTEN_AFTER:
                del self._tracks[name]

    def _partitions(
        self, answer: GroupAnswer, track: GroupTrack, now: Moment
    ) -> tuple[GroupPartitionState, ...]:
        commits = answer.commits or {}
        owners = {at: member for member in answer.members or () for at in member.partitions}
        places = sorted({*commits, *owners})
        track.keep(places)
        return tuple(
            self._partition(place, commits.get(place), owners.get(place), track, now)
            for place in places
        )

    def _partition(
        self,
        place: Place,
        committed: int | None,
        owner: GroupMember | None,
        track: GroupTrack,
        now: Moment,
    ) -> GroupPartitionState:
        end, samples = now.sample.ends.get(place), track.partitions.get(place)
        lag = None if committed is None or end is None else max(0, end - committed)
        read_per_s = None if samples is None else samples.read_per_s
        is_assigned = owner is not None
        loss = None if samples is None else samples.loss
        return GroupPartitionState(
            topic=place[0],
            number=place[1],
            committed=committed,
            end=end,
            lag=lag,
            lag_s=self._lag_s(place, committed, lag, now),
            read_per_s=read_per_s,
            retention_margin_s=self._margin_s(place, committed, lag, read_per_s, now),
            lost_records=0 if loss is None else loss.records,
            status=GroupStatus.UNKNOWN
            if samples is None
            else samples.status(is_assigned=is_assigned),
            member_id=None if owner is None else owner.member_id,
            client_id=None if owner is None else owner.client_id,
            host=None if owner is None else owner.host,
        )

    def _lag_s(
        self, place: Place, committed: int | None, lag: int | None, now: Moment
    ) -> float | None:
        """Return how long ago the end passed the first unread record that still exists."""
        if committed is None or not lag:
            return None if lag is None else 0.0
        unread_from = max(committed, now.sample.starts.get(place, 0))
        history = self._ends.get(place)
        passed_ms = None if history is None else history.passed_ms(unread_from)
        if passed_ms is not None:
            return max(0, now.collected.at_ms - passed_ms) / 1000
        written_ms = self._written_ms.get((place, unread_from))
        return None if written_ms is None else max(0, now.collected.wall_ms - written_ms) / 1000

    def _margin_s(
        self,
        place: Place,
        committed: int | None,
        lag: int | None,
        read_per_s: float | None,
        now: Moment,
    ) -> float | None:
        if committed is None or not lag:
            return None if lag is None else lag_rules.NEVER
        start, history = now.sample.starts.get(place), self._starts.get(place)
        if start is None or history is None:
            return None
        start_per_s = history.per_s(now.sample.at_ms)
        return lag_rules.retention_margin_s(committed, start, read_per_s, start_per_s)

    def _is_before_samples(self, place: Place, unread_from: int) -> bool:
        history = self._ends.get(place)
        return history is None or not history.ends or unread_from < history.ends[0]


def _group(
    answer: GroupAnswer,
    partitions: tuple[GroupPartitionState, ...],
    track: GroupTrack,
    now: Moment,
) -> GroupState:
    lag, lag_s = _lag_of(partitions)
    judged = [each for each in partitions if each.lag is not None]
    speeds = [each.read_per_s for each in judged if each.read_per_s is not None]
    write = now.write_per_s
    return GroupState(
        name=answer.name,
        type=answer.type,
        state=answer.state,
        assignor=answer.assignor,
        coordinator=answer.coordinator,
        members=tuple(answer.members or ()),
        partitions=partitions,
        lag=lag,
        lag_s=lag_s,
        read_per_s=sum(speeds) if speeds else None,
        eta_s=lag_rules.last_eta_s(
            lag_rules.eta_s(each.lag, each.read_per_s, write.get((each.topic, each.number)))
            for each in judged
        ),
        retention_margin_s=_smallest(each.retention_margin_s for each in judged),
        status=lag_rules.worst(each.status for each in judged),
        lag_trend=tuple(track.trend),
    )


def _lag_of(partitions: Sequence[GroupPartitionState]) -> tuple[int | None, float | None]:
    """Return the lag of a group in records and in time, over all partitions where it is known."""
    known = [each.lag for each in partitions if each.lag is not None]
    return (sum(known) if known else None), _largest(each.lag_s for each in partitions)


def used_topics(groups: Iterable[GroupState]) -> Mapping[str, set[str]]:
    """Return the groups that have commits for a topic or are assigned its partitions."""
    found: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for each in group.partitions:
            found[each.topic].add(group.name)
    return found


def _take(track: GroupTrack, commits: Mapping[Place, int], collected: Collected) -> None:
    """Take a sample of each partition whose offsets were answered too."""
    for place, committed in commits.items():
        end = collected.ends.get(place)
        if end is not None:
            start = collected.starts.get(place, 0)
            track.track(place).add(collected.at_ms, committed, start, end)


def _unread(
    group: GroupAnswer, starts: Mapping[Place, int], ends: Mapping[Place, int]
) -> Iterable[Record]:
    for place, committed in (group.commits or {}).items():
        unread_from = max(committed, starts.get(place, 0))
        if unread_from < ends.get(place, 0):
            yield place, unread_from


def _largest(values: Iterable[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)


def _smallest(values: Iterable[float | None]) -> float | None:
    return min((each for each in values if each is not None), default=None)
