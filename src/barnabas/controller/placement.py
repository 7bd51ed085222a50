"""Places the replicas of new partitions: first evenly over racks, then evenly over brokers.

The brokers form a circle in which racks alternate. Leaders go around the circle, one for each
broker, from a start that the caller draws. The followers of a partition go to the racks with the
fewest of its replicas, there to the brokers with the fewest replicas at all, and among those to the
next in the circle. The distance from a leader to its follower grows with each round, so that many
brokers take over from a broker that fails, not one alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from barnabas.metadata.image import Image, PartitionImage, changed
from barnabas.metadata.metadata_records import PartitionChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicId


def live_brokers(image: Image) -> list[NodeId]:
    """Return the brokers that may take new partitions."""
    return sorted(NodeId(broker.node_id) for broker in image.brokers.values() if broker.is_active)


def racks_of(image: Image) -> dict[int, str]:
    """Return the racks of the brokers that have one."""
    return {b.node_id: b.rack for b in image.brokers.values() if b.rack is not None}


def circle_of(nodes: Iterable[int], racks: Mapping[int, str]) -> list[int]:
    """Return brokers in an order in which racks alternate."""
    rows: dict[str, list[int]] = {}
    for node_id in sorted(nodes):
        rows.setdefault(racks.get(node_id, ""), []).append(node_id)
    turns = zip_longest(*(rows[rack] for rack in sorted(rows)))
    return [node_id for turn in turns for node_id in turn if node_id is not None]


def spread(
    partitions: int,
    replica_count: int,
    circle: Sequence[int],
    racks: Mapping[int, str],
    start: int = 0,
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
        for _ in range(replica_count - 1):
            chosen = _next_follower(replicas, others, racks, held)
            replicas.append(chosen)
            held[chosen] += 1
        placed.append(replicas)
    _even_out(placed, racks, held)
    return placed


def with_more(
    replicas: Sequence[int],
    replica_count: int,
    circle: Sequence[int],
    racks: Mapping[int, str],
    held: Counter[int],
) -> list[int]:
    """Return a partition's replicas plus the missing ones, as far as there are brokers for them.

    `held` counts replicas by broker, and the new ones are added to it.
    """
    grown = list(replicas)
    while len(grown) < replica_count and any(node_id not in grown for node_id in circle):
        chosen = _next_follower(grown, circle, racks, held)
        grown.append(chosen)
        held[chosen] += 1
    return grown


def leave_out_inactive(
    image: Image, topic_id: str, replicas: Sequence[Sequence[int]], first: int = 0
) -> list[PartitionChanged]:
    """Return the records that remove inactive brokers from the ISRs of new partitions.

    That only concerns replicas placed by the client; others are placed on live brokers.
    """
    records = []
    for number, placed in enumerate(replicas, first):
        live = [n for n in placed if image.is_active(n)]
        if not live:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {number} needs a live broker; {list(placed)} are not live",
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

    Placing one partition after the other can leave a difference of two.
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
