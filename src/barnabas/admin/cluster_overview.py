"""The state of a cluster at one moment, computed from the responses of its brokers.

`Answers` holds the protocol messages; `overview` is a pure function of them and the time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.admin.replication_factors import Factors
from barnabas.health.cluster_facts import (
    FENCED,
    SILENT,
    UP,
    Broker,
    Member,
    Overview,
    Partitions,
    Place,
    Quorum,
)
from barnabas.health.described_quorum import quorum_of
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.protocol.messages.describe_quorum import DescribeQuorumResponsePartitionData
from barnabas.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

__all__ = [
    "FENCED",
    "SILENT",
    "UP",
    "Answers",
    "Broker",
    "Member",
    "Overview",
    "Partitions",
    "Quorum",
    "overview",
]

NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The responses of brokers; None if no broker could answer, with the reason in `troubles`."""

    cluster: DescribeClusterResponse
    topics: Sequence[MetadataResponseTopic]
    quorum: DescribeQuorumResponsePartitionData | None
    reassignments: Sequence[OngoingTopicReassignment] = ()
    factors: Factors = field(default_factory=Factors)
    disks: Mapping[int, Sequence[DescribeLogDirsResult] | str] = field(default_factory=dict)
    """By broker; the reason if a broker did not answer."""
    troubles: Sequence[str] = ()
    feature_level: int | None = None
    voter_addresses: Mapping[int, str] = field(default_factory=dict)
    """The inter-broker addresses of voters, by node id."""


def overview(answers: Answers, now_ms: int) -> Overview:
    """Combine the responses into one overview."""
    return Overview(
        cluster_id=answers.cluster.cluster_id,
        brokers=_brokers(answers),
        quorum=_quorum(answers, now_ms),
        partitions=_partitions(answers),
        troubles=list(answers.troubles),
        feature_level=answers.feature_level,
    )


def _brokers(answers: Answers) -> list[Broker]:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    for topic in answers.topics:
        for each in topic.partitions:
            leaders[each.leader_id] += 1
            replicas.update(each.replica_nodes)
            in_sync.update(each.isr_nodes)
    return [
        Broker(
            id=each.broker_id,
            address=f"{each.host}:{each.port}",
            rack=each.rack,
            state=_state(each.is_fenced, answers.disks.get(each.broker_id, ())),
            silence=_silence(answers.disks.get(each.broker_id, ())),
            leaders=leaders[each.broker_id],
            replicas=replicas[each.broker_id],
            in_sync=in_sync[each.broker_id],
            disk_free=_disk_free(answers.disks.get(each.broker_id, ())),
        )
        for each in sorted(answers.cluster.brokers, key=lambda each: each.broker_id)
    ]


def _state(is_fenced: bool, disks: Sequence[DescribeLogDirsResult] | str) -> str:
    if is_fenced:
        return FENCED
    return SILENT if isinstance(disks, str) else UP


def _silence(disks: Sequence[DescribeLogDirsResult] | str) -> str | None:
    return disks if isinstance(disks, str) else None


def _disk_free(disks: Sequence[DescribeLogDirsResult] | str) -> float | None:
    if isinstance(disks, str):
        return None
    shares = [each.usable_bytes / each.total_bytes for each in disks if each.total_bytes > 0]
    return min(shares, default=None)


def _quorum(answers: Answers, now_ms: int) -> Quorum | None:
    described = answers.quorum
    return None if described is None else quorum_of(described, answers.voter_addresses, now_ms)


def _partitions(answers: Answers) -> Partitions:
    moving = {
        (topic.name, each.partition_index): each
        for topic in answers.reassignments
        for each in topic.partitions
    }
    everything = {
        (topic.name or "", each.partition_index): each
        for topic in answers.topics
        for each in topic.partitions
    }

    sorted_out = sorted(everything.items(), key=lambda pair: pair[0])

    def those(test: Callable[[Place, MetadataResponsePartition], bool]) -> list[Place]:
        return [place for place, each in sorted_out if test(place, each)]

    def expected(place: Place, each: MetadataResponsePartition) -> set[int]:
        return set(each.replica_nodes) - set(_adding(moving.get(place)))

    def least(place: Place, each: MetadataResponsePartition) -> int:
        needed = answers.factors.min_in_sync.get(place[0], 1)
        return min(needed, len(expected(place, each)))

    def is_fragile(place: Place, each: MetadataResponsePartition) -> bool:
        return 1 < len(expected(place, each)) <= answers.factors.min_in_sync.get(place[0], 1)

    def lacks_replicas(place: Place, each: MetadataResponsePartition) -> bool:
        wanted = min(answers.factors.wanted(place[0]), len(answers.cluster.brokers))
        return len(expected(place, each)) < wanted

    return Partitions(
        total=len(everything),
        under_replicated=those(
            lambda place, each: not expected(place, each) <= set(each.isr_nodes)
        ),
        under_min_isr=those(lambda place, each: len(each.isr_nodes) < least(place, each)),
        at_min_isr=those(
            lambda place, each: (
                len(expected(place, each)) > 1 and len(each.isr_nodes) == least(place, each)
            )
        ),
        replicas_at_min_isr=those(is_fragile),
        below_replication_factor=those(lacks_replicas),
        offline=those(lambda _, each: each.leader_id == NO_LEADER),
        reassigning=sorted(moving),
        not_led_as_preferred=those(
            lambda place, each: (
                place not in moving and each.leader_id not in (NO_LEADER, *each.replica_nodes[:1])
            )
        ),
    )


def _adding(moving: OngoingPartitionReassignment | None) -> Sequence[int]:
    return () if moving is None else moving.adding_replicas
