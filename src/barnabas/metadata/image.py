"""The metadata image: the state of the cluster after all metadata records so far.

Only `replay` changes the image, one whole record at a time, so a reader never sees half a change.
Brokers and partitions are immutable: a change replaces them. That makes a copy of the image cheap
(`fork`), and a decision can keep the values that it has read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.metadata.client_metrics_config import KIND as CLIENT_METRICS
from barnabas.metadata.features import FIRST_LEVEL
from barnabas.metadata.metadata_records import (
    BrokerChanged,
    BrokerEpochsGiven,
    BrokerRegistered,
    BrokerStarted,
    BrokerUnregistered,
    ClusterFormed,
    ConfigChanged,
    FeatureLevelChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    ReplicationFactorChanged,
    TopicCreated,
    TopicDeleted,
)
from barnabas.metadata.security_image import SECURITY_KINDS, SecurityImage
from barnabas.metadata.security_records import SecurityRecord
from barnabas.metadata.share_group_config import KIND as GROUP
from barnabas.model.callers import CLIENT_LISTENER
from barnabas.model.ids import TopicId

TOPIC = "topic"
BROKER = "broker"
GROUPS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = {GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC}
"""The topics that only coordinators write."""
ALL_BROKERS = ""
"""The resource name of the configs of all brokers."""
NO_LEADER = -1


@dataclass(slots=True, frozen=True)
class BrokerImage:
    """One registered broker."""

    node_id: int
    broker_epoch: int
    incarnation: str
    host: str
    port: int
    peer_host: str
    peer_port: int
    rack: str | None
    fenced: bool = True
    stopping: bool = False
    directory: str = ""
    let_in_epoch: int = -1
    endpoints: dict[str, tuple[str, int]] = field(default_factory=dict)

    def endpoint(self, listener: str) -> tuple[str, int] | None:
        """Return where clients of a listener connect to; None if the broker has no such listener.

        A broker that registered no names has one listener, with the name that it always had.
        """
        if self.endpoints:
            return self.endpoints.get(listener)
        return (self.host, self.port) if listener == CLIENT_LISTENER.name else None

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions and be in sync."""
        return not self.fenced and not self.stopping


@dataclass(slots=True, frozen=True)
class PartitionImage:
    """The replicas of a partition, its leader and its in-sync replicas."""

    replicas: list[int]
    leader: int
    leader_epoch: int = 0
    isr: list[int] = field(default_factory=list)
    eligible: list[int] = field(default_factory=list)
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    partition_epoch: int = 0
    unclean: bool = False
    wiped: list[int] = field(default_factory=list)

    @classmethod
    def fresh(cls, replicas: list[int], leader_epoch: int = 0) -> "PartitionImage":
        """Return a new partition: the first replica leads, all are in sync."""
        return cls(list(replicas), replicas[0], leader_epoch, list(replicas))


@dataclass(slots=True)
class TopicImage:
    """One topic."""

    name: str
    topic_id: TopicId
    partitions: list[PartitionImage]
    config: dict[str, str] = field(default_factory=dict)
    replication_factor: int = 0
    """How many replicas each partition should get; 0 if the topic has them."""
    owner: object = field(default=None, compare=False, repr=False)
    """The image that may change this object in place; other forks must copy it first."""

    @property
    def is_internal(self) -> bool:
        """Whether the topic is internal."""
        return self.name in INTERNAL_TOPICS


@dataclass(slots=True)
class Image:
    """Topics, brokers, configs and ids."""

    cluster_id: str = ""
    topics: dict[str, TopicImage] = field(default_factory=dict)
    names: dict[TopicId, str] = field(default_factory=dict)
    metric_names: dict[str, str] = field(default_factory=dict)
    """The name of each topic by its metric name."""
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    last_broker_epoch: int = -1
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    feature_level: int = FIRST_LEVEL
    client_metrics: dict[str, dict[str, str]] = field(default_factory=dict)
    """The configs of subscriptions to clients' metrics, by name."""
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """The configs of groups, by group id."""
    security: SecurityImage = field(default_factory=SecurityImage)
    """Credentials, ACLs, roles and quotas."""
    _owner: object = field(default_factory=object, compare=False, repr=False)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return the topic with an id."""
        name = self.names.get(TopicId(topic_id))
        return None if name is None else self.topics[name]

    def is_active(self, node_id: int) -> bool:
        """Whether a broker is registered and neither fenced nor stopping."""
        broker = self.brokers.get(node_id)
        return broker is not None and broker.is_active

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record."""
        _REPLAYS[type(record)](self, record)

    def fork(self) -> "Image":
        """Return a copy that changes independently.

        Both share their topics until one of them changes one: it then takes a copy of that topic.
        """
        self._owner = object()
        return Image(
            self.cluster_id,
            dict(self.topics),
            dict(self.names),
            dict(self.metric_names),
            dict(self.brokers),
            self.last_broker_epoch,
            {name: dict(configs) for name, configs in self.broker_configs.items()},
            self.next_producer_id,
            self.feature_level,
            {name: dict(configs) for name, configs in self.client_metrics.items()},
            {name: dict(configs) for name, configs in self.group_configs.items()},
            self.security,
        )

    def snapshot(self) -> Iterator[MetadataRecord]:
        """Return the fewest records that reproduce this image."""
        if self.feature_level != FIRST_LEVEL:
            yield FeatureLevelChanged(level=self.feature_level)
        yield ClusterFormed(cluster_id=self.cluster_id)
        yield ProducerIdsReserved(next_producer_id=self.next_producer_id)
        for broker in self.brokers.values():
            yield from _registration(broker)
        if self.last_broker_epoch >= 0:
            yield BrokerEpochsGiven(last_broker_epoch=self.last_broker_epoch)
        for topic in self.topics.values():
            yield TopicCreated(
                name=topic.name,
                topic_id=topic.topic_id.hex(),
                replicas=[partition.replicas for partition in topic.partitions],
                config=topic.config,
                leader_epochs=[partition.leader_epoch for partition in topic.partitions],
                replication_factor=topic.replication_factor,
            )
            for number, partition in enumerate(topic.partitions):
                if partition != PartitionImage.fresh(partition.replicas, partition.leader_epoch):
                    yield changed(topic.topic_id, number, partition)
        for name, configs in self.broker_configs.items():
            yield ConfigChanged(kind=BROKER, name=name, changes=dict(configs))
        for name, configs in self.client_metrics.items():
            yield ConfigChanged(kind=CLIENT_METRICS, name=name, changes=dict(configs))
        for name, configs in self.group_configs.items():
            yield ConfigChanged(kind=GROUP, name=name, changes=dict(configs))
        yield from self.security.snapshot()

    def _topic(self, topic_id: str) -> TopicImage:
        return self.topics[self.names[TopicId(bytes.fromhex(topic_id))]]

    def _own(self, topic: TopicImage) -> TopicImage:
        """Return a topic that can be changed in place: a copy if a fork shares it."""
        if topic.owner is self._owner:
            return topic
        own = self.topics[topic.name] = replace(
            topic,
            partitions=list(topic.partitions),
            config=dict(topic.config),
            owner=self._owner,
        )
        return own

    def _form(self, record: ClusterFormed) -> None:
        self.cluster_id = record.cluster_id

    def _change_level(self, record: FeatureLevelChanged) -> None:
        self.feature_level = record.level

    def _create(self, record: TopicCreated) -> None:
        topic_id = TopicId(bytes.fromhex(record.topic_id))
        epochs = record.leader_epochs or [0] * len(record.replicas)
        partitions = [
            PartitionImage.fresh(replicas, epoch)
            for replicas, epoch in zip(record.replicas, epochs, strict=True)
        ]
        self.topics[record.name] = TopicImage(
            record.name,
            topic_id,
            partitions,
            dict(record.config),
            record.replication_factor,
            self._owner,
        )
        self.names[topic_id] = record.name
        self.metric_names[metric_name(record.name)] = record.name

    def _grow(self, record: PartitionsAdded) -> None:
        topic = self._own(self._topic(record.topic_id))
        topic.partitions += [PartitionImage.fresh(replicas) for replicas in record.replicas]

    def _want(self, record: ReplicationFactorChanged) -> None:
        self._own(self._topic(record.topic_id)).replication_factor = record.replication_factor

    def _delete(self, record: TopicDeleted) -> None:
        topic = self._topic(record.topic_id)
        del self.topics[topic.name]
        del self.names[topic.topic_id]
        self.metric_names.pop(metric_name(topic.name), None)

    def _register(self, record: BrokerRegistered) -> None:
        self.last_broker_epoch = max(self.last_broker_epoch, record.broker_epoch)
        self.brokers[record.node_id] = BrokerImage(
            record.node_id,
            record.broker_epoch,
            record.incarnation,
            record.host,
            record.port,
            record.peer_host,
            record.peer_port,
            record.rack,
            directory=record.directory,
            let_in_epoch=record.let_in_epoch,
            endpoints={name: (host, port) for name, (host, port) in record.endpoints.items()},
        )

    def _change_broker(self, record: BrokerChanged) -> None:
        broker = self.brokers[record.node_id]
        self.brokers[record.node_id] = replace(
            broker,
            fenced=record.fenced,
            stopping=record.stopping,
            let_in_epoch=broker.let_in_epoch if record.fenced else broker.broker_epoch,
        )

    def _unregister(self, record: BrokerUnregistered) -> None:
        del self.brokers[record.node_id]

    def _note_epochs(self, record: BrokerEpochsGiven) -> None:
        self.last_broker_epoch = max(self.last_broker_epoch, record.last_broker_epoch)

    def _change(self, record: PartitionChanged) -> None:
        topic = self._own(self._topic(record.topic_id))
        topic.partitions[record.partition] = PartitionImage(
            list(record.replicas),
            record.leader,
            record.leader_epoch,
            list(record.isr),
            list(record.eligible),
            list(record.adding),
            list(record.removing),
            record.partition_epoch,
            record.unclean,
            list(record.wiped),
        )

    def _start_broker(self, record: BrokerStarted) -> None:
        for topic in list(self.topics.values()):
            led = [n for n, found in enumerate(topic.partitions) if found.leader == record.node_id]
            partitions = self._own(topic).partitions if led else []
            for number in led:
                epoch = partitions[number].leader_epoch + 1
                partitions[number] = replace(partitions[number], leader_epoch=epoch)

    def _reserve_ids(self, record: ProducerIdsReserved) -> None:
        self.next_producer_id = record.next_producer_id

    def _secure(self, record: SecurityRecord) -> None:
        if self.security.owner is not self._owner:
            self.security = self.security.copy(self._owner)
        self.security.replay(record)

    def _configure(self, record: ConfigChanged) -> None:
        if record.kind == TOPIC:
            target = self._own(self.topics[record.name]).config
        elif record.kind == CLIENT_METRICS:
            target = self.client_metrics.setdefault(record.name, {})
        elif record.kind == GROUP:
            target = self.group_configs.setdefault(record.name, {})
        else:
            target = self.broker_configs.setdefault(record.name, {})
        for name, value in record.changes.items():
            if value is None:
                target.pop(name, None)
            else:
                target[name] = value
        if record.kind == CLIENT_METRICS and not target:
            del self.client_metrics[record.name]
        if record.kind == GROUP and not target:
            del self.group_configs[record.name]


_REPLAYS: dict[type[MetadataRecord], Callable[[Image, Any], None]] = {
    ClusterFormed: Image._form,
    FeatureLevelChanged: Image._change_level,
    BrokerStarted: Image._start_broker,
    BrokerRegistered: Image._register,
    BrokerEpochsGiven: Image._note_epochs,
    BrokerChanged: Image._change_broker,
    BrokerUnregistered: Image._unregister,
    TopicCreated: Image._create,
    PartitionsAdded: Image._grow,
    PartitionChanged: Image._change,
    ReplicationFactorChanged: Image._want,
    TopicDeleted: Image._delete,
    ConfigChanged: Image._configure,
    ProducerIdsReserved: Image._reserve_ids,
    **dict.fromkeys(SECURITY_KINDS, Image._secure),
}


def metric_name(topic: str) -> str:
    """Return the metric name of a topic, which has no dots."""
    return topic.replace(".", "_")


def changed(topic_id: TopicId, number: int, partition: PartitionImage) -> PartitionChanged:
    """Return the record that sets a partition to a state."""
    return PartitionChanged(
        topic_id=topic_id.hex(),
        partition=number,
        replicas=partition.replicas,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        eligible=partition.eligible,
        adding=partition.adding,
        removing=partition.removing,
        partition_epoch=partition.partition_epoch,
        unclean=partition.unclean,
        wiped=partition.wiped,
    )


def _registration(broker: BrokerImage) -> Iterator[MetadataRecord]:
    yield BrokerRegistered(
        node_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        incarnation=broker.incarnation,
        host=broker.host,
        port=broker.port,
        peer_host=broker.peer_host,
        peer_port=broker.peer_port,
        rack=broker.rack,
        directory=broker.directory,
        let_in_epoch=broker.let_in_epoch,
        endpoints=broker.endpoints,
    )
    yield BrokerChanged(
        node_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        fenced=broker.fenced,
        stopping=broker.stopping,
    )
