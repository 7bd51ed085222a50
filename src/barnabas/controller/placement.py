"""Where the replicas of new partitions go: evenly over brokers, and over racks before all.

Brokers stand in a circle in which racks alternate. Leaders are dealt around it, one each, from a
place that the caller draws. The followers of a partition go to racks that have the fewest of its
replicas, there to brokers that have the fewest of all, and among those to the next in the circle.
The step from a leader to the next grows with each time around, so that many brokers, and not one
alone, take over from a broker that is lost.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from barnabas.metadata.image import Image, PartitionImage, changed
from barnabas.metadata.records import PartitionChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicId


def live_brokers(image: Image) -> list[NodeId]:
    """Return the brokers that may take new partitions."""
    return sorted(NodeId(broker.node_id) for broker in image.brokers.values() if broker.is_active)


def racks_of(image: Image) -> dict[int, str]:
    """Return where brokers stand, of those that say."""
    return {b.node_id: b.rack for b in image.brokers.values() if b.rack is not None}


def circle_of(nodes: Iterable[int], racks: Mapping[int, str]) -> list[int]:
    """Return brokers in an order in which racks alternate."""
    rows: dict[str, list[int]] = {}
    for node_id in sorted(nodes):
        rows.setdefault(racks.get(node_id, ""), []).append(node_id)
    turns = zip_longest(*(rows[rack] for rack in sorted(rows)))
    return [node_id for turn in turns for node_id in turn if node_id is not None]


def spread(
    partitions: int, copies: int, circle: Sequence[int], racks: Mapping[int, str], start: int = 0
) -> list[list[int]]:
    """Return the replicas of each partition, the leader first."""
    size = len(circle)
    held = Counter(dict.fromkeys(circle, 0))
    held.update(circle[(start + number) % size] for number in range(partitions))
    placed = []
    for number in range(partitions):
        place = (start + number) % size
        step = 1 + (number // size) % max(1, size - 1)
        replicas = [circle[place]]
        others = [circle[(place + step + n) % size] for n in range(size)]
        for _ in range(copies - 1):
            chosen = _next_follower(replicas, others, racks, held)
            replicas.append(chosen)
            held[chosen] += 1
        placed.append(replicas)
    _even_out(placed, racks, held)
    return placed


def with_more(
    replicas: Sequence[int],
    copies: int,
    circle: Sequence[int],
    racks: Mapping[int, str],
    held: Counter[int],
) -> list[int]:
    """Return a partition's replicas and those it lacks, as far as there are brokers for them.

    `held` counts replicas by broker, and the new ones are added to it.
    """
    grown = list(replicas)
    while len(grown) < copies and any(node_id not in grown for node_id in circle):
        chosen = _next_follower(grown, circle, racks, held)
        grown.append(chosen)
        held[chosen] += 1
    return grown


def leave_out_inactive(
    image: Image, topic_id: str, replicas: Sequence[Sequence[int]], first: int = 0
) -> list[PartitionChanged]:
    """Return what follows the record that makes partitions: who is not live is not in sync.

    That only concerns replicas placed by hand; others are placed on brokers that are live.
    """
    records = []
    for number, placed in enumerate(replicas, first):
        live = [n for n in placed if image.is_active(n)]
        if not live:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {number} needs a broker that is live; {list(placed)} are not",
            )
        if len(live) < len(placed):
            fresh = PartitionImage.fresh(list(placed))
            partition = replace(fresh, leader=live[0], isr=live)
            records.append(changed(TopicId(bytes.fromhex(topic_id)), number, partition))
    return records


def _next_follower(
    replicas: Sequence[int], others: Sequence[int], racks: Mapping[int, str], held: Counter[int]
) -> int:
    near = Counter(racks.get(node_id) for node_id in replicas)
    free = (node_id for node_id in others if node_id not in replicas)
    return min(free, key=lambda node_id: (near[racks.get(node_id)], held[node_id]))


def _even_out(placed: Sequence[list[int]], racks: Mapping[int, str], held: Counter[int]) -> None:
    """Move followers from brokers with most replicas to those with least, if racks allow it.

    Dealing one partition after the other leaves a difference of two now and then.
    """
    for replicas in placed:
        for place, node_id in enumerate(replicas[1:], 1):
            if held[node_id] <= min(held.values()) + 1:
                continue
            near = Counter(racks.get(replica) for replica in replicas)
            home = racks.get(node_id)
            free = [
                other
                for other in held
                if other not in replicas
                and (racks.get(other) == home or near[racks.get(other)] < near[home])
            ]
            fewest = min(free, key=held.__getitem__, default=node_id)
            if held[node_id] > held[fewest] + 1:
                replicas[place] = fewest
                held[node_id] -= 1
                held[fewest] += 1
