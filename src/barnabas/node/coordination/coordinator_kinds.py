"""The kinds of coordinators: which state machine runs on the partitions of which internal topic.

A kind is one row: it says where the state is stored, how the machine of a partition is made, and
what happens when metadata changes or a coordinator closes. `Coordinators.register` does the rest:
it creates the topic, loads and closes machines as leadership moves, and answers FindCoordinator.
Only the name of the topic is declared elsewhere as well: `metadata.image.INTERNAL_TOPICS` lists the
topics that clients see as internal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from barnabas.groups.group_counts import GroupCounts
from barnabas.groups.group_machine import GroupMachine, GroupSharing
from barnabas.metadata.features import FIRST_LEVEL, SHARE_LEVEL
from barnabas.metadata.image import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, Image
from barnabas.model.coordination import Machine, Outcome
from barnabas.model.settings import GroupSettings, ShareSettings, TransactionSettings
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.partitions.partition import Partition
from barnabas.share.share_state_machine import ShareStateMachine
from barnabas.transactions.state import Transaction
from barnabas.transactions.transaction_machine import TransactionMachine

M = TypeVar("M", bound=Machine)

STATE_CONFIG = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": str(100 * 1024 * 1024),
}
"""The config of a topic of which only the latest record of each key counts."""
SHARE_STATE_CONFIG = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": "-1",
    "segment.bytes": str(100 * 1024 * 1024),
}
"""The config of a topic whose coordinator itself deletes what it no longer needs."""
GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class CoordinatorKind(Generic[M]):
    """One kind of coordinator."""

    topic: str
    """The internal topic that stores the state."""

    key_type: int
    """The key type by which clients ask for this kind in FindCoordinator."""

    partitions: int
    """How many partitions the topic is created with."""

    config: Mapping[str, str] = field(default_factory=lambda: STATE_CONFIG)
    """The config that the topic is created with."""

    level: int = FIRST_LEVEL
    """The feature level from which on all brokers know the topic."""

    make: Callable[[Shard[M]], M]
    """Makes the empty machine of one partition."""

    closed: Callable[[int], None] = lambda _: None
    """Called after the machine of a partition was closed, with the partition's number."""

    topics_changed: Callable[[M, Sequence[str]], Outcome[None]] | None = None
    """An operation that every machine runs when topics change, with the names of deleted topics."""


def groups_kind(
    settings: GroupSettings,
    image: Callable[[], Image],
    rng: Random,
    counts: GroupCounts | None = None,
    sharing: Callable[[], GroupSharing | None] = lambda: None,
) -> CoordinatorKind[GroupMachine]:
    """Return the coordinators of groups of all types.

    Share groups are served if `sharing` returns what they need when a machine is made.
    """
    return CoordinatorKind(
        topic=GROUPS_TOPIC,
        key_type=GROUP_KEY,
        partitions=settings.offsets_partitions,
        make=lambda shard: GroupMachine(settings, shard, image, rng, counts, sharing()),
        topics_changed=GroupMachine.topics_changed,
    )


def transactions_kind(
    settings: TransactionSettings,
    end: Callable[[Shard[TransactionMachine], Transaction], None],
    closed: Callable[[int], None],
) -> CoordinatorKind[TransactionMachine]:
    """Return the coordinators of transactions; `end` writes the markers of a decided one."""
    return CoordinatorKind(
        topic=TRANSACTIONS_TOPIC,
        key_type=TRANSACTION_KEY,
        partitions=settings.log_partitions,
        make=lambda shard: TransactionMachine(
            settings, shard, lambda transaction: end(shard, transaction)
        ),
        closed=closed,
    )


class PartitionLog:
    """The log of a coordinator's partition, for a machine that deletes from it."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    @property
    def end_offset(self) -> int:
        """Where the next record will be."""
        return self._partition.log.end_offset

    def delete_before(self, offset: int) -> None:
        """Delete records that are committed; a failure is left to the next attempt."""
        if self._partition.log.start_offset < offset <= self._partition.high_watermark:
            self._partition.delete_before(offset).when_done(_ignore, _ignore)


def share_kind(
    settings: ShareSettings, image: Callable[[], Image]
) -> CoordinatorKind[ShareStateMachine]:
    """Return the coordinators of share partitions."""
    return CoordinatorKind(
        topic=SHARE_STATE_TOPIC,
        key_type=SHARE_KEY,
        partitions=settings.state_partitions,
        config=SHARE_STATE_CONFIG,
        level=SHARE_LEVEL,
        make=lambda shard: ShareStateMachine(settings, shard, image, PartitionLog(shard.partition)),
    )


def _ignore(_: object) -> None:
    """Do nothing."""
