"""The record types of the metadata log, and their encoding.

A change to topics or configs is a list of these records. They are appended to the metadata log,
synced, and only then replayed into the image. On disk a record is JSON, and its key names its type:
metadata is small, and people read it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from barnabas.metadata.security_records import (
    AclAdded,
    AclRemoved,
    ClientQuotaChanged,
    ClusterSecretChanged,
    DelegationTokenChanged,
    DelegationTokenRemoved,
    RoleChanged,
    ScramCredentialChanged,
    ScramCredentialRemoved,
    SecurityRecord,
)
from barnabas.model.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFormed:
    """The cluster got its id."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelChanged:
    """The brokers may use the features of this level (`metadata/features.py`)."""

    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStarted:
    """A broker came up: every partition it leads enters a new leader epoch."""

    node_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated:
    """A topic was created."""

    name: str
    topic_id: str
    replicas: list[list[int]]
    config: dict[str, str] = field(default_factory=dict)
    leader_epochs: list[int] = field(default_factory=list)
    """The leader epoch of each partition; zeros if empty. Only snapshots fill it."""
    replication_factor: int = 0
    """How many replicas each partition should get; 0 if it got all at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAdded:
    """A topic got more partitions; `replicas` are those of the new partitions."""

    topic_id: str
    replicas: list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationFactorChanged:
    """A topic should get this many replicas of each partition; 0 ends its automatic growth."""

    topic_id: str
    replication_factor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    """A topic was deleted."""

    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChanged:
    """Configs of a topic, a broker or a subscription to clients' metrics were set or, if None,
    reset to their default."""

    kind: str
    name: str
    changes: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsReserved:
    """Producer ids below this one may be in use."""

    next_producer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered:
    """A broker's process registered. It is fenced until it has caught up."""

    node_id: int
    broker_epoch: int
    """Larger than all earlier ones: a smaller epoch belongs to an earlier process."""
    incarnation: str
    """Chosen by the process: a repeated registration has the same one."""
    host: str
    port: int
    peer_host: str
    peer_port: int
    rack: str | None = None
    directory: str = ""
    """The id of its data folder: another one means that the broker lost its disk."""
    let_in_epoch: int = -1
    """The last epoch in which the broker was unfenced; only unfenced ones acknowledge records."""
    endpoints: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Host and port of each listener for clients, by its name. Empty for a broker that has only
    the one called PLAINTEXT, which is `host` and `port`; these are those of the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEpochsGiven:
    """Broker epochs up to this one were assigned. Only snapshots hold this record."""

    last_broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChanged:
    """A broker was fenced or unfenced, or is about to stop."""

    node_id: int
    broker_epoch: int
    fenced: bool
    stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnregistered:
    """A broker was unregistered; it may register again."""

    node_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChanged:
    """The complete new state of a partition."""

    topic_id: str
    partition: int
    replicas: list[int]
    leader: int
    """-1 while the partition has no leader."""
    leader_epoch: int
    isr: list[int]
    eligible: list[int] = field(default_factory=list)
    """Out-of-sync replicas that have all acknowledged records (KIP-966)."""
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    partition_epoch: int
    unclean: bool = False
    """Whether the leader was elected although it may lack acknowledged records."""
    wiped: list[int] = field(default_factory=list)
    """The last member of the ISR, if it came back with an empty disk."""


MetadataRecord = (
    ClusterFormed
    | FeatureLevelChanged
    | BrokerStarted
    | BrokerRegistered
    | BrokerEpochsGiven
    | BrokerChanged
    | BrokerUnregistered
    | PartitionChanged
    | TopicCreated
    | PartitionsAdded
    | ReplicationFactorChanged
    | TopicDeleted
    | ConfigChanged
    | ProducerIdsReserved
    | SecurityRecord
)

KINDS: dict[str, type[MetadataRecord]] = {
    kind.__name__: kind
    for kind in (
        ClusterFormed,
        FeatureLevelChanged,
        BrokerStarted,
        BrokerRegistered,
        BrokerEpochsGiven,
        BrokerChanged,
        BrokerUnregistered,
        PartitionChanged,
        TopicCreated,
        PartitionsAdded,
        ReplicationFactorChanged,
        TopicDeleted,
        ConfigChanged,
        ProducerIdsReserved,
        ScramCredentialChanged,
        ScramCredentialRemoved,
        AclAdded,
        AclRemoved,
        RoleChanged,
        ClientQuotaChanged,
        ClusterSecretChanged,
        DelegationTokenChanged,
        DelegationTokenRemoved,
    )
}

ADDED_LATER: dict[str, object] = {"replication_factor": 0, "endpoints": {}}
"""Fields that level 1 does not know; a record omits a field that has this value."""


def encode(record: MetadataRecord) -> tuple[bytes, bytes]:
    """Return the key and value of a record in the log."""
    content = {name: getattr(record, name) for name in type(record).__slots__}
    for name, default in ADDED_LATER.items():
        if content.get(name) == default:
            del content[name]
    return type(record).__name__.encode(), json.dumps(content).encode()


def decode(key: bytes | None, value: bytes | None) -> MetadataRecord:
    """Read a stored record; an unknown type stops the start, because skipping it loses data."""
    kind = KINDS.get((key or b"").decode(errors="replace"))
    if kind is None or value is None:
        raise StorageError(f"the metadata log holds {key!r}, which this version does not know")
    content: dict[str, Any] = json.loads(value)
    return kind(**content)
