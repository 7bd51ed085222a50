"""The coordinators of one kind on this broker: which partition has a key, and its open machine.

The hash of a key (a group id, a transactional id) chooses the partition of the internal topic, as
in Kafka; the broker that leads the partition is the coordinator. A coordinator moves with the
leadership of its partition: the new leader reads the stored state and continues from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from barnabas.effects import Effect, Notice
from barnabas.model.coordination import Machine
from barnabas.model.errors import ApiError, ErrorCode, StorageError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.coordination.coordinator_kinds import CoordinatorKind
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.coordination.state_topic import StateTopic, TopicMaker
from barnabas.node.partitions.partition import Partition

M = TypeVar("M", bound=Machine)

NO_LEADER = -1
SOON_MS = 1
LOADED_AT_ONCE_BYTES = 1 << 17
"""How much state is read before the event loop gets to other work."""


class CoordinatorHost(TopicMaker, Protocol):
    """What coordinators need from the broker that they run on."""

    @property
    def node_id(self) -> NodeId:
        """This broker's id."""

    @property
    def timers(self) -> Timers:
        """Runs actions later."""

    @property
    def outbox(self) -> list[Effect]:
        """Takes effects, here notices for the operator."""

    @property
    def by_topic_name(self) -> Mapping[str, Mapping[int, Partition]]:
        """The open replicas of each topic."""

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that this broker leads, or raise `ApiError`."""


class CoordinatorSet(Generic[M]):
    """The coordinators that keep their state in one internal topic."""

    def __init__(self, host: CoordinatorHost, kind: CoordinatorKind[M]) -> None:
        self.kind = kind
        self.topic = kind.topic
        self._host = host
        self._state_topic = StateTopic(host, kind.topic, kind.partitions, kind.config)
        self._shards: dict[int, Shard[M]] = {}
        self._unloaded: dict[int, None] = {}
        self._loading = False

    def ensure(self, now_ms: int) -> Pending[None]:
        """Create the internal topic if it does not exist; answer once the metadata has it.

        Raises `ApiError` if it cannot be created, or the answer fails with it.
        """
        if self._host.image.feature_level < self.kind.level:
            problem = f"{self.topic} needs feature level {self.kind.level}; raise it first"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, problem)
        return self._state_topic.ensure(now_ms)

    def partition_for(self, key: str) -> int:
        """Return the partition that a group id or a transactional id belongs to, as Kafka does."""
        created = self._host.image.topics.get(self.topic)
        count = self.kind.partitions if created is None else len(created.partitions)
        return (java_hash(key) & 0x7FFFFFFF) % count

    def broker_for(self, key: str) -> NodeId:
        """Return the broker that coordinates a group id or a transactional id, by the metadata.

        Raises COORDINATOR_NOT_AVAILABLE while its partition has no leader.
        """
        created = self._host.image.topics.get(self.topic)
        leader = NO_LEADER
        if created is not None:
            leader = created.partitions[self.partition_for(key)].leader
        if leader == NO_LEADER:
            problem = f"{key} has no coordinator: its partition of {self.topic} has no leader"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
        return NodeId(leader)

    def shard_for(self, key: str) -> Shard[M]:
        """Return the coordinator of a group id or a transactional id.

        Raises NOT_COORDINATOR if another broker leads its partition,
        COORDINATOR_NOT_AVAILABLE if no broker does yet, and COORDINATOR_LOAD_IN_PROGRESS while
        this broker reads the state.
        """
        return self._shard(self.partition_for(key))

    def shard_on(self, partition: int) -> Shard[M] | None:
        """Return the coordinator on a partition of the topic if it is loaded on this broker."""
        try:
            return self._shard(partition)
        except ApiError:
            return None

    def shards(self) -> Iterator[Shard[M]]:
        """Yield every coordinator that is open or loading."""
        yield from list(self._shards.values())

    def all_shards(self) -> Iterator[Shard[M]]:
        """Yield the coordinator of every partition that this broker leads."""
        for number in self._led():
            yield self._shard(number)

    def load_soon(self) -> None:
        """Load the coordinators one after the other, between requests."""
        for number in self._led():
            self._load_soon(number)

    def leadership_changed(self, number: int) -> None:
        """Close the coordinator of a partition, or load it, as its leadership is now."""
        shard = self._shards.get(number)
        if shard is not None and not self._is_current(shard):
            self._close_shard(number)
        if number in self._led():
            self._load_soon(number)

    def close_stale(self) -> None:
        """Close coordinators whose partition this broker does not lead in the same epoch."""
        for number, shard in list(self._shards.items()):
            if not self._is_current(shard):
                self._close_shard(number)

    def topics_changed(self, deleted: Sequence[str]) -> None:
        """Have every coordinator act on changed topics; the names are those of deleted ones."""
        react = self.kind.topics_changed
        if react is None:
            return
        for shard in self.shards():
            machine = shard.machine
            shard.run_quietly(lambda machine=machine: react(machine, deleted))  # type: ignore[misc]

    def _led(self) -> list[int]:
        opened = self._host.by_topic_name.get(self.topic) or {}
        return [number for number, partition in opened.items() if partition.leads]

    def _is_current(self, shard: Shard[M]) -> bool:
        """Tell whether this broker still leads a shard's partition in the shard's epoch."""
        partition = shard.partition
        return (
            partition.leads
            and shard.leader_epoch == partition.leader_epoch
            and not partition.retired
        )

    def _shard(self, number: int) -> Shard[M]:
        shard = self._shards.get(number)
        if shard is not None and not self._is_current(shard):
            self._close_shard(number)
            shard = None
        if shard is None:
            shard = self._open_shard(number)
            self._load(number, shard)
        shard.check()
        return shard

    def _open_shard(self, number: int) -> Shard[M]:
        host = self._host
        try:
            partition = host.find(self.topic, number)
        except ApiError as error:
            raise ApiError(self._missing_code(number, error.code), error.message) from error
        shard = Shard(partition, host.timers, host.outbox, self.kind.make, load=False)
        self._shards[number] = shard
        return shard

    def _missing_code(self, number: int, code: ErrorCode) -> ErrorCode:
        """Return the coordinator's error code for a partition that this broker cannot use."""
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return ErrorCode.NOT_COORDINATOR
        created = self._host.image.topics.get(self.topic)
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return code
        if created is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if created.partitions[number].leader == self._host.node_id:
            # Its log is not open yet. Admin clients of librdkafka retry this code, no other.
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def _close_shard(self, number: int) -> None:
        self._shards.pop(number).close()
        self.kind.closed(number)

    def _load_soon(self, number: int) -> None:
        self._unloaded[number] = None
        if not self._loading:
            self._loading = True
            self._host.timers.after(SOON_MS, self._load_next)

    def _load_next(self) -> None:
        """Read a piece of one coordinator's state; continue with the next one soon."""
        number = next(iter(self._unloaded))
        del self._unloaded[number]
        try:
            shard = self._shards.get(number)
            if shard is None or not self._is_current(shard):
                self._shard(number)
            elif not shard.is_open:
                self._load(number, shard)
        except ApiError:
            pass  # it is still loading, or another broker leads; a request gets the same error
        self._loading = bool(self._unloaded)
        if self._loading:
            self._host.timers.after(SOON_MS, self._load_next)

    def _load(self, number: int, shard: Shard[M]) -> None:
        """Read a piece of a coordinator's state, and schedule the rest."""
        try:
            done = shard.load(LOADED_AT_ONCE_BYTES)
        except (StorageError, OSError) as error:
            self._close_shard(number)
            facts = {"partition": str(shard.partition.name), "problem": str(error)}
            self._host.outbox.append(Notice("error", "cannot read a coordinator's state", facts))
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        if not done:
            self._load_soon(number)


@lru_cache(maxsize=10_000)
def java_hash(text: str) -> int:
    """Return what Java's `String.hashCode` returns, as an unsigned number."""
    content = text.encode("utf-16-be")
    value = 0
    for unit in range(0, len(content), 2):
        value = (31 * value + (content[unit] << 8 | content[unit + 1])) & 0xFFFFFFFF
    return value
