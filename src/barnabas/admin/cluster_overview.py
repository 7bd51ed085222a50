"""The state of a cluster at one moment, computed from the responses of its brokers.

`Answers` holds the protocol messages; `overview` is a pure function of them and the time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from barnabas.admin.quorum_margin import Votes, votes
from barnabas.admin.replication_factors import Factors
from barnabas.admin.scopes import Place
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

NO_LEADER = -1
UP = "up"
FENCED = "fenced"
"""The controller gets no heartbeats from it; other brokers lead its partitions."""
SILENT = "silent"
"""It does not answer us, but the controller still considers it alive."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The state of a broker, from the controller and its partitions."""

    id: int
    address: str
    rack: str | None
    state: str
    silence: str | None
    """Why it does not answer, if it does not."""
    leaders: int
    replicas: int
    in_sync: int
    disk_free: float | None
    """The free share of its fullest disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A voter or observer of the metadata quorum."""

    id: int
    directory: bytes
    lag: int | None
    """Records behind the leader; None if it has not fetched since the leader's election."""
    last_contact_ms: int | None

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {"id": self.id, "lag": self.lag, "last_contact_ms": self.last_contact_ms}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The metadata quorum."""

    leader: int | None
    epoch: int
    high_watermark: int
    voters: list[Member]
    observers: list[Member]
    addresses: Mapping[int, str]
    """The inter-broker addresses of voters, by node id."""

    @property
    def votes(self) -> Votes:
        """Which voters count, and which brokers could become voters."""
        return votes(self.voters, self.observers)

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "leader": self.leader,
            "epoch": self.epoch,
            "high_watermark": self.high_watermark,
            "voters": [each.as_json() for each in self.voters],
            "observers": [each.as_json() for each in self.observers],
            "votes": self.votes.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """All partitions, grouped by problem."""

    total: int
    under_replicated: list[Place]
    under_min_isr: list[Place]
    at_min_isr: list[Place]
    """Exactly min.insync.replicas in sync: with one less, acks=all is rejected (as in Kafka)."""
    replicas_at_min_isr: list[Place]
    """More than one replica, but at most min.insync.replicas: no broker may be down."""
    below_replication_factor: list[Place]
    """Fewer replicas than the topic should have, and fewer than there are brokers."""
    offline: list[Place]
    reassigning: list[Place]
    not_led_as_preferred: list[Place]

    def as_json(self) -> dict[str, object]:
        """Return counts and lists as a JSON object."""
        named = asdict(self) | {"total": self.total}
        return {
            key: value if key == "total" else [f"{topic}-{number}" for topic, number in value]
            for key, value in named.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of a cluster at one moment."""

    cluster_id: str
    brokers: list[Broker]
    quorum: Quorum | None
    partitions: Partitions
    troubles: list[str]
    feature_level: int | None = None
    """The feature level of the cluster; None if it was not requested."""

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        quorum = self.quorum
        return {
            "cluster_id": self.cluster_id,
            "feature_level": self.feature_level,
            "controller": None if quorum is None else quorum.leader,
            "brokers": [asdict(each) for each in self.brokers],
            "quorum": None if quorum is None else quorum.as_json(),
            "partitions": self.partitions.as_json(),
        }


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
    answer = answers.quorum
    if answer is None:
        return None
    leader = next(
        (each for each in answer.current_voters if each.replica_id == answer.leader_id), None
    )
    if leader is not None and leader.last_fetch_timestamp > 0:
        now_ms = leader.last_fetch_timestamp  # the clocks of two computers may differ
    end = max(answer.high_watermark, leader.log_end_offset if leader is not None else 0)

    def member(each: ReplicaState) -> Member:
        is_leader = each.replica_id == answer.leader_id
        heard = each.last_fetch_timestamp
        unheard = None if heard <= 0 else max(0, now_ms - heard)
        return Member(
            id=each.replica_id,
            directory=each.replica_directory_id,
            lag=None if each.log_end_offset < 0 else max(0, end - each.log_end_offset),
            last_contact_ms=0 if is_leader else unheard,
        )

    return Quorum(
        leader=None if answer.leader_id == NO_LEADER else answer.leader_id,
        epoch=answer.leader_epoch,
        high_watermark=answer.high_watermark,
        voters=sorted(map(member, answer.current_voters), key=lambda each: each.id),
        observers=sorted(map(member, answer.observers), key=lambda each: each.id),
        addresses=answers.voter_addresses,
    )


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
