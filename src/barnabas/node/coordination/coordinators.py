"""The registry of coordinators: for each internal topic, the machines that this broker runs.

Groups, transactions and share partitions are registered here. Another kind is one more
`CoordinatorKind` (`coordinator_kinds.py`): everything that concerns all kinds goes through `topics`
or `by_key_type`, so nothing else has to name it.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from barnabas.groups.group_machine import GroupMachine
from barnabas.metadata.image import INTERNAL_TOPICS
from barnabas.metadata.metadata_records import MetadataRecord, TopicCreated, TopicDeleted
from barnabas.model.coordination import Machine
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.node.coordination.coordinator_kinds import CoordinatorKind
from barnabas.node.coordination.coordinator_set import CoordinatorHost, CoordinatorSet
from barnabas.share.share_state_machine import ShareStateMachine
from barnabas.transactions.transaction_machine import TransactionMachine

M = TypeVar("M", bound=Machine)

AnyCoordinators = CoordinatorSet[Any]
"""Coordinators of a kind that the caller need not know."""


class Coordinators:
    """Every kind of coordinator of a broker."""

    def __init__(
        self,
        host: CoordinatorHost,
        groups: CoordinatorKind[GroupMachine],
        transactions: CoordinatorKind[TransactionMachine],
        shares: CoordinatorKind[ShareStateMachine],
    ) -> None:
        self._host = host
        self._topic_names: dict[TopicId, str] = {}
        """The topics that the coordinators know."""
        self.topics: dict[str, AnyCoordinators] = {}
        """The coordinators by the internal topic that stores their state."""
        self.by_key_type: dict[int, AnyCoordinators] = {}
        """The coordinators by the key type of FindCoordinator."""
        self.groups = self.register(groups)
        self.transactions = self.register(transactions)
        self.shares = self.register(shares)

    def register(self, kind: CoordinatorKind[M]) -> CoordinatorSet[M]:
        """Add a kind of coordinator, before the broker starts; return its coordinators."""
        assert kind.topic in INTERNAL_TOPICS
        assert kind.topic not in self.topics
        assert kind.key_type not in self.by_key_type
        added = CoordinatorSet(self._host, kind)
        self.topics[kind.topic] = self.by_key_type[kind.key_type] = added
        return added

    def start(self) -> None:
        """Load the coordinators of all partitions that this broker leads, soon."""
        for coordinators in self.topics.values():
            coordinators.load_soon()

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Close or load a partition's coordinator: its leader or its leader epoch changed."""
        coordinators = self.topics.get(partition.topic)
        if coordinators is not None:
            coordinators.leadership_changed(partition.partition)

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Close coordinators that moved to other brokers; have the others act on changed topics.

        None says that everything may be different.
        """
        for coordinators in self.topics.values():
            coordinators.close_stale()
        deleted = self._find_deleted() if changes is None else self._deleted_by(changes)
        for coordinators in self.topics.values():
            coordinators.topics_changed(deleted)

    def _deleted_by(self, changes: Sequence[MetadataRecord]) -> list[str]:
        """Keep track of created and deleted topics; return the names of the deleted ones."""
        deleted = dict[str, None]()
        for change in changes:
            if isinstance(change, TopicCreated):
                self._topic_names[TopicId(bytes.fromhex(change.topic_id))] = change.name
            elif isinstance(change, TopicDeleted):
                name = self._topic_names.pop(TopicId(bytes.fromhex(change.topic_id)), None)
                if name is not None:
                    deleted[name] = None
        return list(deleted)

    def _find_deleted(self) -> list[str]:
        now, before = self._host.image.names, self._topic_names
        self._topic_names = dict(now)
        return list(dict.fromkeys(name for topic_id, name in before.items() if topic_id not in now))
