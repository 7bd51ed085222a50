"""A broker without its sockets, files, threads and clock: what handlers talk to.

The node owns the metadata journal, the partitions, fetch sessions and timers. Everything it wants
done in the world goes into `outbox`; everything that happens in the world comes in as a call.
"""

from collections.abc import Callable, Sequence
from random import Random

from barnabas.controller import topics as topic_decisions
from barnabas.controller.configs import altered_defaults
from barnabas.effects import Address, Effect, Notice, Remove
from barnabas.metadata import topic_config
from barnabas.metadata.image import Image, TopicImage
from barnabas.metadata.records import (
    BrokerStarted,
    ClusterFormed,
    MetadataRecord,
    ProducerIdsReserved,
    TopicCreated,
)
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.ids import NodeId, TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.node.coordinators import Coordinators
from barnabas.node.fetch_sessions import FetchSessions
from barnabas.node.group_commit import GroupCommit
from barnabas.node.journal import Journal
from barnabas.node.partition import Partition, log_settings
from barnabas.node.peers import Peers
from barnabas.node.quotas import Quota
from barnabas.node.replicas import Replicas
from barnabas.node.transactions import Transactions
from barnabas.storage.checkpoints import Checkpoints
from barnabas.storage.ownership import own_folder
from barnabas.storage.recovery import open_log

PRODUCER_ID_BLOCK = 1000
TOPICS_FOLDER = "topics"
DELETED_FOLDER = "deleted"
STRANGERS_FOLDER = "strangers"
REOPEN_AFTER_MS = 1000


class Node:
    """One broker's state, and the questions that can be asked of it."""

    def __init__(self, settings: Settings, disk: Disk, rng: Random) -> None:
        self.settings = settings
        self.disk = disk
        self.rng = rng
        self.node_id: NodeId = settings.broker.node_id
        self.outbox: list[Effect] = []
        self.timers = Timers()
        self.commits = GroupCommit(
            self.timers, settings.performance.linger_ms, settings.performance.batch_bytes
        )
        self.journal = Journal(disk, settings.broker.data_dir, self.outbox)
        self.partitions: dict[TopicPartition, Partition] = {}
        self.by_topic_id: dict[TopicId, dict[int, Partition]] = {}
        self.by_topic_name: dict[str, dict[int, Partition]] = {}
        self.sessions = FetchSessions(settings.performance.fetch_session_slots, rng)
        self.produce_quota = Quota(settings.performance.producer_quota_bytes_per_second)
        self.fetch_quota = Quota(settings.performance.consumer_quota_bytes_per_second)
        self.checkpoints = Checkpoints(disk, settings.broker.data_dir)
        self.advertised = (settings.broker.host, settings.broker.port)
        self.peer_address: Address | None = None
        """Where other brokers find this one; None where nobody listens for them."""
        self.peers = Peers(self.node_id, settings.cluster.voters, lambda: self.image, self.outbox)
        self._static_defaults = topic_config.defaults_from(settings)
        self._producer_ids = iter(range(0))
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._configured: dict[TopicId, tuple[dict[str, str], dict[str, str]]] = {}
        # Topics whose creation is not synced yet: nothing may be stored in their name.
        self._uncommitted: set[str] = set()
        # Topics of which a log could not be opened, for the disk refused.
        self._unopened: set[TopicId] = set()
        self._reopening = False
        self.partitions_max = topic_decisions.PARTITIONS_MAX
        self.replicas = Replicas(self)
        self.coordinators = Coordinators(self)
        self.transactions = Transactions(self)

    @property
    def image(self) -> Image:
        """The cluster's metadata."""
        return self.journal.image

    @property
    def is_controller(self) -> bool:
        """Whether this node decides on metadata."""
        return True

    @property
    def controller_id(self) -> NodeId | None:
        """The node that decides on metadata, as far as this one knows."""
        return self.node_id

    @property
    def nodes(self) -> Sequence[NodeId]:
        """The brokers there are."""
        return (self.node_id,)

    @property
    def topic_defaults(self) -> dict[str, str]:
        """What topics inherit: the settings, and what was altered since."""
        return {**self._static_defaults, **altered_defaults(self.image, self.node_id)}

    def start(self, now_ms: int) -> None:
        """Load everything from disk and become ready to serve."""
        clean = self.checkpoints.take_clean_marker()
        recovered = self.journal.open()
        self._report("metadata", recovered.truncated_bytes, recovered.problems)
        self._refuse_lost_metadata()
        changes: list[MetadataRecord] = []
        if not self.image.cluster_id:
            named = self.settings.cluster.cluster_id or self._new_cluster_id()
            changes.append(ClusterFormed(cluster_id=named))
        self.journal.commit_now([*changes, BrokerStarted(node_id=self.node_id)], now_ms)
        recovery_points = self.checkpoints.recovery_points()
        self._high_watermarks = self.checkpoints.high_watermarks()
        for topic in self.image.topics.values():
            self._try_to_open(topic, clean=clean, recovery_points=recovery_points)
        self._remove_strangers()
        self.coordinators.start()

    def stop(self) -> None:
        """Close every log after the driver has synced them all, and leave the clean marker.

        Raises `OSError` where the disk takes no more: all is safe, but the next start must check.
        """
        for partition in self.partitions.values():
            partition.log.close()
        self.journal.close()
        self.checkpoints.write_recovery_points(self.recovery_points())
        self.checkpoints.write_high_watermarks(self.high_watermarks())
        if all(self.is_open(topic) for topic in self.image.topics.values()):
            self.checkpoints.write_clean_marker()

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Up to where each log is safe on disk, by the ids of topics: names are used again."""
        return {
            TopicPartition(topic_id.hex(), number): partition.log.flushed_offset
            for topic_id, opened in self.by_topic_id.items()
            for number, partition in opened.items()
        }

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Up to where each copy is known to be committed, by the ids of topics."""
        return {
            TopicPartition(topic_id.hex(), number): partition.high_watermark
            for topic_id, opened in self.by_topic_id.items()
            for number, partition in opened.items()
        }

    def commit(self, changes: Sequence[MetadataRecord], now_ms: int) -> Pending[bool]:
        """Write metadata; what it changes takes effect before the answer.

        Raises `ApiError` where the disk refuses; nothing has changed then.
        """
        pending: Pending[bool] = Pending()
        created = [change.topic_id for change in changes if isinstance(change, TopicCreated)]

        def committed() -> None:
            self._uncommitted.difference_update(created)
            self._reconcile()
            pending.complete(result=True)

        self._propose(changes, now_ms, committed)
        self._uncommitted.update(created)
        return pending

    def _propose(
        self, changes: Sequence[MetadataRecord], now_ms: int, action: Callable[[], None]
    ) -> None:
        try:
            self.journal.propose(changes, now_ms, action)
        except OSError as error:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused metadata: {error}"
            ) from error

    def commit_now(self, changes: Sequence[MetadataRecord], now_ms: int) -> None:
        """Write metadata before anybody is served."""
        self.journal.commit_now(changes, now_ms)
        self._reconcile()

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that is led here, by its topic's name or id.

        Raises what its absence means.
        """
        found = self.replica(key, partition)
        if not found.leads:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def replica(self, key: str | bytes, partition: int) -> Partition:
        """Return a copy of a partition that lies here, led here or not."""
        if isinstance(key, str):
            by_index = self.by_topic_name.get(key)
        else:
            by_index = self.by_topic_id.get(TopicId(key))
            if by_index is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        found = None if by_index is None else by_index.get(partition)
        if found is None:
            raise self._absent(key, partition)
        return found

    def _absent(self, key: str | bytes, partition: int) -> ApiError:
        """Return the error for a partition that is not open: there is none, or none for now."""
        topic = self.image.topics.get(key) if isinstance(key, str) else self.image.topic_by_id(key)
        tried = topic is not None and topic.topic_id in self._unopened
        if topic is not None and tried and 0 <= partition < len(topic.partitions):
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "its log cannot be opened yet")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def check_room(self, partitions: int) -> None:
        """Refuse partitions for which there would not be enough open files."""
        room = self.partitions_max - len(self.partitions)
        if partitions > room:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"{partitions} more partitions are wanted and this broker has room for {room}; "
                "raise its limit of open files",
            )

    def next_producer_id(self, now_ms: int) -> Pending[int]:
        """Give out an id that no producer ever had."""
        pending: Pending[int] = Pending()
        fresh = next(self._producer_ids, None)
        changes: list[MetadataRecord] = []
        left = self._producer_ids
        if fresh is None:
            fresh = self.image.next_producer_id
            end = fresh + PRODUCER_ID_BLOCK
            left = iter(range(fresh + 1, end))
            changes.append(ProducerIdsReserved(next_producer_id=end))
        # Even with nothing to write: the block of this id may not be on disk yet.
        self._propose(changes, now_ms, lambda: pending.complete(fresh))
        self._producer_ids = left
        return pending

    def auto_create(self, name: str, now_ms: int) -> Pending[bool]:
        """Make a topic that somebody asked for by name, with the broker's defaults."""
        internal = self.coordinators.topics.get(name)
        if internal is not None:  # whoever asks, it must be what a coordinator needs
            return internal.ensure(now_ms)
        return self.create_topic(name, self.settings.broker.default_partitions, {}, now_ms)

    def create_topic(
        self, name: str, partitions: int, config: dict[str, str], now_ms: int
    ) -> Pending[bool]:
        """Make a topic, replicated as the broker's defaults say."""
        self.check_room(partitions)
        replicas = topic_decisions.place(
            partitions,
            min(self.settings.replication.default_replication_factor, len(self.nodes)),
            self.nodes,
        )
        record = topic_decisions.create_topic(
            self.image, name, replicas, config, self.topic_defaults, self.rng
        )
        return self.commit([record], now_ms)

    def ensure_topic(
        self,
        name: str,
        partitions: int,
        config: dict[str, str],
        now_ms: int,
        *,
        replication_factor: int,
    ) -> Pending[bool]:
        """Have a topic made, unless it is there; answer once it is."""
        if name in self.image.topics:
            ready: Pending[bool] = Pending()
            ready.complete(result=True)
            return ready
        self.check_room(partitions)
        replicas = topic_decisions.place(partitions, replication_factor, self.nodes)
        record = topic_decisions.create_topic(
            self.image, name, replicas, config, self.topic_defaults, self.rng
        )
        return self.commit([record], now_ms)

    def is_open(self, topic: TopicImage) -> bool:
        """Tell whether every partition of a topic can be served already."""
        return len(self.by_topic_id.get(topic.topic_id, ())) == len(topic.partitions)

    def config_of(self, topic: TopicImage) -> TopicConfig:
        """Return what a topic is configured with now."""
        return topic_config.resolve(topic.config, self.topic_defaults)

    def topic_folder(self, name: str) -> str:
        """Return where a topic's partitions lie."""
        return f"{self.settings.broker.data_dir}/{TOPICS_FOLDER}/{name}"

    def _reconcile(self) -> None:
        """Make partitions agree with the image: drop, open, configure."""
        # Dropped first: a topic that is made again goes by the same name and folder.
        dropped = [t for t in self.by_topic_id if t not in self.image.names]
        names = [self._drop_topic(topic_id) for topic_id in dropped]
        defaults = self.topic_defaults
        for topic in self.image.topics.values():
            if topic.topic_id.hex() in self._uncommitted:
                continue
            opened = self.by_topic_id.get(topic.topic_id, {})
            if len(opened) < len(topic.partitions):
                self._try_to_open(topic, clean=False, recovery_points={})
            self._configure(topic, defaults)
            for number, partition in opened.items():
                if partition.placed != topic.partitions[number]:
                    self.replicas.apply(partition, topic.partitions[number])
        self.coordinators.metadata_changed(names)

    def _configure(self, topic: TopicImage, defaults: dict[str, str]) -> None:
        """Pass a topic's configuration on where it changed; to work it out is dear."""
        source = (topic.config, defaults)
        if self._configured.get(topic.topic_id) == source:
            return
        self._configured[topic.topic_id] = (dict(topic.config), defaults)
        config = topic_config.resolve(topic.config, defaults)
        for partition in self.by_topic_id.get(topic.topic_id, {}).values():
            if partition.config != config:
                partition.configure(config)

    def _try_to_open(
        self, topic: TopicImage, *, clean: bool, recovery_points: dict[TopicPartition, int]
    ) -> None:
        """Open what is not open of a topic; where the disk refuses, try again later."""
        try:
            self._open_topic(topic, clean=clean, recovery_points=recovery_points)
        except (OSError, StorageError) as error:
            if topic.topic_id not in self._unopened:
                self._unopened.add(topic.topic_id)
                facts = {"topic": topic.name, "problem": str(error)}
                self.outbox.append(Notice("error", "cannot open a topic's logs yet", facts))
            if not self._reopening:
                self._reopening = True
                self.timers.after(REOPEN_AFTER_MS, self._reopen)
        else:
            self._unopened.discard(topic.topic_id)

    def _reopen(self) -> None:
        self._reopening = False
        self._reconcile()

    def _open_topic(
        self, topic: TopicImage, *, clean: bool, recovery_points: dict[TopicPartition, int]
    ) -> None:
        config = self.config_of(topic)
        opened = self.by_topic_id.setdefault(topic.topic_id, {})
        self.by_topic_name[topic.name] = opened
        aside = f"{self.settings.broker.data_dir}/{STRANGERS_FOLDER}"
        owned = own_folder(self.disk, self.topic_folder(topic.name), topic.topic_id, aside)
        if owned.problem:
            facts = {"topic": topic.name, "problem": owned.problem}
            self.outbox.append(Notice("warning", "a topic's folder was not as expected", facts))
        for number, placed in enumerate(topic.partitions):
            if number in opened:
                continue
            name = TopicPartition(topic.name, number)
            recovered = open_log(
                self.disk,
                f"{self.topic_folder(topic.name)}/{number}",
                log_settings(config),
                root=self.settings.broker.data_dir,
                clean=clean,
                recovery_point=recovery_points.get(TopicPartition(topic.topic_id.hex(), number), 0),
            )
            owned.become_safe_with(recovered.log)
            self._report(str(name), recovered.truncated_bytes, recovered.problems)
            partition = Partition(
                name,
                topic.topic_id,
                recovered.log,
                config,
                self.outbox,
                self.commits,
                self._high_watermarks.get(TopicPartition(topic.topic_id.hex(), number), 0),
            )
            self.partitions[name] = opened[number] = partition
            self.replicas.apply(partition, placed)

    def _drop_topic(self, topic_id: TopicId) -> str:
        """Stop serving a topic; return its name."""
        dropped = self.by_topic_id.pop(topic_id)
        self._configured.pop(topic_id, None)
        self._unopened.discard(topic_id)
        name = next(name for name, opened in self.by_topic_name.items() if opened is dropped)
        del self.by_topic_name[name]
        for partition in dropped.values():
            del self.partitions[partition.name]
        for partition in dropped.values():  # now that nobody finds them any more
            partition.retire()
        base = f"{self.settings.broker.data_dir}/{DELETED_FOLDER}"
        retired = f"{base}/{topic_id.hex()}"
        try:
            self.disk.make_folder(base)
            self.disk.rename(self.topic_folder(name), retired)
        except OSError as error:
            facts = {"topic": name, "problem": str(error)}
            self.outbox.append(Notice("error", "a deleted topic's folder stays", facts))
            return name
        self.outbox.append(Remove((retired,), delay_ms=0))
        return name

    def _remove_strangers(self) -> None:
        """Go on with deletions that a stop cut short; report folders that no topic owns."""
        deleted = f"{self.settings.broker.data_dir}/{DELETED_FOLDER}"
        for name in self.disk.list(deleted):
            self.outbox.append(Remove((f"{deleted}/{name}",), delay_ms=0))
        base = f"{self.settings.broker.data_dir}/{TOPICS_FOLDER}"
        for name in self.disk.list(base):
            if name not in self.image.topics:
                facts = {"folder": f"{base}/{name}"}
                self.outbox.append(Notice("warning", "a folder belongs to no topic", facts))

    def _refuse_lost_metadata(self) -> None:
        """Stop where there are topics on disk and no cluster that they could belong to."""
        topics = f"{self.settings.broker.data_dir}/{TOPICS_FOLDER}"
        if not self.image.cluster_id and self.disk.list(topics):
            raise StorageError(
                f"{topics} holds topics, but the metadata that describes them is gone; restore "
                f"{self.journal.folder} from a backup, or move {topics} away to start empty"
            )

    def _report(self, what: str, truncated: int, problems: Sequence[str]) -> None:
        if truncated:
            facts = {"log": what, "bytes": truncated}
            self.outbox.append(Notice("warning", "cut an unfinished tail", facts))
        for problem in problems:
            facts = {"log": what, "problem": problem}
            self.outbox.append(Notice("error", "repaired a log", facts))

    def _new_cluster_id(self) -> str:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        return "".join(self.rng.choice(alphabet) for _ in range(22))
