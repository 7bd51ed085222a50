"""Which partition coordinates which group or transaction, and the machines of those led here.

A name's hash chooses the partition of an internal topic, as in Kafka; that partition's leader is
the coordinator. The topics are made when a client first looks for a coordinator. A coordinator
moves with the leadership of its partition: whoever gets it reads what was stored and goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.effects import Notice
from barnabas.groups.machine import GroupMachine
from barnabas.metadata.image import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.metadata.records import MetadataRecord, TopicCreated, TopicDeleted
from barnabas.model.coordination import Machine
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.ids import NodeId, TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.shard import Shard
from barnabas.transactions.machine import TransactionMachine

if TYPE_CHECKING:
    from barnabas.node.node import Node

M = TypeVar("M", bound=Machine)

STATE_CONFIG = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": str(100 * 1024 * 1024),
}
SAFE_COPIES = 3
"""With so many, every write must be in two of them: the loss of either leaves one."""
NO_LEADER = -1
SOON_MS = 1
LOADED_AT_ONCE_BYTES = 1 << 17
"""How much state is read before others get a turn."""


class Coordinators:
    """The coordinators of a node."""

    def __init__(self, node: "Node") -> None:
        settings = node.settings
        self._node = node
        self._known: dict[TopicId, str] = {}
        """The topics of which the groups know."""
        self.groups = CoordinatorSet(
            node,
            GROUPS_TOPIC,
            settings.groups.offsets_partitions,
            lambda shard: GroupMachine(settings.groups, shard, lambda: node.image, node.rng),
        )
        self.transactions = CoordinatorSet(
            node,
            TRANSACTIONS_TOPIC,
            settings.transactions.log_partitions,
            lambda shard: TransactionMachine(
                settings.transactions,
                shard,
                lambda ending: node.transactions.end(shard, ending),
            ),
            self._transactions_closed,
        )
        self.topics: dict[str, CoordinatorSet[GroupMachine] | CoordinatorSet[TransactionMachine]]
        self.topics = {GROUPS_TOPIC: self.groups, TRANSACTIONS_TOPIC: self.transactions}

    def _transactions_closed(self, number: int) -> None:
        self._node.transactions.coordinator_closed(number)

    def start(self) -> None:
        """Take up everything that is coordinated here, soon after the start."""
        self.groups.load_soon()
        self.transactions.load_soon()

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Hear that somebody else leads a partition, or the same broker in another epoch."""
        coordinators = self.topics.get(partition.topic)
        if coordinators is not None:
            coordinators.leadership_changed(partition.partition)

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Tell groups that topics came, grew or went; drop coordinators that are elsewhere now.

        None says that everything may be different.
        """
        for coordinators in self.topics.values():
            coordinators.let_go_of_others()
        deleted = self._look_for_deleted() if changes is None else self._deleted_by(changes)
        for shard in self.groups.shards():
            machine = shard.machine
            shard.run_quietly(lambda machine=machine: machine.topics_changed(deleted))  # type: ignore[misc]

    def _deleted_by(self, changes: Sequence[MetadataRecord]) -> list[str]:
        """Follow what became of topics; return the names of those that were deleted."""
        deleted = dict[str, None]()
        for change in changes:
            if isinstance(change, TopicCreated):
                self._known[TopicId(bytes.fromhex(change.topic_id))] = change.name
            elif isinstance(change, TopicDeleted):
                name = self._known.pop(TopicId(bytes.fromhex(change.topic_id)), None)
                if name is not None:
                    deleted[name] = None
        return list(deleted)

    def _look_for_deleted(self) -> list[str]:
        now, before = self._node.image.names, self._known
        self._known = dict(now)
        return list(dict.fromkeys(name for topic_id, name in before.items() if topic_id not in now))


class CoordinatorSet(Generic[M]):
    """The coordinators that keep their state in one internal topic."""

    def __init__(
        self,
        node: "Node",
        topic: str,
        partitions: int,
        make: Callable[[Shard[M]], M],
        closed: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.topic = topic
        self._node = node
        self._partitions = partitions
        self._make = make
        self._closed = closed
        self._shards: dict[int, Shard[M]] = {}
        self._unloaded: dict[int, None] = {}
        self._loading = False
        self._creating: list[Pending[None]] = []

    def ensure(self, now_ms: int) -> Pending[None]:
        """Make the topic where there is none; answer once the cluster knows it.

        Raises `ApiError` where it cannot be made, or has the answer fail with it.
        """
        ready: Pending[None] = Pending()
        if not self._creating and self.topic in self._node.image.topics:
            ready.complete(None)
            return ready
        self._creating.append(ready)
        if len(self._creating) == 1:
            try:
                made = self._create(now_ms)
            except ApiError:
                self._creating.clear()
                raise
            made.when_done(self._created, self._not_created)
        return ready

    def partition_for(self, name: str) -> int:
        """Return the partition that a group or a transactional id belongs to, as Kafka does."""
        made = self._node.image.topics.get(self.topic)
        count = self._partitions if made is None else len(made.partitions)
        return (java_hash(name) & 0x7FFFFFFF) % count

    def broker_for(self, name: str) -> NodeId:
        """Return the broker that coordinates a group or a transactional id, as metadata has it.

        Raises COORDINATOR_NOT_AVAILABLE while there is none.
        """
        made = self._node.image.topics.get(self.topic)
        leader = NO_LEADER if made is None else made.partitions[self.partition_for(name)].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"nobody coordinates {name}")
        return NodeId(leader)

    def shard_for(self, name: str) -> Shard[M]:
        """Return the coordinator of a group or a transactional id.

        Raises NOT_COORDINATOR where it is not here, COORDINATOR_NOT_AVAILABLE where it is nowhere
        yet, COORDINATOR_LOAD_IN_PROGRESS while its state is being read.
        """
        return self._shard(self.partition_for(name))

    def shard_on(self, partition: int) -> Shard[M] | None:
        """Return the coordinator on a partition of the topic, if it is here and ready."""
        try:
            return self._shard(partition)
        except ApiError:
            return None

    def shards(self) -> Iterator[Shard[M]]:
        """Yield every coordinator that was taken up."""
        yield from list(self._shards.values())

    def all_shards(self) -> Iterator[Shard[M]]:
        """Yield every coordinator there is here."""
        for number in self._led():
            yield self._shard(number)

    def load_soon(self) -> None:
        """Take up one coordinator after the other, between requests."""
        for number in self._led():
            self._load_soon(number)

    def leadership_changed(self, number: int) -> None:
        """Take up a coordinator that was given to this broker, or let one go."""
        shard = self._shards.get(number)
        if shard is not None and not self._is_current(shard):
            self._let_go(number)
        if number in self._led():
            self._load_soon(number)

    def let_go_of_others(self) -> None:
        """Let go of coordinators whose partitions are led by somebody else, or in another epoch."""
        for number, shard in list(self._shards.items()):
            if not self._is_current(shard):
                self._let_go(number)

    def _led(self) -> list[int]:
        opened = self._node.by_topic_name.get(self.topic) or {}
        return [number for number, partition in opened.items() if partition.leads]

    def _is_current(self, shard: Shard[M]) -> bool:
        """Tell whether a shard is of the leadership that there is now."""
        partition = shard.partition
        return (
            partition.leads
            and shard.leader_epoch == partition.leader_epoch
            and not partition.retired
        )

    def _shard(self, number: int) -> Shard[M]:
        shard = self._shards.get(number)
        if shard is not None and not self._is_current(shard):
            self._let_go(number)
            shard = None
        if shard is None:
            shard = self._take_up(number)
            self._load(number, shard)
        shard.check()
        return shard

    def _take_up(self, number: int) -> Shard[M]:
        try:
            partition = self._node.find(self.topic, number)
        except ApiError as error:
            raise ApiError(self._absence(number, error.code), error.message) from error
        node = self._node
        shard = Shard(partition, node.timers, node.outbox, self._make, load=False)
        self._shards[number] = shard
        return shard

    def _absence(self, number: int, code: ErrorCode) -> ErrorCode:
        """Return what it means to those who ask a coordinator that its partition is not here."""
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return ErrorCode.NOT_COORDINATOR
        made = self._node.image.topics.get(self.topic)
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return code
        if made is None or made.partitions[number].leader == self._node.node_id:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NOT_COORDINATOR

    def _let_go(self, number: int) -> None:
        self._shards.pop(number).close()
        self._closed(number)

    def _load_soon(self, number: int) -> None:
        self._unloaded[number] = None
        if not self._loading:
            self._loading = True
            self._node.timers.after(SOON_MS, self._load_next)

    def _load_next(self) -> None:
        """Read a piece of one coordinator's state; go on with the next soon."""
        number = next(iter(self._unloaded))
        del self._unloaded[number]
        try:
            shard = self._shards.get(number)
            if shard is None or not self._is_current(shard):
                self._shard(number)
            elif not shard.is_open:
                self._load(number, shard)
        except ApiError:
            pass  # still being read; or led elsewhere by now, or the next who asks is told why
        self._loading = bool(self._unloaded)
        if self._loading:
            self._node.timers.after(SOON_MS, self._load_next)

    def _load(self, number: int, shard: Shard[M]) -> None:
        """Read a piece of a coordinator's state; see to it that the rest follows."""
        try:
            done = shard.load(LOADED_AT_ONCE_BYTES)
        except (StorageError, OSError) as error:
            self._let_go(number)
            facts = {"partition": str(shard.partition.name), "problem": str(error)}
            self._node.outbox.append(Notice("error", "cannot read a coordinator's state", facts))
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        if not done:
            self._load_soon(number)

    def _create(self, now_ms: int) -> Pending[None]:
        node = self._node
        live, cluster = len(node.nodes), node.settings.cluster
        # The first brokers that come up would keep everything to themselves, for good.
        if cluster.roles == "both" and live <= len(cluster.voters) // 2:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too few brokers are up")
        copies = node.settings.replication.internal_replication_factor
        there = live
        if node.creation.remembers_factors:  # those that are down count, for they get copies later
            voters = len(cluster.voters) if cluster.roles == "both" else 0
            there = max(len(node.image.brokers), voters)
        else:
            copies = min(copies, live)
        config = dict(STATE_CONFIG)
        if min(copies, there) >= SAFE_COPIES:
            config["min.insync.replicas"] = str(SAFE_COPIES - 1)
        return node.ensure_topic(
            self.topic, self._partitions, config, now_ms, replication_factor=copies
        )

    def _created(self, _: None) -> None:
        waiting, self._creating = self._creating, []
        for ready in waiting:
            ready.complete(None)

    def _not_created(self, error: Exception) -> None:
        waiting, self._creating = self._creating, []
        refusal = error
        if not isinstance(error, ApiError):
            refusal = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        for ready in waiting:
            ready.fail(refusal)


@lru_cache(maxsize=10_000)
def java_hash(text: str) -> int:
    """Return what Java's `String.hashCode` returns, without its sign."""
    content = text.encode("utf-16-be")
    value = 0
    for unit in range(0, len(content), 2):
        value = (31 * value + (content[unit] << 8 | content[unit + 1])) & 0xFFFFFFFF
    return value
