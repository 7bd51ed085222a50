"""The `uniform` assignor: members get equal shares, and keep their partitions as far as possible.

1. A member keeps a partition if it still subscribes to the topic and the partition still exists.
2. If all members subscribe to the same topics, members with more than their share lose the rest.
   The members with the most partitions keep the shares that are larger by one. Only partitions
   that have to move do so.
3. Unassigned partitions go to the subscriber with the fewest partitions, beginning with the topics
   that have the fewest subscribers, since they leave the least choice.
4. While a member has at least two partitions more than another subscriber of the same topic, one
   partition of it moves. This ends, since each move reduces the sum of the squared numbers.

If all subscribe to the same topics, the numbers differ by at most one after the third step. If
subscriptions differ, it ends when no single move helps, as in Kafka; it does not search for chains
of moves.
"""

import heapq
from collections import Counter
from collections.abc import Mapping

from barnabas.groups.consumer.assignors.spec import Share, Slot, Slots
from barnabas.model.ids import TopicId


def assign(members: Mapping[str, Share], partitions: Mapping[TopicId, int]) -> dict[str, Slots]:
    """Return the target assignment of each member."""
    table = _Table(members, partitions)
    if len({share.topics for share in members.values()}) == 1:
        table.cut_to_size()
    for topic_id in table.scarce_first:
        table.hand_out(topic_id)
    while sum(table.even_out(topic_id) for topic_id in table.scarce_first):
        pass
    return table.result()


class _Table:
    """The assignment while it is computed."""

    def __init__(self, members: Mapping[str, Share], partitions: Mapping[TopicId, int]) -> None:
        self._partitions = partitions
        self._readers: dict[TopicId, list[str]] = {topic_id: [] for topic_id in partitions}
        self._held: dict[TopicId, dict[str, list[int]]] = {topic_id: {} for topic_id in partitions}
        self._burden = Counter(dict.fromkeys(sorted(members), 0))
        self._taken: set[Slot] = set()
        for member_id in self._burden:
            self._seat(member_id, members[member_id])
        self.scarce_first = sorted(
            (topic_id for topic_id, readers in self._readers.items() if readers),
            key=lambda topic_id: (len(self._readers[topic_id]), topic_id),
        )

    def cut_to_size(self) -> None:
        """Remove partitions that members have beyond their share."""
        total = sum(self._partitions[topic_id] for topic_id in self.scarce_first)
        part, larger = divmod(total, len(self._burden))
        for place, (member_id, burden) in enumerate(self._burden.most_common()):
            for _ in range(burden - part - (place < larger)):
                self._give_up(member_id)

    def hand_out(self, topic_id: TopicId) -> None:
        """Assign each unassigned partition of a topic to the subscriber with the fewest."""
        held = self._held[topic_id]
        least = [(self._burden[member_id], member_id) for member_id in self._readers[topic_id]]
        heapq.heapify(least)
        for number in range(self._partitions[topic_id]):
            if (topic_id, number) not in self._taken:
                burden, member_id = least[0]
                held[member_id].append(number)
                heapq.heapreplace(least, (burden + 1, member_id))
        for burden, member_id in least:
            self._burden[member_id] = burden

    def even_out(self, topic_id: TopicId) -> int:
        """Move partitions of a topic from members with the most to those with the least."""
        held, burden = self._held[topic_id], self._burden
        readers = self._readers[topic_id]
        moved = 0
        while givers := [member_id for member_id in readers if held[member_id]]:
            giver = max(givers, key=burden.__getitem__)
            taker = min(readers, key=burden.__getitem__)
            if burden[giver] - burden[taker] < 2:
                break
            held[taker].append(held[giver].pop())
            burden[giver] -= 1
            burden[taker] += 1
            moved += 1
        return moved

    def result(self) -> dict[str, Slots]:
        """Return the partitions of each member."""
        given: dict[str, list[Slot]] = {member_id: [] for member_id in self._burden}
        for topic_id, held in self._held.items():
            for member_id, numbers in held.items():
                given[member_id] += [(topic_id, number) for number in numbers]
        return {member_id: frozenset(slots) for member_id, slots in given.items()}

    def _seat(self, member_id: str, share: Share) -> None:
        for topic_id in share.topics & self._partitions.keys():
            self._readers[topic_id].append(member_id)
            self._held[topic_id][member_id] = []
        for topic_id, number in sorted(share.slots - self._taken):
            if topic_id in share.topics and number < self._partitions.get(topic_id, 0):
                self._taken.add((topic_id, number))
                self._held[topic_id][member_id].append(number)
                self._burden[member_id] += 1

    def _give_up(self, member_id: str) -> None:
        """Remove one partition, of the topic of which the member has the most."""
        most = max(self.scarce_first, key=lambda topic_id: len(self._held[topic_id][member_id]))
        self._taken.discard((most, self._held[most][member_id].pop()))
        self._burden[member_id] -= 1
