"""Turns the answers of brokers into the state of a cluster, collection after collection.

An observer does no I/O and asks no clock: `observe(collected)` returns the next `ClusterState`. It
keeps a bounded history, from which it computes speeds, the lag in time and the status of groups.
What one collection did not bring keeps its last value.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from barnabas.admin.cluster_overview import overview
from barnabas.admin.health import Health, Verdict, verdict
from barnabas.admin.scopes import Place
from barnabas.monitor import lag_rules
from barnabas.monitor.chart_history import ChartHistory
from barnabas.monitor.cluster_answers import Collected
from barnabas.monitor.disk_forecast import DiskForecast
from barnabas.monitor.group_observing import GroupObserver, Moment, used_topics
from barnabas.monitor.group_tracks import GroupTrack
from barnabas.monitor.sample_history import EndHistory, Sample, StartHistory, points_max
from barnabas.monitor.scrape_figures import FigureReader
from barnabas.monitor.states import ClusterState, PartitionState, TopicState
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

NO_LEADER = -1
K = TypeVar("K")
V = TypeVar("V")


class Observer:
    """The history of one cluster, and its newest state."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._recent: deque[Sample] = deque(maxlen=lag_rules.SPEED_SAMPLES + 1)
        self._ends: dict[Place, EndHistory] = {}
        self._starts: dict[Place, StartHistory] = {}
        self._groups = GroupObserver(self._ends, self._starts)
        self._disks = DiskForecast()
        self._figures = FigureReader()
        self.charts = ChartHistory(self._ends)
        self.state: ClusterState | None = None
        """The newest state."""

    def unread(self, collected: Collected) -> dict[tuple[Place, int], int]:
        """Return the records whose timestamps are needed, with the leaders to read them from.

        Only where a commit is older than all samples: the record is then read once.
        """
        wanted = self._groups.unread(collected)
        leaders = {
            (topic.name or "", each.partition_index): each.leader_id
            for topic in collected.answers.topics
            for each in topic.partitions
        }
        return {
            (place, offset): leaders[place]
            for place, offset in wanted
            if leaders.get(place, NO_LEADER) != NO_LEADER
        }

    def observe(self, collected: Collected) -> ClusterState:
        """Return the state after one more collection."""
        sample = self._sample(collected)
        speeds = {place: self._records_per_s(place, sample) for place in sample.ends}
        groups = self._groups.observe(Moment(collected, sample, speeds))
        users = used_topics(groups.values())
        topics = {
            topic.name: self._topic(topic.name, topic, sample, speeds, users.get(topic.name, ()))
            for topic in collected.answers.topics
            if topic.name
        }
        found = overview(collected.answers, collected.wall_ms)
        self._figures.add(collected.at_ms, collected.scrapes)
        state = ClusterState(
            taken_ms=collected.wall_ms,
            took_ms=collected.took_ms,
            interval_s=self._interval_s,
            overview=found,
            health=verdict(found),
            topics=topics,
            groups=groups,
            records_per_s=total(each.records_per_s for each in topics.values()),
            bytes_per_s=total(each.bytes_per_s for each in topics.values()),
            bytes_in_per_s=self._figures.total("bytes_in_per_s"),
            bytes_out_per_s=self._figures.total("bytes_out_per_s"),
            produce_p99_s=self._figures.produce_p99_s,
            fetch_p99_s=self._figures.fetch_p99_s,
            disks=self._disks.states(collected.at_ms, collected.answers.disks),
            figures=self._figures.figures,
            troubles=tuple(collected.troubles),
        )
        self.charts.add(collected.at_ms, state)
        self.state = state
        return state

    def failed(self, reason: str) -> ClusterState | None:
        """Return the last state, with the reason why no broker answers; None if there is none."""
        if self.state is not None:
            health = Health(verdict=Verdict.UNAVAILABLE, reasons=[reason])
            self.state = replace(self.state, health=health, troubles=(reason,))
        return self.state

    def group_track(self, name: str) -> GroupTrack | None:
        """Return the samples of a group."""
        return self._groups.track(name)

    def _sample(self, collected: Collected) -> Sample:
        """Take the offsets and sizes into the history; return them with the last known ones."""
        places = {
            (topic.name, each.partition_index)
            for topic in collected.answers.topics
            if topic.name
            for each in topic.partitions
        }
        most, at_ms = points_max(len(places)), collected.at_ms
        _keep(self._ends, places)
        _keep(self._starts, places)
        for place, end in collected.ends.items():
            if place in places:
                _entry(self._ends, place, EndHistory).add(at_ms, end, most)
        for place, start in collected.starts.items():
            if place in places:
                _entry(self._starts, place, StartHistory).add(at_ms, start)
        last = self._recent[-1] if self._recent else Sample(at_ms, {}, {}, {})
        sample = Sample(
            at_ms,
            _known(last.starts, collected.starts, places),
            _known(last.ends, collected.ends, places),
            _known(last.sizes, collected.sizes, places),
        )
        self._recent.append(sample)
        return sample

    def _topic(
        self,
        name: str,
        topic: MetadataResponseTopic,
        sample: Sample,
        speeds: Mapping[Place, float | None],
        users: Iterable[str],
    ) -> TopicState:
        partitions = tuple(
            self._partition((name, each.partition_index), each, sample, speeds)
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        )
        return TopicState(
            name=name,
            is_internal=topic.is_internal,
            partitions=partitions,
            replication_factor=max((len(each.replicas) for each in partitions), default=0),
            records=whole(
                each.end - each.start
                for each in partitions
                if each.end is not None and each.start is not None
            ),
            size_bytes=whole(each.size_bytes for each in partitions),
            records_per_s=total(each.records_per_s for each in partitions),
            bytes_per_s=total(each.bytes_per_s for each in partitions),
            groups=tuple(sorted(users)),
        )

    def _partition(
        self,
        place: Place,
        each: MetadataResponsePartition,
        sample: Sample,
        speeds: Mapping[Place, float | None],
    ) -> PartitionState:
        records_per_s = speeds.get(place)
        return PartitionState(
            topic=place[0],
            number=place[1],
            leader=None if each.leader_id == NO_LEADER else each.leader_id,
            replicas=tuple(each.replica_nodes),
            in_sync=tuple(each.isr_nodes),
            offline=tuple(each.offline_replicas),
            start=sample.starts.get(place),
            end=sample.ends.get(place),
            size_bytes=sample.sizes.get(place),
            records_per_s=records_per_s,
            bytes_per_s=self._bytes_per_s(place, sample, records_per_s),
        )

    def _records_per_s(self, place: Place, sample: Sample) -> float | None:
        before = next((each for each in self._recent if place in each.ends), None)
        if before is None:
            return None
        elapsed_ms = sample.at_ms - before.at_ms
        return lag_rules.speed(before.ends[place], sample.ends[place], elapsed_ms)

    def _bytes_per_s(
        self, place: Place, sample: Sample, records_per_s: float | None
    ) -> float | None:
        """Return how fast a log grows; while retention deletes, by the mean size of a record."""
        size = sample.sizes.get(place)
        before = next((each for each in self._recent if place in each.sizes), None)
        if size is None or before is None or records_per_s is None:
            return None
        start = sample.starts.get(place)
        if start is not None and before.starts.get(place) != start:
            records = sample.ends[place] - start
            return records_per_s * size / records if records > 0 else 0.0
        return lag_rules.speed(before.sizes[place], size, sample.at_ms - before.at_ms)


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known."""
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def whole(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known whole values; None if none is known."""
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def _known(before: Mapping[K, V], now: Mapping[K, V], places: set[K]) -> Mapping[K, V]:
    """Return the values of all places that exist; those that were not answered keep their last."""
    if now.keys() >= places:
        return now
    return {place: value for place, value in {**before, **now}.items() if place in places}


def _keep(entries: dict[K, V], places: set[K]) -> None:
    for place in [each for each in entries if each not in places]:
        del entries[place]


def _entry(entries: dict[Place, V], place: Place, make: type[V]) -> V:
    found = entries.get(place)
    if found is None:
        found = entries[place] = make()
    return found
