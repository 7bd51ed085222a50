"""Which partitions have delivery state, as a share group stores it (record 15).

    neither ---> initializing ---> initialized ---> deleting ---> neither
                      `-------------------------------^

Partitions are initialized once a member subscribes to their topic. A topic's state is deleted with
the group, or when an operator asks for it. While it is being deleted, its partitions are not
initialized again: the share coordinator could get the two requests in the wrong order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.metadata.image import Image
from barnabas.model.ids import TopicId


class TopicPart(NamedTuple):
    """Some partitions of a topic."""

    name: str
    partitions: frozenset[int]


Parts = Mapping[TopicId, TopicPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStates:
    """The partitions of one group, by how far they are."""

    initializing: Parts = field(default_factory=dict)
    initialized: Parts = field(default_factory=dict)
    deleting: Mapping[TopicId, str] = field(default_factory=dict)
    """The names of topics of which all state is being deleted."""

    @property
    def is_settled(self) -> bool:
        """Whether no request to a share coordinator is to be made."""
        return not self.initializing and not self.deleting

    def missing(self, names: Iterable[str], image: Image) -> dict[TopicId, TopicPart]:
        """Return the partitions of topics that must still be initialized."""
        found = {}
        for name in sorted(names):
            topic = image.topics.get(name)
            if topic is None or topic.topic_id in self.deleting:
                continue
            known = self.partitions_of(topic.topic_id)
            numbers = frozenset(range(len(topic.partitions))) - known
            if numbers:
                found[topic.topic_id] = TopicPart(name, numbers)
        return found

    def partitions_of(self, topic_id: TopicId) -> frozenset[int]:
        """Return the partitions of a topic that are initialized or being initialized."""
        parts = (self.initialized.get(topic_id), self.initializing.get(topic_id))
        return frozenset[int]().union(*(part.partitions for part in parts if part is not None))

    def begun(self, parts: Parts) -> "PartitionStates":
        """Return the states once partitions are being initialized."""
        return replace(self, initializing=_joined(self.initializing, parts))

    def initialized_with(self, parts: Parts) -> "PartitionStates":
        """Return the states once partitions are initialized."""
        return replace(
            self,
            initializing=_removed(self.initializing, parts),
            initialized=_joined(self.initialized, parts),
        )

    def answered(self, topic_id: TopicId, done: Collection[int]) -> "PartitionStates":
        """Return the states once a share coordinator has initialized partitions of a topic.

        Partitions that are not being initialized any more are ignored: the answer is late.
        """
        part = self.initializing.get(topic_id)
        numbers = frozenset[int]() if part is None else part.partitions.intersection(done)
        if part is None or not numbers:
            return self
        return self.initialized_with({topic_id: TopicPart(part.name, numbers)})

    def deletion_begun(self, topics: Mapping[TopicId, str]) -> "PartitionStates":
        """Return the states once all state of some topics is being deleted."""
        left = self.without(topics)
        return replace(left, deleting={**self.deleting, **topics})

    def deletion_done(self, topics: Collection[TopicId]) -> "PartitionStates":
        """Return the states once all state of some topics was deleted."""
        left = {key: name for key, name in self.deleting.items() if key not in topics}
        return replace(self, deleting=left)

    def abandoned(self, topics: Collection[TopicId]) -> "PartitionStates":
        """Return the states without what is under way for some topics."""
        left = {key: part for key, part in self.initializing.items() if key not in topics}
        return replace(self.deletion_done(topics), initializing=left)

    def without(self, topics: Collection[TopicId]) -> "PartitionStates":
        """Return the states without some topics."""
        return PartitionStates(
            initializing={
                key: part for key, part in self.initializing.items() if key not in topics
            },
            initialized={key: part for key, part in self.initialized.items() if key not in topics},
            deleting={key: name for key, name in self.deleting.items() if key not in topics},
        )

    def names(self) -> dict[TopicId, str]:
        """Return the names of all topics."""
        parts = {**self.initializing, **self.initialized}
        return {**self.deleting, **{topic_id: part.name for topic_id, part in parts.items()}}


def _joined(parts: Parts, more: Parts) -> Parts:
    joined = dict(parts)
    for topic_id, part in more.items():
        known = parts.get(topic_id)
        numbers = part.partitions if known is None else part.partitions | known.partitions
        joined[topic_id] = TopicPart(part.name, numbers)
    return joined


def _removed(parts: Parts, less: Parts) -> Parts:
    left = {}
    for topic_id, part in parts.items():
        gone = less.get(topic_id)
        numbers = part.partitions if gone is None else part.partitions - gone.partitions
        if numbers:
            left[topic_id] = TopicPart(part.name, numbers)
    return left
