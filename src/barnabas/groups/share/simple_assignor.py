"""The `simple` assignor of share groups: every partition is read, and every member reads.

1. Each partition gets one owner. Owners get equal numbers of partitions, and keep theirs as far as
   possible. This is the `uniform` assignor of consumer groups. Where several members are equally
   good, one that reads nothing yet comes first, then one that helps another.
2. A member that owns nothing helps: it shares a partition with its owner. Helpers stay where they
   are, or go to the partition with the fewest readers. While a partition has at least two readers
   more than another one that a helper could read, that helper moves.

If all members subscribe to the same topics, the numbers of partitions of any two members differ by
at most one, and so do the numbers of readers of any two partitions. With more partitions than
members nothing is shared; with more members each member reads one partition. The result depends on
nothing but the arguments.

Kafka's assignor has the same aims. It does not move helpers in the same way, so that the members of
a partition may differ.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from barnabas.groups.consumer.assignors import uniform
from barnabas.groups.consumer.assignors.spec import Share, Slot, Slots
from barnabas.model.ids import TopicId

NAME = "simple"

NEWCOMER, HELPER, OWNER = "0", "1", "2"
"""The ranks of members: the `uniform` assignor prefers the least name among equals."""

Numbers = Mapping[TopicId, list[int]]
"""The partitions of topics that may be assigned, in order."""


def assign(
    members: Mapping[str, Share], partitions: Mapping[TopicId, Collection[int]]
) -> dict[str, Slots]:
    """Return the target assignment of each member; partitions may have any numbers."""
    numbers = {topic_id: sorted(some) for topic_id, some in partitions.items() if some}
    there = {(topic_id, number) for topic_id, some in numbers.items() for number in some}
    shares = {
        member_id: _restricted(share, there, numbers)
        for member_id, share in sorted(members.items())
    }
    owned = _owned(shares, numbers)
    helpers = {
        member_id: share
        for member_id, share in shares.items()
        if share.topics and not owned[member_id]
    }
    return owned | _Helpers(helpers, numbers, owned).spread()


def _restricted(share: Share, there: Collection[Slot], numbers: Numbers) -> Share:
    """Return a member with only the topics and partitions that may be assigned to it."""
    topics = share.topics.intersection(numbers)
    slots = frozenset(slot for slot in share.slots if slot in there and slot[0] in topics)
    return Share(topics, slots)


def _owned(shares: Mapping[str, Share], numbers: Numbers) -> dict[str, Slots]:
    """Return the partitions that each member owns.

    The other assignor takes partitions from 0 on, so that it gets their places instead.
    """
    places = {
        (topic_id, number): (topic_id, place)
        for topic_id, some in numbers.items()
        for place, number in enumerate(some)
    }
    readers = Counter(slot for share in shares.values() for slot in share.slots)
    ranked = {
        _rank(share, readers) + member_id: Share(
            share.topics, frozenset(places[slot] for slot in share.slots)
        )
        for member_id, share in shares.items()
    }
    counts = {topic_id: len(some) for topic_id, some in numbers.items()}
    return {
        name[1:]: frozenset((topic_id, numbers[topic_id][place]) for topic_id, place in slots)
        for name, slots in uniform.assign(ranked, counts).items()
    }


def _rank(share: Share, readers: Mapping[Slot, int]) -> str:
    if not share.slots:
        return NEWCOMER
    helps = len(share.slots) == 1 and all(readers[slot] > 1 for slot in share.slots)
    return HELPER if helps else OWNER


class _Helpers:
    """The members that own nothing, and the partitions that they read."""

    def __init__(
        self, members: Mapping[str, Share], numbers: Numbers, owned: Mapping[str, Slots]
    ) -> None:
        self._members = members
        self._numbers = numbers
        self._readers = Counter(slot for slots in owned.values() for slot in slots)
        self._place: dict[str, Slot] = {}

    def spread(self) -> dict[str, Slots]:
        """Return the partition of each helper."""
        for member_id, share in self._members.items():
            if share.slots:
                self._seat(member_id, min(share.slots))
        for member_id, share in self._members.items():
            if not share.slots:
                self._seat(member_id, self._least_read(member_id))
        while sum(map(self._move, self._members)):
            pass
        return {member_id: frozenset({slot}) for member_id, slot in self._place.items()}

    def _seat(self, member_id: str, slot: Slot) -> None:
        self._place[member_id] = slot
        self._readers[slot] += 1

    def _move(self, member_id: str) -> bool:
        """Move a helper to another partition if that makes the numbers of readers more even."""
        here, there = self._place[member_id], self._least_read(member_id)
        if self._readers[here] - self._readers[there] < 2:
            return False
        self._readers[here] -= 1
        self._seat(member_id, there)
        return True

    def _least_read(self, member_id: str) -> Slot:
        return min(self._readable(member_id), key=lambda slot: (self._readers[slot], slot))

    def _readable(self, member_id: str) -> Iterator[Slot]:
        for topic_id in self._members[member_id].topics:
            for number in self._numbers[topic_id]:
                yield topic_id, number
