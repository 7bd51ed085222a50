"""Compute the placement of replicas: balanced, spread over racks, with as few moves as possible.

    arrange(partitions, brokers)                   -> the changes for a balanced cluster
    arrange(partitions, brokers, replication_factor=3) -> the same, with three replicas of each
    drain(partitions, brokers, leaving=4)          -> the changes that empty broker 4
    fill_up(partitions, brokers, {("orders", 0): 3}) -> the same replicas, plus the missing ones

Three rules, the most important first. Replicas of a partition are on different brokers. They cover
as many racks as possible, if every broker has a rack. The numbers of replicas per broker differ by
one at most. A replica moves only if one of the rules requires it. Of the replicas that could move,
one whose topic has many replicas on the broker goes first, then the smallest.

The first replica of a partition is its preferred leader; `preferred_leaders` chooses it at the end.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.preferred_leaders import Leadership
from barnabas.admin.scopes import Place

Replicas = tuple[int, ...]
Partitions = Mapping[Place, Replicas]
"""The brokers of each partition's replicas, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A broker that can get replicas."""

    id: int
    rack: str | None = None


def arrange(
    partitions: Partitions,
    brokers: Iterable[Seat],
    *,
    replication_factor: int | None = None,
    sizes: Mapping[Place, int] | None = None,
) -> dict[Place, Replicas]:
    """Return the partitions to change so that these brokers, and no others, share them evenly."""
    board = _Board(partitions, brokers, sizes or {})
    for place in sorted(partitions):
        board.settle(place, replication_factor or len(partitions[place]))
    board.spread_over_racks()
    board.even_out()
    board.even_out_leaders(partitions)
    return board.changes(partitions)


def drain(
    partitions: Partitions,
    brokers: Iterable[Seat],
    leaving: int,
    *,
    sizes: Mapping[Place, int] | None = None,
) -> dict[Place, Replicas]:
    """Return the partitions to change so that a broker is empty; no other replica moves."""
    staying = [each for each in brokers if each.id != leaving]
    # A replica on a broker that is down may return with it, so it does not move.
    away = {node for replicas in partitions.values() for node in replicas} - {leaving}
    board = _Board(partitions, staying, sizes or {}, tolerated=away)
    touched = {place: replicas for place, replicas in partitions.items() if leaving in replicas}
    for place in sorted(touched):
        board.settle(place, len(touched[place]))
    board.even_out_leaders(touched)
    return board.changes(partitions)


def fill_up(
    partitions: Partitions, brokers: Iterable[Seat], counts: Mapping[Place, int]
) -> dict[Place, Replicas]:
    """Return the partitions to change so that some have more replicas; none is removed."""
    board = _Board(partitions, brokers, {})
    for place in sorted(counts):
        board.fill(place, counts[place])
    board.even_out_leaders(counts)
    return board.changes(partitions)


def moved(before: Replicas, after: Replicas) -> Replicas:
    """Return the brokers that get a new replica."""
    return tuple(node for node in after if node not in before)


class _Board:
    """All partitions and brokers, while replicas are moved."""

    def __init__(
        self,
        partitions: Partitions,
        brokers: Iterable[Seat],
        sizes: Mapping[Place, int],
        tolerated: Iterable[int] = (),
    ) -> None:
        seats = sorted(brokers, key=lambda each: each.id)
        racked = all(each.rack is not None for each in seats)
        self._racks = {each.id: (each.rack or "") if racked else "" for each in seats}
        self._tolerated = set(tolerated)
        self._sizes = sizes
        self._replicas = {place: list(partitions[place]) for place in sorted(partitions)}
        self._held = Counter({each.id: 0 for each in seats})
        self._crowd: Counter[tuple[str, int]] = Counter()
        self._places: dict[int, set[Place]] = {each.id: set() for each in seats}
        for place, replicas in self._replicas.items():
            for node in replicas:
                self._count(place, node, 1)

    def changes(self, before: Partitions) -> dict[Place, Replicas]:
        """Return the changes."""
        return {
            place: tuple(replicas)
            for place, replicas in self._replicas.items()
            if tuple(replicas) != tuple(before[place])
        }

    def settle(self, place: Place, count: int) -> None:
        """Give a partition this many replicas, all on available brokers."""
        if count > len(self._racks):
            raise AdminError(
                f"{place[0]}-{place[1]} has {count} replicas, and there are only "
                f"{len(self._racks)} brokers to hold them; "
                "add a broker, or use a smaller replication factor"
            )
        replicas = self._replicas[place]
        for node in [each for each in replicas if not self._may_stay(each)]:
            self._drop(place, node)
        while len(replicas) > count:
            # The preferred leader is removed last.
            self._drop(place, max(replicas[1:], key=lambda node: (self._shared(place, node), node)))
        while len(replicas) < count:
            self._add(place, self._roomiest(place))

    def fill(self, place: Place, count: int) -> None:
        """Add replicas to a partition until it has this many; there must be enough brokers."""
        while len(self._replicas[place]) < count:
            self._add(place, self._roomiest(place))

    def spread_over_racks(self) -> None:
        """Move replicas out of a rack that has several while another has none."""
        racks = len(set(self._racks.values()))
        for place, replicas in self._replicas.items():
            while self._covered(replicas) < min(racks, len(replicas)):
                crowded = max(replicas, key=lambda node: (self._shared(place, node), node))
                self._move(place, crowded, self._roomiest(place))

    def even_out(self) -> None:
        """Move replicas from the brokers with most to those with fewest."""
        self._move_what_quotas_ask_for()
        while (found := self._improvement()) is not None:  # moves that racks prevented before
            self._move(*found)

    def even_out_leaders(self, movable: Iterable[Place]) -> None:
        """Choose preferred leaders so that brokers lead about the same number of partitions."""
        Leadership(self._replicas, self._racks, movable).even_out()

    def _move_what_quotas_ask_for(self) -> None:
        """Move as few replicas as possible: the brokers with most keep the remainder."""
        fullest = sorted(self._held, key=lambda node: (-self._held[node], node))
        share, odd = divmod(sum(self._held.values()), len(fullest))
        quotas = {node: share + (rank < odd) for rank, node in enumerate(fullest)}
        for giver in fullest:
            for taker in reversed(fullest):
                surplus = self._held[giver] - quotas[giver]
                room = quotas[taker] - self._held[taker]
                if surplus > 0 and room > 0:
                    self._move_some(giver, taker, min(surplus, room))

    def _move_some(self, giver: int, taker: int, count: int) -> None:
        """Move replicas from one broker to another, those of crowded topics first."""
        by_topic: dict[str, list[tuple[int, Place]]] = defaultdict(list)
        for place in self._places[giver] - self._places[taker]:
            if self._keeps_racks(place, giver, taker):
                by_topic[place[0]].append((self._sizes.get(place, 0), place))
        waiting = []
        for topic, places in by_topic.items():
            places.sort(reverse=True)
            surplus = self._crowd[topic, giver] - self._crowd[topic, taker]
            waiting.append((-surplus, *places[-1]))
        heapq.heapify(waiting)
        for _ in range(min(count, sum(map(len, by_topic.values())))):
            surplus, _, place = heapq.heappop(waiting)
            self._move(place, giver, taker)
            places = by_topic[place[0]]
            places.pop()
            if places:
                heapq.heappush(waiting, (surplus + 2, *places[-1]))

    def _improvement(self) -> tuple[Place, int, int] | None:
        """Return a possible move between the two brokers with the largest difference."""
        fullest = sorted(self._held, key=lambda node: (-self._held[node], node))
        for giver in fullest:
            for taker in reversed(fullest):
                if self._held[giver] - self._held[taker] < 2:
                    break
                place = self._movable(giver, taker)
                if place is not None:
                    return place, giver, taker
        return None

    def _movable(self, giver: int, taker: int) -> Place | None:
        fitting = [
            place
            for place in self._places[giver] - self._places[taker]
            if self._keeps_racks(place, giver, taker)
        ]
        return min(fitting, key=lambda place: self._worth(place, giver, taker), default=None)

    def _worth(self, place: Place, giver: int, taker: int) -> tuple[int, int, Place]:
        surplus = self._crowd[place[0], giver] - self._crowd[place[0], taker]
        return -surplus, self._sizes.get(place, 0), place

    def _keeps_racks(self, place: Place, giver: int, taker: int) -> bool:
        if self._racks[giver] == self._racks[taker]:
            return True
        replicas = self._replicas[place]
        after = [taker if node == giver else node for node in replicas]
        return self._covered(after) >= self._covered(replicas)

    def _roomiest(self, place: Place) -> int:
        """Return the best broker for another replica."""
        replicas = self._replicas[place]
        there = {self._racks.get(node) for node in replicas}
        return min(
            (node for node in self._racks if node not in replicas),
            key=lambda node: (
                self._racks[node] in there,
                self._held[node],
                self._crowd[place[0], node],
                node,
            ),
        )

    def _shared(self, place: Place, node: int) -> tuple[int, int]:
        """Return how many replicas share a broker's rack, and how many the broker has."""
        rack = self._racks.get(node)
        beside = sum(self._racks.get(each) == rack for each in self._replicas[place])
        return beside, self._held[node]

    def _covered(self, replicas: Iterable[int]) -> int:
        return len({self._racks.get(node) for node in replicas})

    def _may_stay(self, node: int) -> bool:
        return node in self._racks or node in self._tolerated

    def _move(self, place: Place, giver: int, taker: int) -> None:
        replicas = self._replicas[place]
        replicas[replicas.index(giver)] = taker
        self._count(place, giver, -1)
        self._count(place, taker, 1)

    def _drop(self, place: Place, node: int) -> None:
        self._replicas[place].remove(node)
        self._count(place, node, -1)

    def _add(self, place: Place, node: int) -> None:
        self._replicas[place].append(node)
        self._count(place, node, 1)

    def _count(self, place: Place, node: int, change: int) -> None:
        if node not in self._racks:
            return
        self._held[node] += change
        self._crowd[place[0], node] += change
        if change > 0:
            self._places[node].add(place)
        else:
            self._places[node].discard(place)
