"""Which partition coordinates which group or transaction, and the machines of those led here.

A name's hash chooses the partition of an internal topic, as in Kafka; that partition's leader is
the coordinator. The topics are made when a client first looks for a coordinator.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.groups.machine import GroupMachine
from barnabas.metadata.image import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.model.coordination import Machine
from barnabas.model.errors import ApiError, ErrorCode
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


class Coordinators:
    """The coordinators of a node."""

    def __init__(self, node: "Node") -> None:
        settings = node.settings
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
        )
        self.topics: dict[str, CoordinatorSet[GroupMachine] | CoordinatorSet[TransactionMachine]]
        self.topics = {GROUPS_TOPIC: self.groups, TRANSACTIONS_TOPIC: self.transactions}

    def start(self) -> None:
        """Take up everything that is coordinated here, soon after the start."""
        self.groups.load_soon()
        self.transactions.load_soon()

    def metadata_changed(self, deleted: list[str]) -> None:
        """Tell groups that topics came, grew or went."""
        for shard in self.groups.shards():
            machine = shard.machine
            shard.run_quietly(lambda machine=machine: machine.topics_changed(deleted))  # type: ignore[misc]


class CoordinatorSet(Generic[M]):
    """The coordinators that keep their state in one internal topic."""

    def __init__(
        self, node: "Node", topic: str, partitions: int, make: Callable[[Shard[M]], M]
    ) -> None:
        self.topic = topic
        self._node = node
        self._partitions = partitions
        self._make = make
        self._shards: dict[int, Shard[M]] = {}
        self._creating: list[Pending[bool]] = []

    def ensure(self, now_ms: int) -> Pending[bool]:
        """Make the topic where there is none; answer once it can be used.

        Raises `ApiError` where it cannot be made.
        """
        ready: Pending[bool] = Pending()
        if self._node.by_topic_name.get(self.topic):
            ready.complete(result=True)
            return ready
        if not self._creating:
            if self.topic in self._node.image.topics:
                raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} is not open yet")
            self._node.create_topic(
                self.topic, self._partitions, dict(STATE_CONFIG), now_ms
            ).when_done(self._created)
        self._creating.append(ready)
        return ready

    def partition_for(self, name: str) -> int:
        """Return the partition that a group or a transactional id belongs to, as Kafka does."""
        made = self._node.image.topics.get(self.topic)
        count = self._partitions if made is None else len(made.partitions)
        return (java_hash(name) & 0x7FFFFFFF) % count

    def shard_for(self, name: str) -> Shard[M]:
        """Return the coordinator of a group or a transactional id; raise where it is not here."""
        if not self._node.by_topic_name.get(self.topic):
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} is not there yet")
        return self._shard(self.partition_for(name))

    def shard_on(self, partition: int) -> Shard[M] | None:
        """Return the coordinator on a partition of the topic, if there is such a partition."""
        opened = self._node.by_topic_name.get(self.topic) or {}
        return self._shard(partition) if partition in opened else None

    def shards(self) -> Iterator[Shard[M]]:
        """Yield every coordinator that was taken up."""
        yield from list(self._shards.values())

    def all_shards(self) -> Iterator[Shard[M]]:
        """Yield every coordinator there is here."""
        for number in list(self._node.by_topic_name.get(self.topic) or {}):
            yield self._shard(number)

    def load_soon(self) -> None:
        """Take up one coordinator after the other, between requests."""
        waiting = list(self._node.by_topic_name.get(self.topic) or {})

        def step() -> None:
            if waiting:
                self._shard(waiting.pop())
                self._node.timers.after(1, step)

        if waiting:
            self._node.timers.after(1, step)

    def _shard(self, number: int) -> Shard[M]:
        partition = self._node.find(self.topic, number)
        shard = self._shards.get(number)
        if shard is None or shard.partition is not partition:
            if shard is not None:
                shard.close()
            shard = Shard(partition, self._node.timers, self._node.outbox, self._make)
            self._shards[number] = shard
        return shard

    def _created(self, _: bool) -> None:
        waiting, self._creating = self._creating, []
        for ready in waiting:
            ready.complete(result=True)


@lru_cache(maxsize=10_000)
def java_hash(text: str) -> int:
    """Return what Java's `String.hashCode` returns, without its sign."""
    content = text.encode("utf-16-be")
    value = 0
    for unit in range(0, len(content), 2):
        value = (31 * value + (content[unit] << 8 | content[unit + 1])) & 0xFFFFFFFF
    return value
