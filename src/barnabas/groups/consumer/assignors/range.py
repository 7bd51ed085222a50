"""The `range` assignor: each topic is divided into one range for each of its members.

Members are sorted: static ones first by their instance ids, then the others by their member ids.
Within a topic the first members get the larger ranges. So members with the same subscriptions get
the same partition numbers of all topics with the same number of partitions, as joins need, and a
static member that returns keeps its ranges. As in Kafka it is not sticky otherwise: a member that
joins in the middle moves every range behind it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from barnabas.groups.consumer.assignors.spec import Share, Slot, Slots
from barnabas.model.ids import TopicId


def assign(members: Mapping[str, Share], partitions: Mapping[TopicId, int]) -> dict[str, Slots]:
    """Return the target assignment of each member."""
    ordered = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    given: dict[str, list[Slot]] = {member_id: [] for member_id in ordered}
    for topic_id, count in partitions.items():
        readers = [name for name in ordered if topic_id in members[name].topics]
        for member_id, numbers in zip(readers, _ranges(count, readers), strict=True):
            given[member_id] += [(topic_id, number) for number in numbers]
    return {member_id: frozenset(slots) for member_id, slots in given.items()}


def _place(member_id: str, share: Share) -> tuple[bool, str]:
    return (share.instance_id is None, share.instance_id or member_id)


def _ranges(count: int, readers: Sequence[str]) -> list[range]:
    if not readers:
        return []
    size, larger = divmod(count, len(readers))
    starts = [number * size + min(number, larger) for number in range(len(readers) + 1)]
    return [range(low, high) for low, high in pairwise(starts)]
