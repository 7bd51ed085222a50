"""What is committed, and what waits for a transaction to end.

A partition's newest commit counts, by its place in the log. That is not the order in which
transactions end: one that wrote first may commit last, and must then not undo what was committed
after it was written. So every commit carries its order.
"""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.model.ids import NO_TOPIC_ID


class Place(NamedTuple):
    """Whose position, and where."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """How far a group has read in a partition. The names are those of the stored record."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    """When it expires in any case; -1 if the client named no time."""
    topic_id: bytes = NO_TOPIC_ID
    order: int = 0
    """Grows with the log."""


class PlaceAgain(NamedTuple):
    """What stays the same where a partition's position is committed again and again."""

    partition: int
    leader_epoch: int
    metadata: str
    expire_timestamp: int
    topic_id: bytes


TopicAgain = tuple[str, list[PlaceAgain]]
"""A topic, and the places in it as their offsets come."""

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
        """Return what a group has committed; not for the caller to change."""
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
        """Yield every position there is, or may come to be."""
        for group, topics in self._by_group.items():
            for topic, partitions in topics.items():
                yield from (Place(group, topic, partition) for partition in partitions)
        for places in self._waiting.values():
            yield from places

    def put(self, group: str, topic: str, partition: int, committed: Committed) -> None:
        """Take in a commit."""
        self.partitions(group, topic)[partition] = committed

    def partitions(self, group: str, topic: str) -> dict[int, Committed]:
        """Return where the commits of a group to a topic are kept, for replay to put more in."""
        topics = self._by_group.get(group)
        if topics is None:
            topics = self._by_group[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        return partitions

    def wait(self, producer_id: int, place: Place, committed: Committed) -> None:
        """Keep a commit until its transaction ends."""
        self._waiting.setdefault(producer_id, {})[place] = committed
        self._open.setdefault(place.group, {})[producer_id] = None

    def remove(self, place: Place) -> None:
        """Forget a position, and what any open transaction says of it."""
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
        """Make what a transaction wrote count, where nothing newer does; or forget it."""
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
