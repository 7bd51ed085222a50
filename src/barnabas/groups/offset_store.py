"""Stores committed positions, and those that wait for the end of their transaction.

The newest commit of a partition counts, by its place in the log. That is not the order in which
transactions end: a transaction that wrote first may commit last, and must then not override a later
commit. So every commit has its order.
"""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.model.ids import NO_TOPIC_ID


class Place(NamedTuple):
    """The group, topic and partition of a position."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """A group's committed offset in a partition. The names are those of the stored record."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    """When it expires in any case; -1 if the client did not set a time."""
    topic_id: bytes = NO_TOPIC_ID
    order: int = 0
    """The order of the commit: a later one in the log has a larger number."""


class PlaceAgain(NamedTuple):
    """The constant part of a partition's position that is committed repeatedly."""

    partition: int
    leader_epoch: int
    metadata: str
    expire_timestamp: int
    topic_id: bytes


TopicAgain = tuple[str, list[PlaceAgain]]
"""A topic, and the places of its partitions, in the order of their offsets."""

Topics = dict[str, dict[int, Committed]]
"""Commits of one group, by topic and partition."""


class OffsetStore:
    """Every commit of one coordinator. Only replay changes it."""

    def __init__(self) -> None:
        self._order = 0
        self._by_group: dict[str, Topics] = {}
        self._waiting: dict[int, dict[Place, Committed]] = {}
        self._open: dict[str, dict[int, None]] = {}

    def next_order(self) -> int:
        """Return the order of a commit that is about to be replayed."""
        self._order += 1
        return self._order

    def of_group(self, group: str) -> Topics:
        """Return the positions of a group; the caller must not change them."""
        return self._by_group.get(group) or {}

    def has_waiting(self, group: str) -> bool:
        """Tell whether a transaction will decide on any position of a group."""
        return next(self.waiting(group), None) is not None

    def is_waiting(self, place: Place) -> bool:
        """Tell whether a transaction will decide on a position."""
        producers = self._open.get(place.group)
        return producers is not None and any(place in self._waiting[p] for p in producers)

    def waiting(self, group: str) -> Iterator[Place]:
        """Yield the positions of a group on which transactions will decide."""
        for producer_id in self._open.get(group, ()):
            yield from (place for place in self._waiting[producer_id] if place.group == group)

    def places(self) -> Iterator[Place]:
        """Yield every position, also those of open transactions."""
        for group, topics in self._by_group.items():
            for topic, partitions in topics.items():
                yield from (Place(group, topic, partition) for partition in partitions)
        for places in self._waiting.values():
            yield from places

    def put(self, group: str, topic: str, partition: int, committed: Committed) -> None:
        """Replay a commit."""
        self.partitions(group, topic)[partition] = committed

    def partitions(self, group: str, topic: str) -> dict[int, Committed]:
        """Return the dictionary of a group's commits to a topic, to which replay adds more."""
        topics = self._by_group.get(group)
        if topics is None:
            topics = self._by_group[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        return partitions

    def wait(self, producer_id: int, place: Place, committed: Committed) -> None:
        """Store a commit until its transaction ends."""
        self._waiting.setdefault(producer_id, {})[place] = committed
        self._open.setdefault(place.group, {})[producer_id] = None

    def remove(self, place: Place) -> None:
        """Delete a position, also from all open transactions."""
        topics = self._by_group.get(place.group, {})
        partitions = topics.get(place.topic, {})
        partitions.pop(place.partition, None)
        if not partitions:
            topics.pop(place.topic, None)
        if not topics:
            self._by_group.pop(place.group, None)
        for producer_id in self._open.get(place.group, ()):
            self._waiting[producer_id].pop(place, None)

    def end(self, producer_id: int, *, committed: bool) -> None:
        """Apply a transaction's commits, except where a newer one exists; or discard them."""
        places = self._waiting.pop(producer_id, {})
        for group in [group for group, producers in self._open.items() if producer_id in producers]:
            del self._open[group][producer_id]
            if not self._open[group]:
                del self._open[group]
        if not committed:
            return
        for place, waited in places.items():
            newest = self._by_group.get(place.group, {}).get(place.topic, {}).get(place.partition)
            if newest is None or newest.order < waited.order:
                self.put(*place, waited)
