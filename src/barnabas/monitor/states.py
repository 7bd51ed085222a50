"""The state of a cluster as a watcher sees it: brokers, topics, groups, with rates and lag in time.

A value is None where it is unknown: not asked for, not answered, or not yet computable because one
sample is not enough. Zero always means zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.admin.cluster_overview import Overview
from barnabas.admin.health import Health

Place = tuple[str, int]
"""A topic's name and a partition's number."""


class GroupStatus(StrEnum):
    """What a group does with its partitions, by Burrow's rules over the last samples."""

    OK = "ok"
    BEHIND = "behind"
    """It commits, but its lag has not fallen."""
    STALLED = "stalled"
    """Members commit the same offsets again while records wait."""
    STOPPED = "stopped"
    """It has not committed for longer than the samples span while records wait."""
    REWOUND = "rewound"
    """Its committed offset went back."""
    UNKNOWN = "unknown"
    """There are not enough samples yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One partition."""

    topic: str
    number: int
    leader: int | None
    replicas: Sequence[int]
    in_sync: Sequence[int]
    offline: Sequence[int] = ()
    start: int | None
    """The log start offset."""
    end: int | None
    """The high watermark."""
    size_bytes: int | None
    """The size of the leader's log."""
    records_per_s: float | None
    """How fast the high watermark advances."""
    bytes_per_s: float | None
    """How fast the leader's log grows; None where its broker does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """One topic; sums are None if no partition has a value."""

    name: str
    is_internal: bool
    partitions: Sequence[PartitionState]
    replication_factor: int
    records: int | None
    """The sum of end less start offsets; compaction and transactions make it an upper bound."""
    size_bytes: int | None
    """The sum over the leaders' logs."""
    records_per_s: float | None
    bytes_per_s: float | None
    groups: Sequence[str]
    """Groups that have committed offsets for it or are assigned partitions of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartitionState:
    """One partition of a group."""

    topic: str
    number: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_s: float | None
    """How long ago the end of the log passed the committed offset; 0 if no record waits."""
    read_per_s: float | None
    """How fast the committed offset advances."""
    retention_margin_s: float | None
    """In how many seconds retention reaches the committed offset, at the present speed of both."""
    lost_records: int
    """Records that were deleted before the group read them, since the watcher started."""
    status: GroupStatus
    member_id: str | None
    client_id: str | None
    host: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member of a group."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    partitions: Sequence[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """One group."""

    name: str
    type: str | None
    """Classic, consumer or share, in lower case; None if the broker does not report it."""
    state: str
    """Kafka's name: Stable, Empty, PreparingRebalance, ..."""
    assignor: str
    coordinator: int | None
    members: Sequence[GroupMember]
    partitions: Sequence[GroupPartitionState]
    lag: int | None
    lag_s: float | None
    """The largest of its partitions."""
    read_per_s: float | None
    eta_s: float | None
    """When the partition that takes longest will have no lag: lag / (read - write rate); infinite
    ("never") if it does not get smaller."""
    retention_margin_s: float | None
    """The smallest of its partitions."""
    status: GroupStatus
    """The worst of its partitions."""
    lag_trend: Sequence[int] = ()
    """The lag in records at the last samples, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskState:
    """The fullest disk of one broker."""

    total_bytes: int
    free_bytes: int
    full_in_s: float | None
    """When it is full at the speed of the last hour; infinite if it does not get fuller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """What one broker serves at its /metrics, as rates; None where it does not serve it."""

    address: str
    """Where its /metrics are."""
    version: str | None = None
    records_per_s: float | None = None
    bytes_in_per_s: float | None = None
    bytes_out_per_s: float | None = None
    produce_p99_s: float | None = None
    fetch_p99_s: float | None = None
    loop_busy_ratio: float | None = None
    connections: int | None = None
    slow_requests: Sequence[Mapping[str, object]] | None = None
    """As its /debug/slow lists them, newest first; None if it has no such page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time, for charts: at most 360 points, oldest first."""

    times_ms: Sequence[int]
    values: Mapping[str, Sequence[float | None]]
    """By name (records_per_s, lag, ...), each as long as `times_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything that a watcher knows at one moment."""

    taken_ms: int
    """By the wall clock, when the collection ended."""
    took_ms: int
    interval_s: float
    overview: Overview
    health: Health
    topics: Mapping[str, TopicState]
    groups: Mapping[str, GroupState]
    records_per_s: float | None
    bytes_per_s: float | None
    """How fast the leaders' logs grow together."""
    bytes_in_per_s: float | None = None
    """From /metrics, as are the four below; None where no broker serves them."""
    bytes_out_per_s: float | None = None
    produce_p99_s: float | None = None
    fetch_p99_s: float | None = None
    disks: Mapping[int, DiskState] = field(default_factory=dict)
    """By broker; those of brokers that did not answer are left out."""
    figures: Mapping[int, BrokerFigures] = field(default_factory=dict)
    """By broker; only of those whose /metrics the watcher reads."""
    troubles: Sequence[str] = field(default_factory=tuple)
    """What could not be collected this time, and why; the last known values stand."""
