"""A broker without its sockets, files, threads and clock: what handlers work with.

The node constructs the parts and connects them: the metadata quorum, the controller, the replicas
on this broker, coordinators, fetch sessions and timers. It puts its effects on the outside world
into `outbox`; events of the outside world come in as calls.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random
from types import MappingProxyType
from typing import Protocol

from barnabas.controller import topic_decisions
from barnabas.controller.configs import altered_defaults
from barnabas.controller.placement import live_brokers, racks_of
from barnabas.effects import Address, Effect
from barnabas.groups.group_counts import GroupCounts
from barnabas.groups.group_machine import GroupSharing
from barnabas.metadata import topic_config
from barnabas.metadata.client_metrics_config import TOPIC as CLIENT_METRICS_TOPIC
from barnabas.metadata.features import LATEST_LEVEL
from barnabas.metadata.image import BROKER, BrokerImage, Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import (
    ConfigChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.ids import NodeId, TopicId, TopicPartition
from barnabas.model.open_files import FILES_TO_READ
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings, ShareSettings
from barnabas.model.steps import Work, finish
from barnabas.model.timers import Timers
from barnabas.node.access_control import AccessControl
from barnabas.node.audit_topic import AuditTopic
from barnabas.node.chores import checkpointing
from barnabas.node.client_metrics_topic import ClientMetrics, ClientMetricsTopic
from barnabas.node.client_telemetry import ClientTelemetry
from barnabas.node.cluster.broker_lifecycle import Membership
from barnabas.node.cluster.controlling import Controlling
from barnabas.node.cluster.local_replicas import Replicas
from barnabas.node.cluster.local_topics import TOPICS_FOLDER, LocalTopics
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.node.cluster.peer_requests import Peers
from barnabas.node.cluster.topic_creation import Creation
from barnabas.node.coordination.admissions import Admissions
from barnabas.node.coordination.coordinator_kinds import (
    groups_kind,
    share_kind,
    transactions_kind,
)
from barnabas.node.coordination.coordinators import Coordinators
from barnabas.node.coordination.node_transactions import Transactions
from barnabas.node.coordination.producer_ids import ProducerIds
from barnabas.node.fetch_sessions import FetchSessions
from barnabas.node.partitions.batch_checking import Checking
from barnabas.node.partitions.group_commit import GroupCommit
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_topics import DeadLetterTopics
from barnabas.node.share.first_offsets import first_offset
from barnabas.node.share.share_rules import RulesOfGroups
from barnabas.node.share.share_state_client import ShareStateClient
from barnabas.node.share.sharing import Sharing
from barnabas.node.topic_traffic import Traffic
from barnabas.raft.metadata_log import FOLDER as METADATA_FOLDER
from barnabas.security.authentication import Authentication
from barnabas.storage.checkpoints import Checkpoints


class DynamicTls(Protocol):
    """Applies the dynamic configs that replace the TLS files of this broker's listeners."""

    def check(self, configs: Mapping[str, str], changed: Sequence[str]) -> None:
        """Test what the configs of this broker would be; raise `ApiError` for unusable files."""

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Apply committed configs; None says that all of them may be different."""


class Node:
    """One broker's state, and the questions that can be asked of it."""

    dynamic_tls: DynamicTls | None = None
    """What applies the dynamic configs that replace TLS files; None in a simulation."""
    traffic: Traffic | None
    """What goes through each topic, for a collector; None where nothing is counted."""
    _acts = False
    looked_up = 0
    """How many partitions wait for a lookup by time."""
    endpoints: Mapping[str, tuple[str, int]] = MappingProxyType({})
    """Where clients of each listener connect to; empty if PLAINTEXT is the only one."""

    def __init__(
        self,
        settings: Settings,
        disk: Disk,
        rng: Random,
        random_bytes: Callable[[int], bytes] | None = None,
        *,
        is_metered: bool = False,
    ) -> None:
        """Construct the parts. Without `random_bytes` secrets come from `rng`, and repeat."""
        self.settings, self.disk, self.rng = settings, disk, rng
        self.node_id: NodeId = settings.broker.node_id
        self.is_alone = not settings.cluster.voters
        """Whether this node is a cluster of one."""
        self.is_broker = settings.cluster.roles != "controller"
        self.outbox: list[Effect] = []
        self.timers = Timers()
        self.commits = GroupCommit(
            self.timers, settings.performance.linger_ms, settings.performance.batch_bytes
        )
        self.sessions = FetchSessions(settings.performance.fetch_session_slots, rng)
        edge = (self.timers, self.outbox)
        secret = random_bytes or rng.randbytes
        self.access = AccessControl(
            settings, lambda: self.image.security, self.sessions, *edge, secret
        )
        self.authorizer, self.quotas = self.access.authorizer, self.access.quotas
        self.checking = Checking(self.outbox)
        self.checkpoints = Checkpoints(disk, settings.broker.data_dir)
        self.advertised = (settings.broker.host, settings.broker.port)
        self.peer_address = Address(settings.cluster.host, settings.cluster.port)
        """Where other brokers find this one."""
        self.partitions_max = topic_decisions.PARTITIONS_MAX
        self.first_level = LATEST_LEVEL
        """The feature level of a cluster that this node forms."""
        self.static_defaults = topic_config.defaults_from(settings)
        self.traffic, self.group_counts = Traffic() if is_metered else None, GroupCounts()
        self._stopped_in_epoch: int | None = None
        self.peers = Peers(self.node_id, settings.cluster.voters, lambda: self.image, self.outbox)
        self.quorum = Quorum(
            settings, disk, self.timers, self.outbox, rng, self, self.peers.ask_voter
        )
        self.controlling = Controlling(self, settings, self.quorum, self.peers, *edge, rng)
        self.membership = Membership(settings, self, self.quorum, self.peers, *edge, rng)
        self.creation = Creation(self, self.quorum, self.peers, self.timers, rng)
        self.producer_ids = ProducerIds(
            self.node_id,
            self.quorum,
            self.peers,
            self.timers,
            reserve=self.controlling.reserve_producer_ids,
            broker_epoch=lambda: self.membership.broker_epoch,
        )
        self.replicas = Replicas(self, settings, disk, self.peers, *edge)
        self.local = LocalTopics(self, settings, disk, *edge, self.commits, self.traffic)
        self.partitions = self.local.partitions
        self.by_topic_id = self.local.by_id
        self.by_topic_name = self.local.by_name
        self.transactions = Transactions(self, self.peers, self.timers)
        self.coordinators = self._make_coordinators(settings, rng)
        self.share_states = ShareStateClient(
            self, self.coordinators.shares, self.peers, *edge, settings.share
        )
        self.sharing = self._make_sharing(settings.share)

    def _make_coordinators(self, settings: Settings, rng: Random) -> Coordinators:
        return Coordinators(
            self,
            groups_kind(
                settings.groups,
                lambda: self.image,
                rng,
                self.group_counts,
                lambda: GroupSharing(settings.share, self.share_states),
            ),
            transactions_kind(
                settings.transactions,
                self.transactions.end,
                self.transactions.coordinator_closed,
            ),
            share_kind(settings.share, lambda: self.image),
        )

    def _make_sharing(self, settings: ShareSettings) -> Sharing:
        rules = RulesOfGroups(lambda: self.image.group_configs, settings)

        def begin(group_id: str, partition: Partition) -> Pending[int]:
            reset = rules.of(group_id).reset
            return first_offset(reset, partition, self.timers.wall_ms, self.outbox)

        return Sharing(
            self.find,
            self.share_states,
            self.timers,
            rules.of,
            begin,
            settings.max_sessions,
            DeadLetterTopics(
                self, self.peers, self.timers, self.outbox, lambda each: rules.of(each).dead_letters
            ),
        )

    @property
    def image(self) -> Image:
        """The cluster's metadata, as far as it was committed."""
        return self.quorum.image

    @property
    def draft(self) -> Image:
        """The metadata that decisions are made against; raise if another node decides."""
        return self.quorum.require_draft()

    @cached_property
    def client_metrics(self) -> ClientMetrics | None:
        """What takes the metrics that clients push; None if the broker takes none."""
        if not self.settings.observability.client_metrics:
            return None
        clients = ClientTelemetry(lambda: self.image.client_metrics, self.rng.randbytes)
        topic = ClientMetricsTopic(self, self.peers, self.timers, self.outbox)
        return ClientMetrics(clients, topic)

    @property
    def authentication(self) -> Authentication:
        """Authenticates the clients of SASL listeners."""
        return self.access.authentication

    @property
    def is_controller(self) -> bool:
        """Whether this node is the active controller."""
        return self.quorum.is_controller

    @property
    def controller_id(self) -> NodeId | None:
        """The active controller, as far as this node knows."""
        return self.quorum.controller_id

    @property
    def nodes(self) -> Sequence[NodeId]:
        """The brokers that partitions can be placed on."""
        return live_brokers(self.quorum.draft or self.image)

    def place(self, partitions: int, copies: int) -> list[list[int]]:
        """Spread new partitions over brokers and racks; raise if there are too few."""
        image = self.draft
        brokers = live_brokers(image)
        start = self.rng.randrange(len(brokers)) if len(brokers) > 1 else 0
        return topic_decisions.place(partitions, copies, brokers, racks_of(image), start)

    @property
    def brokers(self) -> list[BrokerImage]:
        """The brokers that clients can connect to."""
        return [broker for broker in self.image.brokers.values() if not broker.fenced]

    @property
    def topic_defaults(self) -> dict[str, str]:
        """The configs that topics inherit: the settings, and dynamic configs."""
        return self.defaults_of(self.image)

    def defaults_of(self, image: Image) -> dict[str, str]:
        """Return the configs that topics inherit with this metadata."""
        return {**self.static_defaults, **altered_defaults(image, self.node_id)}

    def settled_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a new topic's configs with those that all brokers must agree on spelled out.

        min.insync.replicas decides which replicas may lead, so all brokers must agree on it.
        """
        name = "min.insync.replicas"
        if self.is_alone or name in config:
            return dict(config)
        return {**config, name: self.topic_defaults[name]}

    def start(self, now_ms: int) -> Pending[None]:
        """Load everything from disk; answer once this node serves clients."""
        self._write_audit_topic(self.settings.security.audit_topic)
        self._stopped_in_epoch = self.checkpoints.take_clean_marker()
        self.local.begin(
            clean=self._stopped_in_epoch is not None,
            recovery_points=self.checkpoints.recovery_points(),
            high_watermarks=self.checkpoints.high_watermarks(),
        )
        recovered = self.quorum.open()
        self.local.report("metadata", recovered)
        if self.is_alone:
            self._refuse_lost_metadata()
        self.quorum.raft.start()
        if self.is_alone:
            self.controlling.begin_alone(self.membership, now_ms)
            self._begin_to_act()
            return Pending.of(None)
        if not self.is_broker:
            return Pending.of(None)
        return self.membership.begin(self._stopped_in_epoch)

    def stop(self) -> None:
        """Close every log after the driver has synced them all, and leave the clean marker.

        Raises `OSError` if the disk is full: all records are safe, but the next start must check.
        """
        self.local.discard_all()
        for partition in self.partitions.values():
            partition.log.close()
        self.quorum.raft.close()
        checkpointing.store_points(self, finish(checkpointing.current_points(self, Work())))
        if not self._acts:
            if self._stopped_in_epoch is not None:  # no log was opened or changed
                self.checkpoints.write_clean_marker(self.membership.last_epoch)
        elif all(self.is_open(topic) for topic in self.image.topics.values()):
            self.checkpoints.write_clean_marker(self.membership.broker_epoch)

    def commit(self, changes: Sequence[MetadataRecord], now_ms: int) -> Pending[None]:
        """Write metadata; what it changes takes effect here before the answer.

        Raises `ApiError` if the disk refuses or another node decides; nothing has changed then.
        """
        self.controlling.count_unclean(changes)
        committed = self.quorum.propose(changes, now_ms)
        if not self.is_alone or not any(map(_makes_partitions, changes)):
            return committed
        # Answer once the logs are open, since no other broker could serve them meanwhile.
        opened: Pending[None] = Pending()
        committed.when_done(
            lambda _: self.local.when_open().when_done(opened.complete), opened.fail
        )
        return opened

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Act on what was committed; None says that everything may be different.

        A process first reads the records from before its start, and must not act on them: a deleted
        topic may have had the name, and the folder, of one that exists now. The process acts from
        its own registration on. Only rights and quotas apply from the first record on.
        """
        self.access.metadata_changed(changes)
        if self.client_metrics is not None:
            self.client_metrics.clients.metadata_changed(changes)
        if not self._acts:
            if not self.is_alone and self.membership.is_known(self.image):
                self._begin_to_act()
            return
        topics = self._affected(changes)
        deleted = None if changes is None else _deleted(changes)
        gone = self.local.reconcile(topics, deleted)
        # A deleted topic may have had no replica here, but groups here may have offsets of it.
        if topics or gone or deleted:
            self.coordinators.metadata_changed(changes)
        self.replicas.metadata_changed(changes)
        if self.dynamic_tls is not None:
            self.dynamic_tls.metadata_changed(changes)
        self.creation.metadata_changed()

    def give_role(self, partition: Partition, placed: PartitionImage) -> None:
        """Have a replica lead or follow; tell the coordinators when its leadership changed."""
        before = partition.leads, partition.leader_epoch
        self.replicas.apply(partition, placed)
        if before != (partition.leads, partition.leader_epoch):
            self.leadership_changed(partition.name)

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Close or load a partition's coordinator: its leader or its leader epoch changed."""
        self.coordinators.leadership_changed(partition)

    @property
    def admissions(self) -> Admissions:
        """The batches that wait to be admitted to a transaction."""
        return self.transactions.admissions

    def became_controller(self) -> None:
        """Start the duties of the controller."""
        self.controlling.begin()

    def lost_control(self) -> None:
        """Stop the duties of the controller."""
        self.controlling.end()

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that is led here, by its topic's name or id.

        Raises the `ApiError` that says why it is not here.
        """
        found = self.replica(key, partition)
        if not found.leads:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def replica(self, key: str | bytes, partition: int) -> Partition:
        """Return a replica on this broker, whether it leads or follows."""
        if isinstance(key, str):
            by_index = self.by_topic_name.get(key)
        else:
            by_index = self.by_topic_id.get(TopicId(key))
        found = None if by_index is None else by_index.get(partition)
        if found is None:
            raise self._absent(key, partition)
        return found

    def _absent(self, key: str | bytes, partition: int) -> ApiError:
        """Return the error for a partition that is not on this broker, or not yet."""
        by_name = isinstance(key, str)
        topic = self.image.topics.get(key) if isinstance(key, str) else self.image.topic_by_id(key)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
            return ApiError(code)
        if not 0 <= partition < len(topic.partitions):
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.node_id not in topic.partitions[partition].replicas:
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.local.was_refused(topic):
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "its log cannot be opened yet")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def check_room(self, partitions: int) -> None:
        """Refuse partitions for which there would not be enough open files."""
        most = min(self.partitions_max, self.disk.open_files.limit - FILES_TO_READ)
        room = max(0, most - len(self.partitions))
        if partitions > room:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"{partitions} more partitions are wanted and this broker has room for {room}; "
                "raise its limit of open files",
            )

    def next_producer_id(self, now_ms: int) -> Pending[int]:
        """Return an id that no producer ever had."""
        return self.producer_ids.next(now_ms)

    def auto_create(self, name: str, now_ms: int) -> Pending[None]:
        """Create a topic that a client asked for by name, with the broker's defaults."""
        internal = self.coordinators.topics.get(name)
        if internal is not None:  # the topic must have the config that its coordinator needs
            return internal.ensure(now_ms)
        return self.create_topic(name, self.settings.broker.default_partitions, {}, now_ms)

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str], now_ms: int
    ) -> Pending[None]:
        """Create a topic, replicated as the settings say; answer once the metadata here has it."""
        copies = self.settings.replication.default_replication_factor
        return self.creation.create(name, partitions, copies, config, now_ms)

    def ensure_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        now_ms: int,
        *,
        replication_factor: int,
    ) -> Pending[None]:
        """Create a topic that the broker itself needs."""
        return self.creation.create(name, partitions, replication_factor, config, now_ms)

    @property
    def remembers_factors(self) -> bool:
        """Whether the controller adds replicas later that a topic cannot have yet."""
        return self.creation.remembers_factors

    def is_internal(self, topic: TopicImage) -> bool:
        """Tell whether a topic is internal, so that clients cannot produce to it."""
        if self.client_metrics is not None and topic.name == CLIENT_METRICS_TOPIC:
            return True
        return topic.is_internal or topic.name == self.settings.security.audit_topic

    def is_open(self, topic: TopicImage) -> bool:
        """Tell whether every replica of a topic on this broker is open."""
        return self.local.is_open(topic)

    def config_of(self, topic: TopicImage) -> TopicConfig:
        """Return the present configuration of a topic."""
        return topic_config.resolve(topic.config, self.topic_defaults)

    def _write_audit_topic(self, topic: str | None) -> None:
        """Write the lines of the audit log to a topic as well, if there is one for them."""
        if topic is not None:
            log = AuditTopic(self, topic, self.peers, self.timers, self.outbox)
            self.access.write_audit_lines_to(log.add)

    def _begin_to_act(self) -> None:
        self._acts = True
        self.metadata_changed(None)
        self.local.serves = True
        self.local.report_strangers()
        self.coordinators.start()

    def _affected(self, changes: Sequence[MetadataRecord] | None) -> list[TopicImage]:
        """Return the topics that records concern, as they are now."""
        topics = self.image.topics
        if changes is None or any(map(_touches_every_topic, changes)):
            return list(topics.values())
        names: dict[str, None] = {}
        for change in changes:
            match change:
                case TopicCreated() | ConfigChanged():
                    names[change.name] = None
                case TopicDeleted() | PartitionsAdded() | PartitionChanged():
                    topic = self.image.topic_by_id(bytes.fromhex(change.topic_id))
                    if topic is not None:
                        names[topic.name] = None
                case _:
                    pass
        return [topics[name] for name in names if name in topics]

    def _refuse_lost_metadata(self) -> None:
        """Refuse to start if there are topics on disk without the metadata that describes them."""
        folder = self.settings.broker.data_dir
        topics = f"{folder}/{TOPICS_FOLDER}"
        folders = set(self.disk.list(topics)).difference(self.disk.files(topics))
        if folders and not self.quorum.raft.end_offset:
            raise StorageError(
                f"{topics} holds topics, but the metadata that describes them is gone; restore "
                f"{folder}/{METADATA_FOLDER} from a backup, or move {topics} away to start empty"
            )


def _deleted(changes: Sequence[MetadataRecord]) -> list[TopicId]:
    return [
        TopicId(bytes.fromhex(change.topic_id))
        for change in changes
        if isinstance(change, TopicDeleted)
    ]


def _makes_partitions(change: MetadataRecord) -> bool:
    """Tell whether logs are opened for a record."""
    return isinstance(change, TopicCreated | PartitionsAdded)


def _touches_every_topic(change: MetadataRecord) -> bool:
    """Tell whether a record changes what all topics inherit."""
    return isinstance(change, ConfigChanged) and change.kind == BROKER
