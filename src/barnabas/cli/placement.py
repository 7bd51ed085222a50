"""Where the copies of partitions should be: even, apart, and moved as little as can be.

    arrange(partitions, brokers)                   -> what to change for an even cluster
    arrange(partitions, brokers, copies=3)         -> the same, with three copies of each
    drain(partitions, brokers, leaving=4)          -> what to change so that broker 4 holds nothing
    fill_up(partitions, brokers, {("orders", 0): 3}) -> the same copies, and those that are missing

Three rules, in the order in which they give way. Copies of a partition stand on different
brokers. They cover as many racks as they can, where every broker names its rack. Brokers hold
equally many copies, give or take one. A copy is moved only where one of the rules asks for it,
and of those that could be moved, one of a topic that crowds its broker goes first, then the
smallest.

The first of a partition's copies is its preferred leader; `leadership` chooses it, last of all.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.cli.failure import CommandError
from barnabas.cli.leadership import Leadership
from barnabas.cli.scopes import Place

Copies = tuple[int, ...]
Partitions = Mapping[Place, Copies]
"""The brokers of each partition's copies, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A broker that copies can be put on."""

    id: int
    rack: str | None = None


def arrange(
    partitions: Partitions,
    brokers: Iterable[Seat],
    *,
    copies: int | None = None,
    sizes: Mapping[Place, int] | None = None,
) -> dict[Place, Copies]:
    """Return the partitions to change so that these brokers, and no others, share them evenly."""
    board = _Board(partitions, brokers, sizes or {})
    for place in sorted(partitions):
        board.settle(place, copies or len(partitions[place]))
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
) -> dict[Place, Copies]:
    """Return the partitions to change so that a broker holds nothing; no other copy is moved."""
    staying = [each for each in brokers if each.id != leaving]
    # A copy that is on a broker which is away may come back with it: it is not ours to move.
    away = {node for copies in partitions.values() for node in copies} - {leaving}
    board = _Board(partitions, staying, sizes or {}, tolerated=away)
    touched = {place: copies for place, copies in partitions.items() if leaving in copies}
    for place in sorted(touched):
        board.settle(place, len(touched[place]))
    board.even_out_leaders(touched)
    return board.changes(partitions)


def fill_up(
    partitions: Partitions, brokers: Iterable[Seat], copies: Mapping[Place, int]
) -> dict[Place, Copies]:
    """Return the partitions to change so that some have so many copies; none is taken away."""
    board = _Board(partitions, brokers, {})
    for place in sorted(copies):
        board.fill(place, copies[place])
    board.even_out_leaders(copies)
    return board.changes(partitions)


def moved(before: Copies, after: Copies) -> Copies:
    """Return the brokers that get a copy which they do not have."""
    return tuple(node for node in after if node not in before)


class _Board:
    """All partitions and brokers, while copies are moved about."""

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
        self._copies = {place: list(partitions[place]) for place in sorted(partitions)}
        self._held = Counter({each.id: 0 for each in seats})
        self._crowd: Counter[tuple[str, int]] = Counter()
        self._places: dict[int, set[Place]] = {each.id: set() for each in seats}
        for place, copies in self._copies.items():
            for node in copies:
                self._count(place, node, 1)

    def changes(self, before: Partitions) -> dict[Place, Copies]:
        """Return what differs."""
        return {
            place: tuple(copies)
            for place, copies in self._copies.items()
            if tuple(copies) != tuple(before[place])
        }

    def settle(self, place: Place, count: int) -> None:
        """Give a partition so many copies, all of them on brokers that are there."""
        if count > len(self._racks):
            raise CommandError(
                f"{place[0]}-{place[1]} has {count} copies, and there are only {len(self._racks)} "
                "brokers to hold them; add a broker, or ask for fewer copies"
            )
        copies = self._copies[place]
        for node in [each for each in copies if not self._may_stay(each)]:
            self._drop(place, node)
        while len(copies) > count:
            # The preferred leader is the last to go.
            self._drop(place, max(copies[1:], key=lambda node: (self._shared(place, node), node)))
        while len(copies) < count:
            self._add(place, self._roomiest(place))

    def fill(self, place: Place, count: int) -> None:
        """Add copies to a partition until it has so many; the brokers for that must be there."""
        while len(self._copies[place]) < count:
            self._add(place, self._roomiest(place))

    def spread_over_racks(self) -> None:
        """Move copies that stand in one rack while another has none."""
        racks = len(set(self._racks.values()))
        for place, copies in self._copies.items():
            while self._covered(copies) < min(racks, len(copies)):
                crowded = max(copies, key=lambda node: (self._shared(place, node), node))
                self._move(place, crowded, self._roomiest(place))

    def even_out(self) -> None:
        """Move copies from those that hold most to those that hold least."""
        self._move_what_quotas_ask_for()
        while (found := self._improvement()) is not None:  # what racks stood in the way of
            self._move(*found)

    def even_out_leaders(self, movable: Iterable[Place]) -> None:
        """Choose preferred leaders among copies, each broker leading as many as the others."""
        Leadership(self._copies, self._racks, movable).even_out()

    def _move_what_quotas_ask_for(self) -> None:
        """Move as few copies as can be: whoever holds most is let hold the odd one."""
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
        """Move copies from one broker to another, those of crowded topics first."""
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
        """Return a move between the two that are furthest apart and can do it."""
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
        copies = self._copies[place]
        after = [taker if node == giver else node for node in copies]
        return self._covered(after) >= self._covered(copies)

    def _roomiest(self, place: Place) -> int:
        """Return where another copy does most good."""
        copies = self._copies[place]
        there = {self._racks.get(node) for node in copies}
        return min(
            (node for node in self._racks if node not in copies),
            key=lambda node: (
                self._racks[node] in there,
                self._held[node],
                self._crowd[place[0], node],
                node,
            ),
        )

    def _shared(self, place: Place, node: int) -> tuple[int, int]:
        """Return how many copies share a node's rack, and how full it is."""
        rack = self._racks.get(node)
        beside = sum(self._racks.get(each) == rack for each in self._copies[place])
        return beside, self._held[node]

    def _covered(self, copies: Iterable[int]) -> int:
        return len({self._racks.get(node) for node in copies})

    def _may_stay(self, node: int) -> bool:
        return node in self._racks or node in self._tolerated

    def _move(self, place: Place, giver: int, taker: int) -> None:
        copies = self._copies[place]
        copies[copies.index(giver)] = taker
        self._count(place, giver, -1)
        self._count(place, taker, 1)

    def _drop(self, place: Place, node: int) -> None:
        self._copies[place].remove(node)
        self._count(place, node, -1)

    def _add(self, place: Place, node: int) -> None:
        self._copies[place].append(node)
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
