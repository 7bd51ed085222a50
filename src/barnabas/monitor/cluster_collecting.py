"""One collection: everything that an observer needs, asked of all brokers side by side.

Groups and their commits come first, then the ends of partitions, so that no commit is beyond the
end it is compared with. A broker that fails is named in `troubles`; the others are still asked.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from barnabas.admin.cluster_overview import NO_LEADER, Answers
from barnabas.admin.scopes import Place
from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.monitor.broker_line import CEILINGS, BrokerLine
from barnabas.monitor.cluster_answers import Collected, GroupAnswer, Scrape
from barnabas.monitor.cluster_asking import ClusterAsker, Control, Head
from barnabas.monitor.group_asking import GroupsOfBroker, ask_groups, described
from barnabas.monitor.offset_asking import (
    DisksOfBroker,
    OffsetsOfBroker,
    ask_disks,
    ask_offsets,
)
from barnabas.monitor.record_times import Record, ask_times
from barnabas.monitor.scraping_brokers import MetricsAddress, broker_of, metrics_address, scrape
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.wire.link_security import link_security
from barnabas.wire.pipeline import Pool
from barnabas.wire.wire_failures import LinkError

BROKERS_AT_ONCE = 8
"""How many brokers are asked at the same time."""
ANSWER_TIMEOUT_S = 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokerOffsets:
    """What one broker says of the partitions that it leads and of its disks."""

    offsets: OffsetsOfBroker
    disks: DisksOfBroker


class Collector:
    """The connections to one cluster."""

    def __init__(
        self,
        properties: Mapping[str, object],
        metrics: Iterable[str] = (),
        client_id: str = "barnabas-monitor",
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        """Take librdkafka's properties, and where brokers serve /metrics: [ID=]HOST:PORT."""
        self._cluster = ClusterAsker(properties, client_id, answer_timeout_s)
        security = link_security(properties)
        self._pool = Pool(client_id, CEILINGS, answer_timeout_s, security)
        self._metrics = [metrics_address(each) for each in metrics]
        self._threads = ThreadPoolExecutor(BROKERS_AT_ONCE, "barnabas-monitor")
        self._lines: dict[int, BrokerLine] = {}

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._cluster.close()
        self._pool.close()

    def collect(self) -> Collected:
        """Ask all brokers; raise `LinkError` if none answers."""
        began_s = time.monotonic()
        head = self._cluster.head()
        self._lines = {
            each.broker_id: BrokerLine(self._pool, each.broker_id, each.host, each.port)
            for each in head.cluster.brokers
            if not each.is_fenced
        }
        scrapes = [(each, self._threads.submit(scrape, each)) for each in self._metrics]
        groups = self._of_each(ask_groups, self._lines.values())
        places = _led(head.topics)
        offsets = self._of_each(
            lambda line: BrokerOffsets(
                ask_offsets(line, places.get(line.broker, ())), ask_disks(line)
            ),
            self._lines.values(),
        )
        at_ms, wall_ms = _monotonic_ms(), _wall_ms()
        control = self._cluster.control(head.cluster)
        troubles: list[str] = []
        by_broker = self._scraped(scrapes, troubles)
        troubles += self._troubles(groups, offsets, control)
        return Collected(
            at_ms=at_ms,
            wall_ms=wall_ms,
            took_ms=round((time.monotonic() - began_s) * 1000),
            answers=self._answers(head, control, offsets),
            starts=_joined(each.offsets.starts for each in offsets.values()),
            ends=_joined(each.offsets.ends for each in offsets.values()),
            sizes=_sizes(places, offsets),
            groups=_joined_groups(groups.values()),
            has_all_groups=self._has_all(groups, head.topics),
            scrapes=by_broker,
            troubles=troubles,
        )

    def with_times(self, collected: Collected, wanted: Mapping[Record, int]) -> Collected:
        """Return the collection with the timestamps of records, which lie at these leaders."""
        by_leader: dict[int, list[Record]] = defaultdict(list)
        for record, leader in wanted.items():
            by_leader[leader].append(record)
        lines = [self._lines[leader] for leader in by_leader if leader in self._lines]
        found = self._of_each(lambda line: ask_times(line, by_leader[line.broker]), lines)
        return replace(collected, written_ms=_joined(found.values()))

    def _of_each(self, ask: Callable[[BrokerLine], T], lines: Iterable[BrokerLine]) -> dict[int, T]:
        """Ask brokers side by side; leave out those that do not answer."""
        asked = [(each, self._threads.submit(ask, each)) for each in lines if not each.failure]
        found = {}
        for line, answer in asked:
            try:
                found[line.broker] = answer.result()
            except LinkError as error:
                if line.failure is None:
                    line.fail(str(error))
        return found

    def _answers(
        self, head: Head, control: Control, offsets: Mapping[int, BrokerOffsets]
    ) -> Answers:
        silent = {line.broker: line.failure for line in self._lines.values() if line.failure}
        return Answers(
            cluster=head.cluster,
            topics=head.topics,
            quorum=control.quorum,
            reassignments=control.reassignments,
            factors=head.factors,
            disks={**{broker: each.disks.disks for broker, each in offsets.items()}, **silent},
            troubles=()
            if control.silence is None
            else (f"the controller does not answer: {control.silence}",),
            feature_level=head.feature_level,
            voter_addresses=control.addresses,
        )

    def _has_all(
        self, groups: Mapping[int, GroupsOfBroker], topics: Sequence[MetadataResponseTopic]
    ) -> bool:
        """Return whether no group can be missing: all brokers and coordinators answered."""
        coordinators = [each for each in topics if each.name == GROUPS_TOPIC]
        led = all(p.leader_id != NO_LEADER for each in coordinators for p in each.partitions)
        return (
            led
            and groups.keys() == self._lines.keys()
            and all(each.is_complete for each in groups.values())
        )

    def _troubles(
        self,
        groups: Mapping[int, GroupsOfBroker],
        offsets: Mapping[int, BrokerOffsets],
        control: Control,
    ) -> list[str]:
        said = [
            f"broker {line.broker} does not answer: {line.failure}"
            for line in self._lines.values()
            if line.failure
        ]
        said += [each for each in (control.silence, control.refusal) if each]
        said += described(_summed(each.refused for each in groups.values()), "group")
        said += described(_summed(each.offsets.refused for each in offsets.values()), "partition")
        refusals = {each.disks.refusal for each in offsets.values() if each.disks.refusal}
        said += [f"disks and sizes of logs cannot be described: {each}" for each in refusals]
        return said

    def _scraped(
        self, asked: Sequence[tuple[MetricsAddress, "Future[Scrape]"]], troubles: list[str]
    ) -> dict[int, Scrape]:
        hosts = {line.broker: line.host for line in self._lines.values()}
        found = {}
        for address, answer in asked:
            try:
                scraped = answer.result()
            except LinkError as error:
                troubles.append(str(error))
                continue
            broker = broker_of(address, scraped, hosts)
            if broker is None:
                troubles.append(f"which broker serves metrics at {address}? Write ID={address}")
            else:
                found[broker] = scraped
        return found


def _led(topics: Iterable[MetadataResponseTopic]) -> dict[int, list[Place]]:
    """Return the partitions that each broker leads, sorted by topic."""
    found: dict[int, list[Place]] = defaultdict(list)
    for topic in topics:
        for each in topic.partitions:
            if topic.name and each.leader_id != NO_LEADER:
                found[each.leader_id].append((topic.name, each.partition_index))
    return {broker: sorted(places) for broker, places in found.items()}


def _sizes(
    places: Mapping[int, Sequence[Place]], offsets: Mapping[int, BrokerOffsets]
) -> dict[Place, int]:
    """Return the sizes of the logs at their leaders."""
    return {
        place: each.disks.sizes[place]
        for broker, each in offsets.items()
        for place in places.get(broker, ())
        if place in each.disks.sizes
    }


K = TypeVar("K")


def _joined(parts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    found: dict[K, int] = {}
    for part in parts:
        found.update(part)
    return found


def _joined_groups(parts: Iterable[GroupsOfBroker]) -> dict[str, GroupAnswer]:
    return {name: group for part in parts for name, group in part.groups.items()}


def _summed(counts: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counts, Counter())


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
