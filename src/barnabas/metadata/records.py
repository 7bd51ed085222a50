"""The facts of which the cluster's metadata is made.

A change to topics or configs is a list of these records. They are appended to the metadata log,
synced, and only then replayed into the image: what is not in the log did not happen. On disk a
record is JSON, whose key names its kind: metadata is small and people read it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from barnabas.model.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFormed:
    """The cluster got its name."""

    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelChanged:
    """The brokers may use what this level brings (`metadata/features.py`)."""

    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStarted:
    """A broker came up: every partition it leads enters a new leader epoch."""

    node_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated:
    """A topic exists from here on."""

    name: str
    topic_id: str
    replicas: list[list[int]]
    config: dict[str, str] = field(default_factory=dict)
    leader_epochs: list[int] = field(default_factory=list)
    """Of each partition; zeros where it is empty. Only snapshots fill it."""
    replication_factor: int = 0
    """How many replicas each partition is to have; 0 where it got what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAdded:
    """A topic grew; the replicas are those of the new partitions alone."""

    topic_id: str
    replicas: list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationFactorChanged:
    """A topic is to have this many replicas of each partition; 0 ends its automatic growth."""

    topic_id: str
    replication_factor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    """A topic is no more."""

    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChanged:
    """Configs of a topic or a broker were set, or, where None, fell back to their default."""

    kind: str
    name: str
    changes: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsReserved:
    """Producer ids below this one may be in use."""

    next_producer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered:
    """A broker's process presented itself. It is fenced until it has caught up."""

    node_id: int
    broker_epoch: int
    """Larger than any that was given out before: what is older speaks of an earlier process."""
    incarnation: str
    """Chosen by the process: a registration that is repeated is the same one."""
    host: str
    port: int
    peer_host: str
    peer_port: int
    rack: str | None = None
    directory: str = ""
    """The id of its data folder: another one means that the broker lost its disk."""
    let_in_epoch: int = -1
    """The last in which the broker was let in; only processes that were have acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEpochsGiven:
    """Broker epochs up to this one were given out, to whomever. Only snapshots hold it."""

    last_broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChanged:
    """A broker was fenced or let in, or is about to stop."""

    node_id: int
    broker_epoch: int
    fenced: bool
    stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnregistered:
    """A broker is no more; it may come back by registering."""

    node_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChanged:
    """Who holds and who leads a partition from here on: all of it, whatever was before."""

    topic_id: str
    partition: int
    replicas: list[int]
    leader: int
    """-1 while nobody may lead."""
    leader_epoch: int
    isr: list[int]
    eligible: list[int] = field(default_factory=list)
    """Not in sync any more, but with everything that was acknowledged (KIP-966)."""
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    partition_epoch: int
    unclean: bool = False
    """Whether the leader was made one without being known to have everything acknowledged."""
    wiped: list[int] = field(default_factory=list)
    """In the ISR by name alone: the last one in it came back with an empty disk."""


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
    )
}

ADDED_LATER = {"replication_factor": 0}
"""Fields that level 1 does not know, and the value under which each is left out of a record."""


def encode(record: MetadataRecord) -> tuple[bytes, bytes]:
    """Return the key and value under which a record is stored."""
    content = {name: getattr(record, name) for name in type(record).__slots__}
    for name, default in ADDED_LATER.items():
        if content.get(name) == default:
            del content[name]
    return type(record).__name__.encode(), json.dumps(content).encode()


def decode(key: bytes | None, value: bytes | None) -> MetadataRecord:
    """Read a stored record; one that is not known stops the start rather than being lost."""
    kind = KINDS.get((key or b"").decode(errors="replace"))
    if kind is None or value is None:
        raise StorageError(f"the metadata log holds {key!r}, which this version does not know")
    content: dict[str, Any] = json.loads(value)
    return kind(**content)
